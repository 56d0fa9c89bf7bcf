import { never } from '../continuations.ts'
import type { Due, Enqueued, JobId, NewJob } from '../store.ts'
import { keyHeld } from '../unique-keys.ts'
import type { Connection } from './connection.ts'
import { requireParents, waitForParents } from './continuations.ts'
import type { Statements } from './statements.ts'

/** Rows in one statement; more gain nothing. */
const rowsAtOnce = 40

/** What writing new jobs needs of a transaction, ours or a caller's. */
export interface Inserting {
  readonly connection: Pick<Connection, 'statement'>
  readonly statements: Statements
  readonly now: number
}

/** Where a job of the batch ends up: under the id of a live job, or at a place among the new rows. */
type Place = { readonly holder: JobId } | { readonly row: number; readonly duplicate: boolean }

/**
 * Writes new jobs, inside a transaction. A unique key that a live job or an earlier one of the batch has writes nothing,
 * unless the new job says otherwise. Throws KEY_HELD, upon which the transaction must not commit.
 */
export function insertJobs(transaction: Inserting, jobs: readonly NewJob[]): readonly Enqueued[] {
  requireParents(transaction, jobs)
  const enqueued = jobs.every(keeps) ? insertOrKeep(transaction, jobs) : jobs.map((job) => insertOne(transaction, job))
  // All of them are there before any is judged: one that is cancelled at once has held its key for the others.
  for (const [index, job] of jobs.entries()) if (waits(job)) makeWait(transaction, enqueued[index] as Enqueued, job)
  return enqueued
}

const keeps = ({ onConflict = 'keep' }: NewJob): boolean => onConflict === 'keep'

function insertOne(transaction: Inserting, job: NewJob): Enqueued {
  const [enqueued] = insertOrKeep(transaction, [job]) as [Enqueued]
  if (!enqueued.duplicate || keeps(job)) return enqueued
  if (job.onConflict === 'error') throw keyHeld(job, enqueued.id)
  return { ...enqueued, replaced: replace(transaction, job) }
}

function replace({ connection, statements, now }: Inserting, job: NewJob): boolean {
  const { onConflict: _, after: __, onParentFailure: ___, due, ...columns } = job
  const parameters = { ...columns, availableAt: momentOf(due, now) }
  return connection.statement(statements.replace).run(parameters).changes === 1
}

function insertOrKeep(transaction: Inserting, jobs: readonly NewJob[]): readonly Enqueued[] {
  const { places, fresh } = arrange(jobs, liveKeys(transaction, jobs))
  const ids = insertRows(transaction, fresh)
  return places.map((place) =>
    'holder' in place
      ? { id: place.holder, duplicate: true }
      : { id: ids[place.row] as JobId, duplicate: place.duplicate },
  )
}

function makeWait(transaction: Inserting, { id, duplicate }: Enqueued, job: NewJob): void {
  if (!duplicate) waitForParents(transaction, id, job, momentOf(job.due, transaction.now))
}

function arrange(jobs: readonly NewJob[], holders: ReadonlyMap<string, JobId>): { places: Place[]; fresh: NewJob[] } {
  const fresh: NewJob[] = []
  const rows = new Map<string, number>()
  const places = jobs.map((job): Place => {
    const holder = holders.get(job.uniqueKey ?? '')
    if (job.uniqueKey !== null && holder !== undefined) return { holder }
    const row = job.uniqueKey === null ? undefined : rows.get(job.uniqueKey)
    if (row !== undefined) return { row, duplicate: true }
    if (job.uniqueKey !== null) rows.set(job.uniqueKey, fresh.length)
    return { row: fresh.push(job) - 1, duplicate: false }
  })
  return { places, fresh }
}

function liveKeys({ connection, statements }: Inserting, jobs: readonly NewJob[]): ReadonlyMap<string, JobId> {
  const keys = jobs.flatMap(({ uniqueKey }) => (uniqueKey === null ? [] : [uniqueKey]))
  if (keys.length === 0) return new Map()
  const rows = connection.statement(statements.liveKeys).all({ keys: JSON.stringify(keys) })
  return new Map((rows as { key: string; id: JobId }[]).map(({ key, id }) => [key, id]))
}

function insertRows(transaction: Inserting, jobs: readonly NewJob[]): JobId[] {
  const ids: JobId[] = []
  for (let at = 0; at < jobs.length; at += rowsAtOnce)
    ids.push(...insertSome(transaction, jobs.slice(at, at + rowsAtOnce)))
  return ids
}

/** Ids within one statement follow each other without a gap: AUTOINCREMENT, and the write lock is ours. */
function insertSome({ connection, statements, now }: Inserting, jobs: readonly NewJob[]): JobId[] {
  const values = jobs.flatMap((job) => [
    ...[job.queue, job.priority, waits(job) ? never : momentOf(job.due, now), job.job],
    ...[job.uniqueKey, job.version, now, job.envelope],
  ])
  const lastId = Number(connection.statement(statements.insert(jobs.length)).run(values).lastInsertRowid)
  return jobs.map((_, index) => lastId - jobs.length + 1 + index)
}

const waits = ({ after = [] }: NewJob): boolean => after.length > 0

function momentOf(due: Due, now: number): number {
  return Math.round('at' in due ? due.at : now + due.delayMs)
}
