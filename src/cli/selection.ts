import { KhepriError } from '../core/errors.ts'
import type { Admin, FailedFilter, FailedJob } from '../core/store/admin.ts'
import type { Held, JobId } from '../core/store/store.ts'
import { didYouMean } from '../core/suggest.ts'
import { nameFlag, textFlag } from './flags.ts'
import { parsePast } from './time.ts'
import { count, listed, mostNamed } from './words.ts'

/** The flags that select failed jobs; all that are given must match. */
export const filterFlags = {
  queue: nameFlag({ char: 'q', summary: 'jobs that failed on this queue' }),
  job: nameFlag({ char: 'j', summary: 'jobs of this name' }),
  error: textFlag({ helpValue: 'TEXT', summary: 'jobs whose error contains this text' }),
  since: textFlag({ helpValue: '2h|TIME', summary: 'failed at or after: so long ago, or an ISO 8601 time' }),
  until: textFlag({ helpValue: '2h|TIME', summary: 'failed before: so long ago, or an ISO 8601 time' }),
}

/** The values of `filterFlags`. */
export interface FilterValues {
  readonly queue: string | undefined
  readonly job: string | undefined
  readonly error: string | undefined
  readonly since: string | undefined
  readonly until: string | undefined
  readonly timezone: string | undefined
}

/** What `idsOrAllArgument` and `--all` say together. Throws USAGE where they contradict each other. */
export function idsOrAll(
  given: readonly (JobId | 'all')[],
  flag: boolean,
): { readonly ids: readonly JobId[]; readonly all: boolean } {
  const ids = given.filter((id) => id !== 'all')
  const all = flag || ids.length < given.length
  if (all && ids.length > 0) throw new KhepriError('USAGE', 'ids and "all" exclude each other')
  return { ids, all }
}

/** The error for a command that would change failed jobs and was told of none. */
export const nothingSelected = (): KhepriError =>
  new KhepriError('USAGE', 'nothing selected', { fix: 'name ids or a filter such as --queue, or say --all' })

/** Turns ids and flags into what the store selects by. An empty filter selects every failed job. Throws USAGE. */
export function failedFilter(
  ids: readonly JobId[],
  { queue, job, error, since, until, timezone }: FilterValues,
): FailedFilter {
  const clock = { timezone, now: Date.now() }
  return {
    ...(ids.length > 0 && { ids }),
    ...(queue !== undefined && { queue }),
    ...(job !== undefined && { job }),
    ...(error !== undefined && { error }),
    ...(since !== undefined && { since: parsePast(since, '--since', clock) }),
    ...(until !== undefined && { until: parsePast(until, '--until', clock) }),
  }
}

/** Tells whether a filter leaves anything out. */
export const isSelective = (filter: FailedFilter): boolean => Object.keys(filter).length > 0

/** Failed jobs as they were when they were looked at, with the few that can be named one by one. */
export interface Selection {
  readonly held: readonly Held[]
  /** The jobs themselves, where they are few. */
  readonly jobs: ReadonlyMap<JobId, FailedJob>
  /** Ids that were asked for and are not there. */
  readonly missing: readonly JobId[]
}

/** Looks the selected jobs up. What fails later is not part of it, whatever becomes of it. */
export async function select(admin: Admin, filter: FailedFilter): Promise<Selection> {
  const held = await admin.selectFailed(filter)
  const found = new Set(held.map(({ id }) => id))
  return {
    held,
    jobs: held.length > mostNamed ? new Map() : await named(admin, held),
    missing: [...new Set(filter.ids ?? [])].filter((id) => !found.has(id)),
  }
}

async function named(admin: Admin, held: readonly Held[]): Promise<ReadonlyMap<JobId, FailedJob>> {
  const jobs = await Promise.all(held.map(({ id }) => admin.findFailed(id)))
  return new Map(jobs.filter((job) => job !== null).map((job) => [job.id, job]))
}

/** What a job is called, as far as it was looked up. */
export interface Names {
  readonly jobs: ReadonlyMap<JobId, { readonly job: string; readonly queue: string }>
}

/** "1 job: 4 (resize-image on high)", or "12,000 jobs" where they are too many to name. */
export function jobsText(ids: readonly JobId[], names: Names): string {
  const all = ids.length > 0 && ids.every((id) => names.jobs.has(id))
  const counted = count(ids.length, 'job')
  return all ? `${counted}: ${ids.map((id) => jobText(id, names)).join(', ')}` : counted
}

/** "4 (resize-image on high)", or the id alone. */
export function jobText(id: JobId, { jobs }: Names): string {
  const found = jobs.get(id)
  return found === undefined ? String(id) : `${id} (${found.job} on ${found.queue})`
}

/** The error for ids that are not among the failed jobs; null where none is missing. */
export function missingError(missing: readonly JobId[]): KhepriError | null {
  return missing.length === 0 ? null : new KhepriError('NOT_FOUND', `no failed job ${listed(missing)}`)
}

/** " on queue "hgih". Did you mean "high"?", for an empty answer to a mistyped filter. */
export async function hintFor(admin: Admin, { queue, job }: FailedFilter): Promise<string> {
  const queueHint = queue === undefined ? '' : await hint(admin, 'queue', queue)
  return queueHint === '' && job !== undefined ? hint(admin, 'job', job) : queueHint
}

async function hint(admin: Admin, by: 'queue' | 'job', word: string): Promise<string> {
  const groups = await admin.failedGroups({}, by)
  return hintAt(
    by,
    word,
    groups.map(({ key }) => key),
  )
}

/** What was perhaps meant instead of a queue or a job that nobody knows; nothing for one that is known. */
export function hintAt(by: 'queue' | 'job', word: string, known: readonly string[]): string {
  if (known.includes(word)) return ''
  return ` ${by === 'queue' ? 'on queue' : 'named'} ${JSON.stringify(word)}${didYouMean(word, known)}`
}

/** Jobs put back or deleted in one transaction: bounds how long it holds the store. */
const chunkSize = 1_000

/** The parts of a list, each of at most `chunkSize`. */
export function* inChunks<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += chunkSize) yield items.slice(start, start + chunkSize)
}
