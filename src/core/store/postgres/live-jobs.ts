import type { BusyJob, Cancelled, FoundJob } from '../admin.ts'
import type { StoreOptions } from '../options.ts'
import type { JobId } from '../store.ts'
import type { Row } from './connection.ts'
import type { Call, Connections, Transaction } from './connections.ts'
import { archive, now, type Relations, relations, these } from './fragments.ts'
import { bigints, type Statement, statement } from './statement.ts'

/** Jobs that one statement cancels; a call with more takes several in one transaction. */
const atOnce = 5_000

/** Of many ids at once. */
const scanMs = 60_000

const cancelling: Call = { doing: 'cancel jobs', kind: 'writing' }
const finding: Call = { doing: 'find a job', kind: 'reading' }
const looking: Call = { doing: 'look for busy jobs', kind: 'reading' }

/** What operators ask about single jobs, and how they cancel live ones. */
export class LiveJobs {
  readonly #connections: Connections
  readonly #options: StoreOptions
  readonly #statements: {
    readonly cancel: Statement
    readonly find: Statement
    readonly states: Statement
    readonly busy: Statement
  }

  constructor(connections: Connections, options: StoreOptions) {
    const tables = relations(options.names, options.schema)
    this.#connections = connections
    this.#options = options
    this.#statements = {
      cancel: statement(cancelText(tables)),
      find: statement(findText(tables)),
      states: statement(statesText(tables)),
      busy: statement(busyText(tables)),
    }
  }

  /** See `Admin.cancel`. */
  async cancel(ids: readonly JobId[]): Promise<Cancelled> {
    const asked = [...new Set(ids)]
    const isHeld = await this.#connections.transaction(cancelling, async (transaction) => {
      const found = new Map<JobId, boolean>()
      for (let at = 0; at < asked.length; at += atOnce)
        for (const row of await this.#cancelSome(transaction, asked.slice(at, at + atOnce)))
          found.set(row.id as JobId, row.is_held as boolean)
      return found
    })
    return {
      cancelled: asked.filter((id) => isHeld.get(id) === false),
      marked: asked.filter((id) => isHeld.get(id) === true),
      missing: asked.filter((id) => !isHeld.has(id)),
    }
  }

  #cancelSome(transaction: Transaction, ids: readonly JobId[]): Promise<Row[]> {
    return transaction.run(this.#statements.cancel, { ids: bigints(ids), now: this.#now })
  }

  /** See `Admin.find`. */
  async find(id: JobId): Promise<FoundJob | null> {
    const [row] = await this.#connections.run(this.#statements.find, { id, now: this.#now }, finding)
    if (!row) return null
    const { job, queue, home, state, worker, name, marked } = row
    const holder = worker === null ? null : { worker, name }
    return { id, job, queue, home, state, holder, isMarked: marked } as FoundJob
  }

  /** See `Admin.states`. */
  async states(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob['state']>> {
    const values = { ids: bigints(ids), now: this.#now }
    const rows = await this.#connections.run(this.#statements.states, values, { ...finding, deadlineMs: scanMs })
    return new Map(rows.map(({ id, state }) => [id as JobId, state as FoundJob['state']]))
  }

  /** See `Admin.busy`. */
  async busy(leastMs: number): Promise<readonly BusyJob[]> {
    const rows = await this.#connections.run(this.#statements.busy, { least: leastMs, now: this.#now }, looking)
    return rows.map(({ id, job, queue, worker, name, running_ms: runningMs }) => {
      return { id, job, queue, holder: { worker, name }, runningMs } as BusyJob
    })
  }

  get #now(): number | null {
    return this.#options.clock?.now() ?? null
  }
}

/** Locked in the order of ids, so that nobody takes a free one or lets go of a held one in between. */
function cancelText({ jobs, ended }: Relations): string {
  return `with found as materialized (
  select j.id, j.is_held from (select unnest(:ids::bigint[]) as id order by 1) a,
  lateral (select j.id, j.worker is not null as is_held from ${jobs} j where j.id = a.id for update) j),
gone as (delete from ${jobs} j where ${these('found', ' where not p.is_held')} returning j.*),
archived as (${archive(ended, `select g.*, 'cancelled' as state, 0 as cost from gone g`)}),
marked as (update ${jobs} j set cancelled_at = coalesce(j.cancelled_at, ${now}) where ${these('found', ' where p.is_held')})
select f.id, f.is_held from found f`
}

const liveState = `case when j.started_at is not null then 'running' when j.available_at <= ${now} then 'ready' else 'scheduled' end`

/** One statement, so that a job on its way from one table to another is not missed. */
function findText({ jobs, failed, ended, workers }: Relations): string {
  return `select j.job, j.queue, 'live' as home,
  ${liveState} as state,
  j.worker, w.name, j.cancelled_at is not null as marked
from ${jobs} j left join ${workers} w on w.id = j.worker where j.id = :id::bigint
union all select f.job, f.queue, 'failed', 'failed', null, null, false from ${failed} f where f.id = :id::bigint
union all select e.job, e.queue, 'ended', e.state, null, null, false from ${ended} e where e.id = :id::bigint`
}

function statesText({ jobs, failed, ended }: Relations): string {
  return `select j.id, ${liveState} as state from ${jobs} j where j.id = any(:ids::bigint[])
union all select f.id, 'failed' from ${failed} f where f.id = any(:ids::bigint[])
union all select e.id, e.state from ${ended} e where e.id = any(:ids::bigint[])`
}

/** The jobs that somebody holds are few, and have an index. */
function busyText({ jobs, workers }: Relations): string {
  return `select j.id, j.job, j.queue, j.worker, w.name, ${now} - j.started_at as running_ms
from ${jobs} j left join ${workers} w on w.id = j.worker
where j.worker is not null and j.started_at <= ${now} - :least::bigint order by j.started_at, j.id`
}
