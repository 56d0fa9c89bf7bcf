import { and, asc, count, desc, eq, getTableColumns, gt, gte, isNull, lt, or, type SQL, sql } from 'drizzle-orm'
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3'
import type {
  Admin,
  Aged,
  BusyJob,
  Cancelled,
  FailedFilter,
  FailedGroup,
  FailedJob,
  FoundJob,
  JobFilter,
  LiveFilter,
  Parent,
  PausedQueue,
  QueueCounts,
  Retried,
  StoredJob,
  WholeJob,
  WorkerRow,
} from '../admin.ts'
import type { StoreOptions } from '../options.ts'
import type { AttemptRecord, FailReason, Held, JobId, WorkerId } from '../store.ts'
import { StoredJobs } from '../stored-jobs.ts'
import { type Connection, operatorRole } from './connection.ts'
import { LiveJobs } from './live-jobs.ts'
import { oneOf } from './one-of.ts'
import { openMigrated } from './opening.ts'
import { Pruning } from './pruning.ts'
import { type SqliteTables, sqliteTables } from './schema.ts'
import { now } from './transaction.ts'
import { allTyped, typed } from './typed.ts'

/** Failed jobs read at once: bounds memory, since an envelope can be a mebibyte. */
const pageSize = 100

/** Opens the cold side of an SQLite file; throws what `openSqliteStore` throws. */
export async function openSqliteAdmin(path: string, options: StoreOptions): Promise<Admin> {
  return new SqliteAdmin(await openMigrated(path, options, operatorRole), options)
}

class SqliteAdmin implements Admin {
  readonly #connection: Connection
  readonly #options: StoreOptions
  readonly #db: BetterSQLite3Database
  readonly #tables: SqliteTables
  readonly #liveJobs: LiveJobs
  readonly #storedJobs: StoredJobs
  readonly #pruning: Pruning

