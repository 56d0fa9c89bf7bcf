import type { JobFilter, Parent, StoredJob, WholeJob } from './admin.ts'
import { never } from './continuations.ts'
import { inPages } from './paging.ts'
import type { FailReason, JobId, OnParentFailure, WorkerId } from './store.ts'

/**
 * Reading jobs wherever they are, in the SQL that SQLite and Postgres share: every parameter and every null is cast,
 * since in a union Postgres must know the types. Each part is a walk down a primary key that ends with the page.
 */

/** The tables that hold jobs and workers, quoted, and the store's expression of now. */
export interface StoredJobTables {
  readonly jobs: string
  readonly failed: string
  readonly ended: string
  readonly workers: string
  readonly parents: string
  readonly now: string
}

/** Runs one of these texts. Its parameters by name; `now` is the caller's to add. */
export type ReadRows = <Row>(
  text: string,
  parameters: Readonly<Record<string, string | number | null>>,
) => Promise<readonly Row[]>

/** Reads jobs wherever they are; the texts are the same for both, only how they are run differs. */
export class StoredJobs {
  readonly #tables: StoredJobTables
  readonly #read: ReadRows

  constructor(tables: StoredJobTables, read: ReadRows) {
    this.#tables = tables
    this.#read = read
  }

  /** See `Admin.jobs`. */
  list(filter: JobFilter, limit: number | null): AsyncGenerator<StoredJob> {
    const text = pageText(this.#tables, filter)
    const { queue = null, job = null } = filter
    return inPages(limit, async (below, size) =>
      (await this.#read<StoredRow>(text, { queue, job, below, size })).map(storedJob),
    )
  }

  /** See `Admin.stored`. */
  async one(id: JobId): Promise<WholeJob | null> {
    const [row] = await this.#read<WholeRow>(wholeText(this.#tables), { id, size: 1 })
    return row === undefined ? null : { ...storedJob(row), version: row.version, envelope: row.envelope }
  }

  /** See `Admin.parents`. */
  async parents(id: JobId): Promise<readonly Parent[]> {
    const rows = await this.#read<ParentRow>(parentsText(this.#tables), { id })
    return rows.map(({ lost, onFailure, ...row }) => {
      return { ...row, onFailure: onFailure as OnParentFailure, isLost: lost === 1 }
    })
  }

  /** See `Admin.ahead`. */
  async ahead(id: JobId): Promise<number> {
    const [row] = await this.#read<{ readonly count: number }>(aheadText(this.#tables), { id })
    return row?.count ?? 0
  }
}

/** One row of an answer. */
interface StoredRow {
  readonly id: JobId
  readonly fence: number
  readonly job: string
  readonly queue: string
  readonly state: StoredJob['state']
  readonly priority: number
  readonly failures: number
  readonly crashes: number
  readonly suspect: number
  readonly uniqueKey: string | null
  readonly enqueuedAt: number
  readonly availableAt: number | null
  readonly startedAt: number | null
  readonly cancelledAt: number | null
  readonly endedAt: number | null
  readonly worker: WorkerId | null
  readonly workerName: string | null
  readonly leaseUntil: number | null
  readonly reason: FailReason | null
  readonly errorType: string | null
  readonly error: string | null
}

interface ParentRow {
  readonly id: JobId
  readonly onFailure: string
  readonly state: StoredJob['state'] | null
  readonly lost: number
}

/** A row with what `pageText` leaves out. */
interface WholeRow extends StoredRow {
  readonly version: number
  readonly envelope: string
}

/** The text of one page of jobs; its parameters are now, below, size, and the filter's own names. */
function pageText(tables: StoredJobTables, filter: JobFilter): string {
  const conditions = [
    'x.id < cast(:below as bigint)',
    ...(filter.queue === undefined ? [] : ['x.queue = cast(:queue as text)']),
    ...(filter.job === undefined ? [] : ['x.job = cast(:job as text)']),
  ]
  return unionOf(tables, { conditions, state: filter.state, extra: '' })
}

/** The text that finds one job; its parameters are now, id and size. */
function wholeText(tables: StoredJobTables): string {
  const extra = ', x.version, x.envelope'
  return unionOf(tables, { conditions: ['x.id = cast(:id as bigint)'], state: undefined, extra })
}

interface Parts {
  readonly conditions: readonly string[]
  readonly state: JobFilter['state']
  /** More columns. */
  readonly extra: string
}

function unionOf(tables: StoredJobTables, parts: Parts): string {
  const homes = [live, failed, ended].flatMap((home) => home(tables, parts) ?? [])
  const pages = homes.map(
    (home, place) => `select * from (${home} order by x.id desc limit cast(:size as bigint)) h${place}`,
  )
  return `${pages.join('\nunion all ')}\norder by id desc limit cast(:size as bigint)`
}

const noMoment = 'cast(null as bigint)'
const noText = 'cast(null as text)'
const nobody = `${noMoment} as "worker", ${noText} as "workerName", ${noMoment} as "leaseUntil"`
const noFailure = `${noText} as "reason", ${noText} as "errorType", ${noText} as "error"`
const facts = 'x.id, x.fence, x.job, x.queue, x.priority, x.failures, x.enqueued_at as "enqueuedAt"'

/** Of a job that has ended, or failed for good. */
const notAlive = `${noMoment} as "availableAt", ${noMoment} as "startedAt", ${noMoment} as "cancelledAt"`

function live({ jobs, workers, now }: StoredJobTables, { conditions, state, extra }: Parts): string | null {
  const current = stateOf('x', now)
  if (state === 'failed' || state === 'done' || state === 'cancelled') return null
  const wanted = state === undefined ? conditions : [...conditions, `(${current}) = '${state}'`]
  return `select ${facts}, ${current} as state, x.crashes, x.suspect, x.unique_key as "uniqueKey",
  x.available_at as "availableAt", x.started_at as "startedAt", x.cancelled_at as "cancelledAt", ${noMoment} as "endedAt",
  x.worker, w.name as "workerName", w.beat_at + w.lease_ms as "leaseUntil", ${noFailure}${extra}
from ${jobs} x left join ${workers} w on w.id = x.worker where ${wanted.join(' and ')}`
}

function failed({ failed }: StoredJobTables, { conditions, state, extra }: Parts): string | null {
  if (state !== undefined && state !== 'failed') return null
  return `select ${facts}, 'failed' as state, x.crashes, 0 as suspect, x.unique_key as "uniqueKey",
  ${notAlive}, x.failed_at as "endedAt", ${nobody}, x.reason, x.error_type as "errorType", x.error${extra}
from ${failed} x where ${conditions.join(' and ')}`
}

function ended({ ended }: StoredJobTables, { conditions, state, extra }: Parts): string | null {
  if (state !== undefined && state !== 'done' && state !== 'cancelled') return null
  const wanted = state === undefined ? conditions : [...conditions, `x.state = '${state}'`]
  return `select ${facts}, x.state, 0 as crashes, 0 as suspect, ${noText} as "uniqueKey",
  ${notAlive}, x.ended_at as "endedAt", ${nobody}, ${noFailure}${extra}
from ${ended} x where ${wanted.join(' and ')}`
}

/** The text that counts the free jobs before one that waits; its parameters are now and id. */
function aheadText({ jobs, now }: StoredJobTables): string {
  return `select count(*) as count from ${jobs} x join ${jobs} a on a.queue = x.queue
where x.id = cast(:id as bigint) and x.worker is null and a.worker is null and a.cancelled_at is null
  and a.available_at <= ${now} and (a.priority, a.available_at, a.id) < (x.priority, x.available_at, x.id)`
}

/** The text that lists what a job waits for; its parameters are now and id. */
function parentsText({ jobs, failed, ended, parents, now }: StoredJobTables): string {
  return `select p.parent as id, p.on_failure as "onFailure", p.lost, case when j.id is not null then ${stateOf('j', now)}
  when f.id is not null then 'failed' else e.state end as state
from ${parents} p join ${jobs} c on c.id = p.child and c.available_at = ${never}
  left join ${jobs} j on j.id = p.parent left join ${failed} f on f.id = p.parent left join ${ended} e on e.id = p.parent
where p.child = cast(:id as bigint) order by p.parent`
}

/** The state of a live job. */
function stateOf(row: string, now: string): string {
  return `case when ${row}.started_at is not null then 'running' when ${row}.available_at <= ${now} then 'ready' else 'scheduled' end`
}

/** Reads a row. */
function storedJob(row: StoredRow): StoredJob {
  const { suspect, worker, workerName, leaseUntil, reason, errorType, error, ...job } = row
  return {
    ...job,
    availableAt: job.availableAt === never ? null : job.availableAt,
    isSuspect: suspect === 1,
    holder: worker === null ? null : { worker, name: workerName, leaseUntil },
    failure: reason === null ? null : { reason, errorType: errorType ?? '', error: error ?? '' },
  }
}
