import { KhepriError } from '../../errors.ts'
import type { Retried } from '../admin.ts'
import type { StoreOptions } from '../options.ts'
import type { Held, JobId } from '../store.ts'
import type { Row } from './connection.ts'
import type { Call, Connections, Transaction } from './connections.ts'
import { holders, now, type Relations, relations } from './fragments.ts'
import { heldOf, keyOf, withoutRepeats } from './held.ts'
import { bigints, type Statement, statement, texts } from './statement.ts'

/** Jobs that one statement moves or deletes; a call with more takes several in one transaction. */
const atOnce = 5_000

/** So often a blocked job is tried again because the holder of its key is gone before it can be named. */
const mostTries = 20

const retrying: Call = { doing: 'retry failed jobs', kind: 'writing' }
const deleting: Call = { doing: 'delete failed jobs', kind: 'writing' }

/** Takes jobs out of the failed table: back to their queues, or away. */
export class FailedJobs {
  readonly #connections: Connections
  readonly #options: StoreOptions
  readonly #statements: { readonly retry: Statement; readonly remove: Statement; readonly holders: Statement }

  constructor(connections: Connections, options: StoreOptions) {
    const tables = relations(options.names, options.schema)
    this.#connections = connections
    this.#options = options
    this.#statements = {
      retry: statement(retryText(tables)),
      remove: statement(removeText(tables)),
      holders: statement(holders(tables.jobs)),
    }
  }

  /** See `Admin.retryFailed`. */
  async retry(jobs: readonly Held[], delayMs: number): Promise<Retried> {
    const asked = withoutRepeats(jobs)
    const fates = await this.#connections.transaction(retrying, async (transaction) => {
      const found = new Map<string, Fate>()
      for (const chunk of chunksOf(asked)) await this.#retryChunk(transaction, chunk, delayMs, found)
      return found
    })
    return sorted(jobs, asked, fates)
  }

  async #retryChunk(
    transaction: Transaction,
    jobs: readonly Held[],
    delayMs: number,
    fates: Map<string, Fate>,
  ): Promise<void> {
    const now = this.#options.clock?.now() ?? null
    let open = jobs
    for (let tries = 0; tries < mostTries; tries++) {
      const rows = await transaction.run(this.#statements.retry, { now, delay: delayMs, ...columnsOf(open) })
      for (const row of rows) if (row.added) fates.set(keyOf(heldOf(row)), 'retried')
      const blocked = rows.filter((row) => !row.added)
      if (blocked.length > 0) await this.#nameHolders(transaction, blocked, fates)
      open = blocked.map(heldOf).filter((held) => !fates.has(keyOf(held)))
      if (open.length === 0) return
    }
    throw new KhepriError('STORE_BUSY', `the unique key of a failed job was taken and freed ${mostTries} times`, {
      fix: 'try again',
    })
  }

  async #nameHolders(transaction: Transaction, blocked: readonly Row[], fates: Map<string, Fate>): Promise<void> {
    const keys = texts(blocked.map((row) => row.unique_key as string))
    const rows = await transaction.run(this.#statements.holders, { keys })
    const holders = new Map(rows.map((row) => [row.key, row.id as JobId]))
    for (const row of blocked) {
      const holder = holders.get(row.unique_key)
      if (holder !== undefined) fates.set(keyOf(heldOf(row)), { holder })
    }
  }

  /** See `Admin.deleteFailed`. */
  async remove(jobs: readonly Held[]): Promise<readonly JobId[]> {
    const asked = withoutRepeats(jobs)
    const gone = await this.#connections.transaction(deleting, async (transaction) => {
      const ids = new Set<JobId>()
      for (const chunk of chunksOf(asked))
        for (const row of await transaction.run(this.#statements.remove, columnsOf(chunk))) ids.add(row.id as JobId)
      return ids
    })
    return asked.map(({ id }) => id).filter((id) => gone.delete(id))
  }
}

type Fate = 'retried' | { readonly holder: JobId }

/** In the order asked; what was named twice is found only once. */
function sorted(jobs: readonly Held[], asked: readonly Held[], fates: ReadonlyMap<string, Fate>): Retried {
  const first = new Set(asked)
  const retried: JobId[] = []
  const missing: JobId[] = []
  const blocked: { id: JobId; holder: JobId }[] = []
  for (const held of jobs) {
    const fate = first.has(held) ? fates.get(keyOf(held)) : undefined
    if (fate === undefined) missing.push(held.id)
    else if (fate === 'retried') retried.push(held.id)
    else blocked.push({ id: held.id, holder: fate.holder })
  }
  return { retried, missing, blocked }
}

function chunksOf(jobs: readonly Held[]): readonly (readonly Held[])[] {
  return Array.from({ length: Math.ceil(jobs.length / atOnce) }, (_, index) =>
    jobs.slice(index * atOnce, (index + 1) * atOnce),
  )
}

function columnsOf(jobs: readonly Held[]) {
  return { ids: bigints(jobs.map(({ id }) => id)), fences: bigints(jobs.map(({ fence }) => fence)) }
}

/** `found` are the failed jobs that are still what was selected, locked in the order of their ids. */
function found({ failed }: Relations): string {
  return `asked as materialized (
  select * from unnest(:ids::bigint[], :fences::bigint[]) with ordinality as u(id, fence, place)),
found as materialized (
  select f.*, a.place from (select * from asked order by id) a,
  lateral (select f.* from ${failed} f where f.id = a.id and f.fence = a.fence for update) f)`
}

function retryText(tables: Relations): string {
  return `with ${found(tables)},
added as (
  insert into ${tables.jobs} (id, queue, priority, available_at, fence, job, unique_key, version, enqueued_at, envelope)
  select f.id, f.queue, f.priority, ${now} + :delay::bigint, f.fence, f.job, f.unique_key, f.version, f.enqueued_at,
    f.envelope from found f order by f.place
  on conflict (unique_key) where unique_key is not null do nothing returning id),
gone as (delete from ${tables.failed} f where f.id = any(array(select a.id from added a)))
select f.id, f.fence, f.unique_key, a.id is not null as added from found f left join added a on a.id = f.id order by f.place`
}

function removeText(tables: Relations): string {
  return `with ${found(tables)},
lost as (update ${tables.parents} p set lost = 1 where p.parent = any(array(select f.id from found f))),
history as (delete from ${tables.attempts} t where t.job_id = any(array(select f.id from found f)))
delete from ${tables.failed} f where f.id = any(array(select o.id from found o)) returning f.id`
}
