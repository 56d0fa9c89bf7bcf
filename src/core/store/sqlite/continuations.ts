import {
  judgement,
  leavesQueue,
  lookedAtOnce,
  lookedUpTo,
  never,
  requireGivenOut,
  type Waiting,
} from '../continuations.ts'
import type { TableNames } from '../names.ts'
import type { JobId, NewJob, Settlement } from '../store.ts'
import type { Inserting } from './insertion.ts'
import type { Transaction } from './transaction.ts'

const listed = (parameter: string) => `in (select value from json_each(:${parameter}))`

/** The texts about jobs that wait for others. */
export function continuationTexts({ jobs, failed, ended, parents }: TableNames) {
  const tables = { jobs: `"${jobs}"`, failed: `"${failed}"`, ended: `"${ended}"` }
  return {
    /** The last id that was given out. */
    lastId: `select coalesce((select seq from sqlite_sequence where name = '${jobs}'), 0)`,

    link: `insert or ignore into "${parents}" (parent, child, on_failure, available_at)
      select value, :child, :onFailure, :availableAt from json_each(:parents)`,

    /** Nearly always none, and then nothing more is asked. */
    anyParents: `select exists (select 1 from "${parents}")`,

    childrenOf: `select distinct child from "${parents}" where parent ${listed('ids')}`,

    judgeChildren: judgement(tables, `"${parents}" p where p.child ${listed('ids')}`),

    /** Some of those that wait, upwards from an id. */
    judgeWaiting: judgement(
      tables,
      `"${parents}" p where p.child in (select child from "${parents}" where child > :after order by child limit ${lookedAtOnce})`,
    ),

    /** Those of them that wait: no others are touched. */
    stillWaiting: `select id from "${jobs}" where id ${listed('ids')} and available_at = ${never} and worker is null`,

    releaseChildren: `update "${jobs}" set available_at = (select max(p.available_at) from "${parents}" p where p.child = "${jobs}".id)
      where id ${listed('ids')}`,

    unlink: `delete from "${parents}" where child ${listed('ids')}`,
  }
}

/** Throws NOT_FOUND for a parent whose id was never given out. */
export function requireParents({ connection, statements }: Inserting, jobs: readonly NewJob[]): void {
  const parents = jobs.flatMap(({ after = [] }) => after)
  if (parents.length > 0) requireGivenOut(parents, connection.statement(statements.lastId).pluck().get() as JobId)
}

/** Makes a new job wait for its parents; it is due by its own terms at once where none of them is to be waited for. */
export function waitForParents(transaction: Inserting, child: JobId, job: NewJob, availableAt: number): void {
  const { after = [], onParentFailure: onFailure = 'wait' } = job
  if (after.length === 0) return
  const { connection, statements } = transaction
  connection.statement(statements.link).run({ child, parents: JSON.stringify(after), onFailure, availableAt })
  releaseSome(transaction, [child])
}

/** Releases, or cancels, what waited for these jobs alone. To be called where attempts have ended. */
export function releaseChildrenOf(transaction: Transaction, settled: readonly Pick<Settlement, 'id' | 'kind'>[]): void {
  const { connection, statements } = transaction
  if (settled.length === 0 || connection.statement(statements.anyParents).pluck().get() === 0) return
  const ids = settled.filter(({ kind }) => leavesQueue(kind)).map(({ id }) => id)
  releaseAll(transaction, childrenOf(transaction, ids))
}

/** Releases those of these jobs that wait no more, and what waited for those that are cancelled by that; answers how many. */
export function releaseAll(transaction: Transaction, ids: readonly JobId[]): number {
  let count = 0
  for (let open = ids; open.length > 0; ) {
    const { released, cancelled } = releaseSome(transaction, open)
    count += released.length + cancelled.length
    open = childrenOf(transaction, cancelled)
  }
  return count
}

/** Looks at some of the jobs that wait for others, upwards from an id. */
export function lookAtWaiting({ connection, statements }: Transaction, after: JobId): Waiting {
  const judged = connection.statement(statements.judgeWaiting).all({ after }) as Judged[]
  const ids = judged.map(({ child }) => child)
  const waiting = new Set(connection.statement(statements.stillWaiting).pluck().all(listOf(ids)) as JobId[])
  const settled = judged.filter((one) => isSettled(one) || !waiting.has(one.child)).map(({ child }) => child)
  return { settled, upTo: lookedUpTo(judged) }
}

interface Judged {
  readonly child: JobId
  readonly parents: number
  readonly is_lost: number
  readonly is_held: number
}

const isSettled = ({ is_lost, is_held }: Judged): boolean => is_lost === 1 || is_held === 0
const listOf = (ids: readonly JobId[]) => ({ ids: JSON.stringify(ids) })

function childrenOf({ connection, statements }: Transaction, ids: readonly JobId[]): readonly JobId[] {
  if (ids.length === 0) return []
  return connection.statement(statements.childrenOf).pluck().all(listOf(ids)) as JobId[]
}

function releaseSome(
  { connection, statements, now }: Inserting,
  ids: readonly JobId[],
): { readonly released: readonly JobId[]; readonly cancelled: readonly JobId[] } {
  const waiting = new Set(connection.statement(statements.stillWaiting).pluck().all(listOf(ids)) as JobId[])
  const judged = connection.statement(statements.judgeChildren).all(listOf(ids)) as Judged[]
  const settled = judged.filter((one) => isSettled(one) && waiting.has(one.child))
  const released = settled.filter(({ is_lost }) => is_lost === 0).map(({ child }) => child)
  const cancelled = settled.filter(({ is_lost }) => is_lost === 1).map(({ child }) => child)
  if (released.length > 0) connection.statement(statements.releaseChildren).run(listOf(released))
  if (cancelled.length > 0) {
    connection.statement(statements.archive).run({ ...listOf(cancelled), state: 'cancelled', cost: 0, now })
    connection.statement(statements.remove).run(listOf(cancelled))
  }
  const loose = ids.filter((id) => !waiting.has(id))
  const unlinked = [...released, ...cancelled, ...loose]
  if (unlinked.length > 0) connection.statement(statements.unlink).run(listOf(unlinked))
  return { released, cancelled }
}