  constructor(connection: Connection, options: StoreOptions) {
    this.#connection = connection
    this.#options = options
    // SQLite's own lower() knows ASCII only.
    connection.db.function('khepri_lower', { deterministic: true }, (text: string) => text.toLowerCase())
    this.#db = drizzle(connection.db)
    this.#tables = sqliteTables(options.names)
    this.#liveJobs = new LiveJobs({ connection, db: this.#db, tables: this.#tables, now: () => this.#now() })
    this.#storedJobs = new StoredJobs(
      { ...quoted(options.names), now: ':now' },
      <Row>(text: string, parameters: object) =>
        connection.read(() => connection.statement(text).all({ ...parameters, now: this.#now() }) as Row[]),
    )
    this.#pruning = new Pruning(connection, options.names, () => this.#now())
  }

  async *failed(filter: FailedFilter, limit: number | null): AsyncGenerator<FailedJob> {
    let after: FailedJob | undefined
    for (let left = limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
      const page = await this.#failedPage(filter, after, Math.min(left, pageSize))
      yield* page
      after = page.at(-1)
      if (page.length < pageSize) return
      left -= page.length
    }
  }

  #failedPage(filter: FailedFilter, after: FailedJob | undefined, size: number): Promise<readonly FailedJob[]> {
    const { failed } = this.#tables
    const older =
      after &&
      or(lt(failed.failedAt, after.failedAt), and(eq(failed.failedAt, after.failedAt), lt(failed.id, after.id)))
    const page = this.#db
      .select(this.#shownColumns())
      .from(failed)
      .where(and(this.#matching(filter), older))
      .orderBy(desc(failed.failedAt), desc(failed.id))
      .limit(size)
    return this.#connection.read(() => page.all().map(shown))
  }

  async failedGroups(filter: FailedFilter, by: 'error' | 'job' | 'queue'): Promise<readonly FailedGroup[]> {
    const { failed } = this.#tables
    const groups = this.#db
      .select({ key: typed(failed[by]), count: count(), latestAt: sql<number>`max(${typed(failed.failedAt)})` })
      .from(failed)
      .where(this.#matching(filter))
      .groupBy(failed[by])
      .orderBy(desc(count()), asc(failed[by]))
    return this.#connection.read(() => groups.all())
  }

  async findFailed(id: JobId): Promise<FailedJob | null> {
    const { failed } = this.#tables
    const row = this.#db.select(this.#shownColumns()).from(failed).where(eq(failed.id, id))
    return this.#connection.read(() => row.all().map(shown)[0] ?? null)
  }

  async attempts(id: JobId): Promise<readonly AttemptRecord[]> {
    const { id: order, jobId, fence: _, ...columns } = getTableColumns(this.#tables.attempts)
    const rows = this.#db.select(allTyped(columns)).from(this.#tables.attempts).where(eq(jobId, id)).orderBy(asc(order))
    return this.#connection.read(() => rows.all())
  }

  async selectFailed(filter: FailedFilter): Promise<readonly Held[]> {
    const { failed } = this.#tables
    const rows = this.#db
      .select({ id: failed.id, fence: failed.fence })
      .from(failed)
      .where(this.#matching(filter))
      .orderBy(asc(failed.failedAt), asc(failed.id))
    return this.#connection.read(() => rows.all())
  }

  async retryFailed(jobs: readonly Held[], delayMs: number): Promise<Retried> {
    return this.#connection.write(() => {
      const result = this.#sortOut(jobs)
      this.#revive(result.retried, Math.round(this.#now() + delayMs))
      return result
    })
  }

  #sortOut(jobs: readonly Held[]): Retried {
    const failed = this.#stillFailed(jobs)
    const holders = this.#holders([...failed.values()].flatMap(({ uniqueKey }) => uniqueKey ?? []))
    const retried: JobId[] = []
    const missing: JobId[] = []
    const blocked: { id: JobId; holder: JobId }[] = []
    for (const { id, fence } of jobs) {
      const row = failed.get(id)
      const holder = holders.get(row?.uniqueKey ?? null)
      if (row?.fence !== fence) missing.push(id)
      else if (holder !== undefined) blocked.push({ id, holder })
      else {
        retried.push(id)
        failed.delete(id)
        if (row.uniqueKey !== null) holders.set(row.uniqueKey, id)
      }
    }
    return { retried, missing, blocked }
  }

  #stillFailed(jobs: readonly Held[]): Map<JobId, { readonly fence: number; readonly uniqueKey: string | null }> {
    const { failed } = this.#tables
    const rows = this.#db
      .select({ id: failed.id, fence: failed.fence, uniqueKey: failed.uniqueKey })
      .from(failed)
      .where(
        oneOf(
          failed.id,
          jobs.map(({ id }) => id),
        ),
      )
    return new Map(rows.all().map((row) => [row.id, row]))
  }

  #holders(keys: readonly string[]): Map<string | null, JobId> {
    const { jobs } = this.#tables
    const rows = this.#db.select({ key: jobs.uniqueKey, id: jobs.id }).from(jobs).where(oneOf(jobs.uniqueKey, keys))
    return new Map(rows.all().map(({ key, id }) => [key, id]))
  }

  /** The columns stand in the order of the table: an insert from a select goes by position. */
  #revive(ids: readonly JobId[], availableAt: number): void {
    const { jobs, failed } = this.#tables
    const { id, fence, queue, priority, job, uniqueKey, version, enqueuedAt, envelope } = failed
    const columns = {
      ...{ id, queue, priority, availableAt: sql`${availableAt}`.as('available_at') },
      ...{ worker: blank('worker'), batch: blank('batch'), fence, startedAt: blank('started_at') },
      ...{ failures: zero('failures'), crashes: zero('crashes'), suspect: zero('suspect') },
      ...{ cancelledAt: blank('cancelled_at'), job, uniqueKey, version, enqueuedAt, envelope },
    }
    const chosen = oneOf(failed.id, ids)
    this.#db.insert(jobs).select(this.#db.select(columns).from(failed).where(chosen)).run()
    this.#db.delete(failed).where(chosen).run()
  }

  async deleteFailed(jobs: readonly Held[]): Promise<readonly JobId[]> {
    const { failed, attempts } = this.#tables
    return this.#connection.write(() => {
      const found = this.#stillFailed(jobs)
      const ids = jobs.flatMap(({ id, fence }) => (found.get(id)?.fence === fence && found.delete(id) ? [id] : []))
      this.#db.update(this.#tables.parents).set({ lost: 1 }).where(oneOf(this.#tables.parents.parent, ids)).run()
      this.#db.delete(attempts).where(oneOf(attempts.jobId, ids)).run()
      this.#db.delete(failed).where(oneOf(failed.id, ids)).run()
      return ids
    })
  }

  async selectLive(filter: LiveFilter): Promise<readonly JobId[]> {
    return this.#liveJobs.select(filter)
  }

  async cancel(ids: readonly JobId[]): Promise<Cancelled> {
    return this.#liveJobs.cancel(ids)
  }

  async find(id: JobId): Promise<FoundJob | null> {
    return this.#liveJobs.find(id)
  }

  jobs(filter: JobFilter, limit: number | null): AsyncIterable<StoredJob> {
    return this.#storedJobs.list(filter, limit)
  }

  stored(id: JobId): Promise<WholeJob | null> {
    return this.#storedJobs.one(id)
  }

  ahead(id: JobId): Promise<number> {
    return this.#storedJobs.ahead(id)
  }

  parents(id: JobId): Promise<readonly Parent[]> {
    return this.#storedJobs.parents(id)
  }

  async states(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob['state']>> {
    return this.#liveJobs.states(ids)
  }

  async busy(leastMs: number): Promise<readonly BusyJob[]> {
    return this.#liveJobs.busy(leastMs)
  }

  countAged(aged: Aged): Promise<number> {
    return this.#pruning.count(aged)
  }

  prune(aged: Aged, limit: number): Promise<number> {
    return this.#pruning.prune(aged, limit)
  }

  async counts(): Promise<readonly QueueCounts[]> {
    return this.#connection.read(() => {
      const live = new Map(this.#liveCounts().map((row) => [row.queue, row]))
      const failed = new Map(this.#failedCounts().map((row) => [row.queue, row.count]))
      const paused = new Set(this.#paused().map(({ queue }) => queue))
      return [...new Set([...live.keys(), ...failed.keys(), ...paused])].sort(byText).map((queue) => ({
        ...(live.get(queue) ?? { queue, ready: 0, running: 0, scheduled: 0, oldestReadyAt: null }),
        failed: failed.get(queue) ?? 0,
        paused: paused.has(queue),
      }))
    })
  }

  #liveCounts() {
    const { jobs } = this.#tables
    const isReady = sql`${jobs.startedAt} is null and ${jobs.availableAt} <= ${this.#now()}`
    return this.#db
      .select({
        queue: typed(jobs.queue),
        ready: sql<number>`count(*) filter (where ${isReady})`,
        running: sql<number>`count(${jobs.startedAt})`,
        scheduled: sql<number>`count(*) filter (where ${jobs.startedAt} is null and not (${isReady}))`,
        oldestReadyAt: sql<number | null>`min(${typed(jobs.availableAt)}) filter (where ${isReady})`,
      })
      .from(jobs)
      .groupBy(jobs.queue)
      .all()
  }

  #failedCounts() {
    const { failed } = this.#tables
    return this.#db
      .select({ queue: typed(failed.queue), count: count() })
      .from(failed)
      .groupBy(failed.queue)
      .all()
  }

  async pauses(): Promise<readonly PausedQueue[]> {
    return this.#connection.read(() => this.#paused())
  }

  #paused(): readonly PausedQueue[] {
    const { name: queue, pausedAt, pausedUntil: until, reason } = this.#tables.queues
    const isPaused = or(isNull(until), gt(until, this.#now()))
    return this.#db
      .select({ queue, pausedAt, until, reason })
      .from(this.#tables.queues)
      .where(isPaused)
      .orderBy(asc(queue))
      .all()
  }

  async workers(): Promise<readonly WorkerRow[]> {
    const { jobs, workers } = this.#tables
    const { id, name, version, host, pid, queues, concurrency, leaseMs, startedAt, beatAt } = workers
    const state = sql<WorkerRow['state']>`case when ${workers.deadAt} is null then ${workers.state} else 'dead' end`
    const columns = {
      id,
      name,
      version,
      host,
      pid,
      queues,
      concurrency,
      leaseMs,
      startedAt,
      beatAt,
      state,
      held: count(jobs.id),
      running: count(jobs.startedAt),
    }
    const rows = this.#db
      .select(columns)
      .from(workers)
      .leftJoin(jobs, eq(jobs.worker, id))
      .groupBy(id)
      .orderBy(asc(startedAt), asc(id))
    return this.#connection.read(() => rows.all())
  }

  async restart(): Promise<readonly WorkerId[]> {
    const { id, startedAt, deadAt } = this.#tables.workers
    return this.#connection.write(() => {
      const living = this.#db
        .select({ id })
        .from(this.#tables.workers)
        .where(isNull(deadAt))
        .orderBy(asc(startedAt), asc(id))
      const ids = living.all().map((worker) => worker.id)
      this.#db.update(this.#tables.workers).set({ restartAt: this.#now() }).where(oneOf(id, ids)).run()
      return ids
    })
  }

  async pause(queues: readonly string[], until: number | null, reason: string | null): Promise<void> {
    if (queues.length === 0) return
    const pause = { pausedUntil: until, reason }
    await this.#connection.write(() => {
      const pausedAt = this.#now()
      const rows = queues.map((name) => ({ name, pausedAt, ...pause }))
      for (const row of rows)
        this.#db
          .insert(this.#tables.queues)
          .values(row)
          .onConflictDoUpdate({ target: this.#tables.queues.name, set: { pausedAt, ...pause } })
          .run()
    })
  }

  async resume(queues: readonly string[]): Promise<void> {
    const paused = this.#tables.queues
    await this.#connection.write(() => this.#db.delete(paused).where(oneOf(paused.name, queues)).run())
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  #now(): number {
    return now(this.#options.clock)
  }

  #shownColumns() {
    const { version: _, ...columns } = getTableColumns(this.#tables.failed)
    return allTyped(columns)
  }

  #matching({ ids, queue, job, error, since, until }: FailedFilter): SQL | undefined {
    const { failed } = this.#tables
    return and(
      ids && oneOf(failed.id, ids),
      queue === undefined ? undefined : eq(failed.queue, queue),
      job === undefined ? undefined : eq(failed.job, job),
      error === undefined ? undefined : sql`instr(khepri_lower(${failed.error}), ${error.toLowerCase()}) > 0`,
      since === undefined ? undefined : gte(failed.failedAt, since),
      until === undefined ? undefined : lt(failed.failedAt, until),
    )
  }
}

function quoted({ jobs, failed, ended, workers, parents }: StoreOptions['names']) {
  const names = { jobs, failed, ended, workers, parents }
  return Object.fromEntries(Object.entries(names).map(([key, name]) => [key, `"${name}"`])) as typeof names
}

function blank(name: string) {
  return sql`null`.as(name)
}

function zero(name: string) {
  return sql`0`.as(name)
}

function shown(row: Omit<FailedJob, 'reason'> & { readonly reason: string }): FailedJob {
  return { ...row, reason: row.reason as FailReason }
}

function byText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
