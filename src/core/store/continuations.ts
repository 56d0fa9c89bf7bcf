import { KhepriError } from '../errors.ts'
import type { JobId, Settlement } from './store.ts'

/**
 * What the stores share about jobs that wait for others.
 *
 * A child is an ordinary row whose availableAt is never: nothing that reserves has to know about parents, its unique key
 * is taken, and it is cancelled, counted and listed as every other job that is not due. What it waits for, and when it may
 * run by its own terms, stands in rows of the parents' table; without any such row nobody ever asks that table twice.
 */

/** The availableAt of a job that waits for others: beyond every moment that a dispatch may name, and still a date. */
export const never = 8_640_000_000_000_000

/** For so many parents children are looked at in one recovery: many may wait for long, and nothing is to be read whole. */
export const lookedAtOnce = 500

/** Tells whether a job leaves the queue by it: only then can it matter to those that wait for it. */
export function leavesQueue(kind: Settlement['kind']): boolean {
  return kind !== 'retry' && kind !== 'release'
}

/** What a look at some of the jobs that wait has found. */
export interface Waiting {
  /** Those that wait for nothing any more. */
  readonly settled: readonly JobId[]
  /** How far the look has come; null: to the end. */
  readonly upTo: JobId | null
}

/** The quoted tables that a judgement reads. */
export interface JudgedTables {
  readonly jobs: string
  readonly failed: string
  readonly ended: string
}

/**
 * The text that judges jobs by their parents, a row each: `is_lost` 1 where it is to be cancelled, `is_held` 1 where a
 * parent may yet be done. A parent of which nothing is kept is done: whatever else removes one says so in `lost`.
 *
 * rows: the rows `p` of the parents' table that are read, as they stand after FROM.
 */
export function judgement({ jobs, failed, ended }: JudgedTables, rows: string): string {
  // Not "exists": Postgres would make it one read of the whole table where it does not know how big that is.
  const has = (table: string, more = ''): string =>
    `(select x.id from ${table} x where x.id = p.parent${more} limit 1) is not null`
  const isLost = `p.on_failure <> 'run' and (p.lost = 1 or ${has(ended, " and x.state = 'cancelled'")}
      or (p.on_failure = 'cancel' and ${has(failed)}))`
  const isHeld = `${has(jobs)} or (p.on_failure = 'wait' and ${has(failed)})`
  return `select p.child, max(p.available_at) as available_at, max(case when ${isLost} then 1 else 0 end) as is_lost,
    max(case when ${isHeld} then 1 else 0 end) as is_held, count(*) as parents
  from ${rows} group by p.child`
}

/** How far a look has come that was judged in these rows: to the end, unless it has read as much as it may. */
export function lookedUpTo(rows: readonly { readonly child: JobId; readonly parents: number }[]): JobId | null {
  const read = rows.reduce((sum, { parents }) => sum + parents, 0)
  return read < lookedAtOnce ? null : Math.max(...rows.map(({ child }) => child))
}

/** Throws NOT_FOUND for a parent whose id was never given out: nothing would ever say that it is done. */
export function requireGivenOut(parents: readonly JobId[], lastId: JobId): void {
  const unknown = parents.find((id) => id > lastId || id < 1)
  if (unknown === undefined) return
  throw new KhepriError('NOT_FOUND', `after names job ${unknown}, and no job has had that id yet`, {
    fix: 'khepri list shows the jobs that there are',
  })
}
