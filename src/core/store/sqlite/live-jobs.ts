import { and, asc, eq, isNotNull, isNull, lte, type SQL, sql } from 'drizzle-orm'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { BusyJob, Cancelled, FoundJob, LiveFilter, LiveState } from '../admin.ts'
import type { JobId } from '../store.ts'
import type { Connection } from './connection.ts'
import { oneOf } from './one-of.ts'
import type { SqliteTables } from './schema.ts'
import { allTyped, typed } from './typed.ts'

export interface LiveJobsParts {
  readonly connection: Connection
  readonly db: BetterSQLite3Database
  readonly tables: SqliteTables
  readonly now: () => number
}

/** What operators ask about jobs that have not ended, and how they cancel them. */
export class LiveJobs {
  readonly #parts: LiveJobsParts

  constructor(parts: LiveJobsParts) {
    this.#parts = parts
  }

  /** See `Admin.selectLive`. */
  select(filter: LiveFilter): Promise<readonly JobId[]> {
    const { connection, db, tables } = this.#parts
    const rows = db
      .select({ id: tables.jobs.id })
      .from(tables.jobs)
      .where(this.#matching(filter))
      .orderBy(asc(tables.jobs.id))
    return connection.read(() => rows.all().map(({ id }) => id))
  }

  #matching({ ids, queue, job, state }: LiveFilter): SQL | undefined {
    const { jobs } = this.#parts.tables
    return and(
      ids && oneOf(jobs.id, ids),
      queue === undefined ? undefined : eq(jobs.queue, queue),
      job === undefined ? undefined : eq(jobs.job, job),
      state === undefined ? undefined : eq(this.#state, state),
    )
  }

  /** The state of a live job at this moment. */
  get #state(): SQL<LiveState> {
    const { startedAt, availableAt } = this.#parts.tables.jobs
    return sql`case when ${startedAt} is not null then 'running'
      when ${availableAt} <= ${this.#parts.now()} then 'ready' else 'scheduled' end`
  }

  /** See `Admin.cancel`. */
  cancel(ids: readonly JobId[]): Promise<Cancelled> {
    return this.#parts.connection.write(() => {
      const live = this.#holders(ids)
      const asked = [...new Set(ids)]
      const cancelled = asked.filter((id) => live.get(id) === null)
      const marked = asked.filter((id) => typeof live.get(id) === 'number')
      this.#end(cancelled)
      this.#mark(marked)
      return { cancelled, marked, missing: asked.filter((id) => !live.has(id)) }
    })
  }

  #holders(ids: readonly JobId[]): ReadonlyMap<JobId, number | null> {
    const { db, tables } = this.#parts
    const { id, worker } = tables.jobs
    const rows = db.select({ id, worker }).from(tables.jobs).where(oneOf(id, ids)).all()
    return new Map(rows.map((row) => [row.id, row.worker]))
  }

  /** The columns stand in the order of the table: an insert from a select goes by position. */
  #end(ids: readonly JobId[]): void {
    const { db, tables, now } = this.#parts
    const { id, fence, queue, priority, job, failures, version, enqueuedAt, envelope } = tables.jobs
    const [state, endedAt] = [sql`'cancelled'`.as('state'), sql`${now()}`.as('ended_at')]
    const columns = { id, state, fence, queue, priority, job, failures, version, enqueuedAt, endedAt, envelope }
    const chosen = oneOf(id, ids)
    db.insert(tables.ended).select(db.select(columns).from(tables.jobs).where(chosen)).run()
    db.delete(tables.jobs).where(chosen).run()
  }

  #mark(ids: readonly JobId[]): void {
    const { db, tables, now } = this.#parts
    const { id, cancelledAt } = tables.jobs
    db.update(tables.jobs)
      .set({ cancelledAt: now() })
      .where(and(oneOf(id, ids), isNull(cancelledAt)))
      .run()
  }

  /** See `Admin.find`. */
  find(id: JobId): Promise<FoundJob | null> {
    return this.#parts.connection.read(() => this.#live(id) ?? this.#failed(id) ?? this.#ended(id))
  }

  /** See `Admin.states`. */
  states(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob['state']>> {
    const { connection, db, tables } = this.#parts
    const { jobs, failed, ended } = tables
    const live = db.select({ id: jobs.id, state: this.#state }).from(jobs).where(oneOf(jobs.id, ids))
    const gone = db.select({ id: failed.id }).from(failed).where(oneOf(failed.id, ids))
    const over = db.select({ id: ended.id, state: ended.state }).from(ended).where(oneOf(ended.id, ids))
    return connection.read(() => {
      const rows = [...live.all(), ...gone.all().map(({ id }) => ({ id, state: 'failed' })), ...over.all()]
      return new Map(rows.map(({ id, state }) => [id, state as FoundJob['state']]))
    })
  }

  #live(id: JobId): FoundJob | null {
    const { db, tables } = this.#parts
    const { jobs, workers } = tables
    const isMarked = sql<number>`${isNotNull(jobs.cancelledAt)}`
    const [row] = db
      .select({
        job: typed(jobs.job),
        queue: typed(jobs.queue),
        state: this.#state,
        worker: jobs.worker,
        name: workers.name,
        isMarked,
      })
      .from(jobs)
      .leftJoin(workers, eq(workers.id, jobs.worker))
      .where(eq(jobs.id, id))
      .all()
    if (!row) return null
    const { worker, name, ...facts } = row
    const holder = worker === null ? null : { worker, name }
    return { id, home: 'live', ...facts, holder, isMarked: row.isMarked === 1 }
  }

  /** See `Admin.busy`. The jobs that somebody holds are few, and have an index. */
  busy(leastMs: number): Promise<readonly BusyJob[]> {
    const { connection, db, tables } = this.#parts
    const { id, job, queue, startedAt } = tables.jobs
    return connection.read(() => {
      const now = this.#parts.now()
      const rows = db
        .select({ id, ...allTyped({ job, queue }), startedAt, worker: tables.jobs.worker, name: tables.workers.name })
        .from(tables.jobs)
        .leftJoin(tables.workers, eq(tables.workers.id, tables.jobs.worker))
        .where(and(isNotNull(tables.jobs.worker), lte(startedAt, now - leastMs)))
        .orderBy(asc(startedAt), asc(id))
        .all()
      return rows.map(({ startedAt, worker, name, ...facts }) => {
        return { ...facts, holder: { worker: worker as number, name }, runningMs: now - (startedAt as number) }
      })
    })
  }

  #failed(id: JobId): FoundJob | null {
    const { db, tables } = this.#parts
    const { job, queue } = tables.failed
    const [row] = db.select(allTyped({ job, queue })).from(tables.failed).where(eq(tables.failed.id, id)).all()
    return row ? { id, ...row, home: 'failed', state: 'failed', ...notHeld } : null
  }

  #ended(id: JobId): FoundJob | null {
    const { db, tables } = this.#parts
    const { job, queue, state } = tables.ended
    const [row] = db.select(allTyped({ job, queue, state })).from(tables.ended).where(eq(tables.ended.id, id)).all()
    return row ? { id, ...row, home: 'ended', state: row.state as 'done' | 'cancelled', ...notHeld } : null
  }
}

const notHeld = { holder: null, isMarked: false } as const
