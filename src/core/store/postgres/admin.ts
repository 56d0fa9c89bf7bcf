import { and, asc, desc, eq, gte, isNull, lt, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/pg-proxy'
import { isKhepriError } from '../../errors.ts'
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
import type { Call, Connections, Values } from './connections.ts'
import { FailedJobs } from './failed-jobs.ts'
import { now, relations, rung, serverNow } from './fragments.ts'
import { LiveJobs } from './live-jobs.ts'
import { Pruning } from './pruning.ts'
import { type PostgresTables, postgresTables } from './schema.ts'
import { bigints, type Parameter, statement } from './statement.ts'
import { openConnections } from './store.ts'

/** Failed jobs read at once; only so many are ever in memory. */
const pageSize = 500

/** Counting and selecting may scan a big table. */
const scanMs = 60_000

/**
 * Opens the cold side of a Postgres database.
 *
 * Throws as `openPostgresStore` does where it cannot be reached or its schema is not what this khepri needs.
 */
export async function openPostgresAdmin(url: string, options: StoreOptions): Promise<Admin> {
  return new PostgresAdmin(await openConnections(url, options), options)
}

class PostgresAdmin implements Admin {
  readonly #connections: Connections
  readonly #tables: PostgresTables
  readonly #options: StoreOptions
  readonly #failedJobs: FailedJobs
  readonly #liveJobs: LiveJobs
  readonly #storedJobs: StoredJobs
  readonly #pruning: Pruning
  readonly #reading: ReturnType<typeof queriesOver>
  readonly #writing: ReturnType<typeof queriesOver>
  readonly #restarting: ReturnType<typeof queriesOver>

  constructor(connections: Connections, options: StoreOptions) {
    const deadlineMs = Math.max(options.deadlineMs, scanMs)
    this.#connections = connections
    this.#options = options
    this.#tables = postgresTables(options.names, options.schema)
    this.#failedJobs = new FailedJobs(connections, options)
    this.#liveJobs = new LiveJobs(connections, options)
    // A rare filter scans.
    const listing: Call = { doing: 'read its jobs', kind: 'reading', deadlineMs }
    this.#storedJobs = new StoredJobs(
      { ...relations(options.names, options.schema), now },
      async <Row>(text: string, parameters: Values) => {
        const values = { now: options.clock?.now() ?? null, ...parameters }
        return (await connections.run(statement(text), values, listing)) as unknown as Row[]
      },
    )
    this.#pruning = new Pruning(connections, options, deadlineMs)
    this.#reading = queriesOver(connections, { doing: 'read its tables', kind: 'reading', deadlineMs })
    this.#writing = queriesOver(connections, { doing: 'pause or resume queues', kind: 'repeatable' })
    this.#restarting = queriesOver(connections, { doing: 'mark its workers', kind: 'repeatable' })
  }

  /** The store's one notion of now, see `statements.ts`. */
  get #now(): SQL {
    return sql`coalesce(${this.#options.clock?.now() ?? null}::bigint, ${sql.raw(serverNow)})`
  }

  async *failed(filter: FailedFilter, limit: number | null): AsyncGenerator<FailedJob> {
    let left = limit ?? Infinity
    let after: FailedJob | undefined
    while (left > 0) {
      const page: readonly FailedJob[] = await this.#page(filter, after, Math.min(left, pageSize))
      yield* page
      if (page.length < pageSize) return
      left -= page.length
      after = page.at(-1)
    }
  }

  #page(filter: FailedFilter, after: FailedJob | undefined, size: number): Promise<readonly FailedJob[]> {
    const { failed } = this.#tables
    const further = after && sql`(${failed.failedAt}, ${failed.id}) < (${after.failedAt}::bigint, ${after.id}::bigint)`
    return this.#failedWhere(and(this.#matching(filter), further), size)
  }

  async #failedWhere(condition: SQL | undefined, size: number): Promise<readonly FailedJob[]> {
    const { failed } = this.#tables
    const rows = await answered(
      this.#reading.select().from(failed).where(condition).orderBy(desc(failed.failedAt), desc(failed.id)).limit(size),
    )
    return rows.map(({ version: _, reason, ...job }) => ({ ...job, reason: reason as FailReason }))
  }

  #matching({ ids, queue, job, error, since, until }: FailedFilter): SQL | undefined {
    const { failed } = this.#tables
    return and(
      ids && sql`${failed.id} = any(${bigints(ids)}::bigint[])`,
      queue === undefined ? undefined : eq(failed.queue, queue),
      job === undefined ? undefined : eq(failed.job, job),
      error === undefined ? undefined : sql`strpos(lower(${failed.error}), lower(${error}::text)) > 0`,
      since === undefined ? undefined : gte(failed.failedAt, since),
      until === undefined ? undefined : lt(failed.failedAt, until),
    )
  }

  async failedGroups(filter: FailedFilter, by: 'error' | 'job' | 'queue'): Promise<readonly FailedGroup[]> {
    const { failed } = this.#tables
    const groups = await answered(
      this.#reading
        .select({ key: failed[by], count: countOf(), latestAt: sql<number>`max(${failed.failedAt})` })
        .from(failed)
        .where(this.#matching(filter))
        .groupBy(failed[by]),
    )
    return groups.sort((a, b) => b.count - a.count || compare(a.key, b.key))
  }

  async findFailed(id: JobId): Promise<FailedJob | null> {
    const [found] = await this.#failedWhere(eq(this.#tables.failed.id, id), 1)
    return found ?? null
  }

  async attempts(id: JobId): Promise<readonly AttemptRecord[]> {
    const { attempts } = this.#tables
    const { attempt, worker, startedAt, endedAt, errorType, message, stack, output } = attempts
    return await answered(
      this.#reading
        .select({ attempt, worker, startedAt, endedAt, errorType, message, stack, output })
        .from(attempts)
        .where(eq(attempts.jobId, id))
        .orderBy(asc(attempts.id)),
    )
  }

  async selectFailed(filter: FailedFilter): Promise<readonly Held[]> {
    const { failed } = this.#tables
    return await answered(
      this.#reading
        .select({ id: failed.id, fence: failed.fence })
        .from(failed)
        .where(this.#matching(filter))
        .orderBy(asc(failed.failedAt), asc(failed.id)),
    )
  }

  async retryFailed(jobs: readonly Held[], delayMs: number): Promise<Retried> {
    const retried = await this.#failedJobs.retry(jobs, delayMs)
    await this.#ring()
    return retried
  }

  /** Wakes sleeping workers. What it follows is done, whatever becomes of this. */
  async #ring(): Promise<void> {
    const ring = statement(
      `with ${rung(relations(this.#options.names, this.#options.schema), 'true')} select from rung`,
    )
    const values = { now: this.#options.clock?.now() ?? null }
    await this.#connections.run(ring, values, { doing: 'wake sleeping workers', kind: 'repeatable' }).catch(() => {})
  }

  deleteFailed(jobs: readonly Held[]): Promise<readonly JobId[]> {
    return this.#failedJobs.remove(jobs)
  }

  async selectLive({ ids, queue, job, state }: LiveFilter): Promise<readonly JobId[]> {
    const { jobs } = this.#tables
    const current = sql`case when ${jobs.startedAt} is not null then 'running'
      when ${jobs.availableAt} <= ${this.#now} then 'ready' else 'scheduled' end`
    const condition = and(
      ids && sql`${jobs.id} = any(${bigints(ids)}::bigint[])`,
      queue === undefined ? undefined : eq(jobs.queue, queue),
      job === undefined ? undefined : eq(jobs.job, job),
      state === undefined ? undefined : sql`${current} = ${state}::text`,
    )
    const rows = await answered(this.#reading.select({ id: jobs.id }).from(jobs).where(condition).orderBy(asc(jobs.id)))
    return rows.map(({ id }) => id)
  }

  cancel(ids: readonly JobId[]): Promise<Cancelled> {
    return this.#liveJobs.cancel(ids)
  }

  find(id: JobId): Promise<FoundJob | null> {
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

  states(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob['state']>> {
    return this.#liveJobs.states(ids)
  }

  busy(leastMs: number): Promise<readonly BusyJob[]> {
    return this.#liveJobs.busy(leastMs)
  }

  countAged(aged: Aged): Promise<number> {
    return this.#pruning.count(aged)
  }

  prune(aged: Aged, limit: number): Promise<number> {
    return this.#pruning.prune(aged, limit)
  }

  async counts(): Promise<readonly QueueCounts[]> {
    const [live, failed, pauses] = await Promise.all([this.#liveCounts(), this.#failedCounts(), this.pauses()])
    const paused = new Set(pauses.map(({ queue }) => queue))
    const queues = new Set([...live.keys(), ...failed.keys(), ...paused])
    return [...queues].sort(compare).map((queue) => ({
      queue,
      ...(live.get(queue) ?? { ready: 0, running: 0, scheduled: 0, oldestReadyAt: null }),
      failed: failed.get(queue) ?? 0,
      paused: paused.has(queue),
    }))
  }

  async #liveCounts() {
    const { jobs } = this.#tables
    const ready = sql`${jobs.startedAt} is null and ${jobs.availableAt} <= ${this.#now}`
    const rows = await answered(
      this.#reading
        .select({
          queue: jobs.queue,
          ready: sql<number>`count(*) filter (where ${ready})`,
          running: sql<number>`count(${jobs.startedAt})`,
          all: countOf(),
          oldestReadyAt: sql<number | null>`min(${jobs.availableAt}) filter (where ${ready})`,
        })
        .from(jobs)
        .groupBy(jobs.queue),
    )
    return new Map(
      rows.map(({ queue, all, ...counts }) => [queue, { ...counts, scheduled: all - counts.running - counts.ready }]),
    )
  }

  async #failedCounts(): Promise<ReadonlyMap<string, number>> {
    const { failed } = this.#tables
    const query = this.#reading.select({ queue: failed.queue, count: countOf() }).from(failed).groupBy(failed.queue)
    return new Map((await answered(query)).map(({ queue, count }) => [queue, count]))
  }

  async pauses(): Promise<readonly PausedQueue[]> {
    const { name: queue, pausedAt, pausedUntil: until, reason } = this.#tables.queues
    const isPaused = sql`(${until} is null or ${until} > ${this.#now})`
    const rows = await answered(
      this.#reading.select({ queue, pausedAt, until, reason }).from(this.#tables.queues).where(isPaused),
    )
    return rows.sort((a, b) => compare(a.queue, b.queue))
  }

  async workers(): Promise<readonly WorkerRow[]> {
    const { workers, jobs } = this.#tables
    const { id, name, version, host, pid, queues, concurrency, state, startedAt, beatAt, leaseMs, deadAt } = workers
    const held = this.#countHeld(sql`*`)
    const running = this.#countHeld(qualified(jobs.startedAt))
    const facts = { id, name, version, host, pid, queues, concurrency, state, startedAt, beatAt, leaseMs, deadAt }
    const rows = await answered(
      this.#reading
        .select({ ...facts, held, running })
        .from(workers)
        .orderBy(asc(startedAt), asc(id)),
    )
    return rows.map(({ deadAt: died, state: last, ...row }) => ({
      ...row,
      state: died === null ? (last as 'working' | 'draining') : 'dead',
    }))
  }

  /** Counts among the jobs that the worker of a row holds. */
  #countHeld(what: SQL): SQL<number> {
    const { jobs, workers } = this.#tables
    return sql<number>`(select count(${what}) from ${jobs} where ${qualified(jobs.worker)} = ${qualified(workers.id)})`
  }

  async restart(): Promise<readonly WorkerId[]> {
    const { workers } = this.#tables
    const { id, startedAt, deadAt } = workers
    const update = this.#restarting.update(workers).set({ restartAt: this.#now }).where(isNull(deadAt))
    const asked = await answered(update.returning({ id, startedAt }))
    return asked.sort((a, b) => a.startedAt - b.startedAt || a.id - b.id).map((worker) => worker.id)
  }

  async pause(names: readonly string[], until: number | null, reason: string | null): Promise<void> {
    if (names.length === 0) return
    const { queues } = this.#tables
    const terms = { pausedAt: this.#now, pausedUntil: until, reason }
    const rows = [...new Set(names)].map((name) => ({ name, ...terms }))
    await answered(this.#writing.insert(queues).values(rows).onConflictDoUpdate({ target: queues.name, set: terms }))
  }

  async resume(names: readonly string[]): Promise<void> {
    const { queues } = this.#tables
    for (const name of names) await answered(this.#writing.delete(queues).where(eq(queues.name, name)))
    await this.#ring()
  }

  close(): Promise<void> {
    return this.#connections.close()
  }
}

/** Lets drizzle build the text and our connections send it, under their deadlines and with their errors. */
function queriesOver(connections: Connections, call: Call) {
  return drizzle(async (text, parameters: readonly Parameter[]) => ({
    rows: await connections.values(text, parameters, call),
  }))
}

/** Takes drizzle's wrapper off an error of ours: its message would carry the parameters. */
async function answered<Rows>(query: PromiseLike<Rows>): Promise<Rows> {
  try {
    return await query
  } catch (error) {
    throw error instanceof Error && isKhepriError(error.cause) ? error.cause : error
  }
}

function countOf(): SQL<number> {
  return sql<number>`count(*)`
}

/** With its table: in a query over one table drizzle leaves it out, also inside a sub-select over another. */
function qualified(column: PgColumn): SQL {
  return sql`${column.table}.${sql.identifier(column.name)}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
