import { KhepriError } from '../core/errors.ts'
import type { Admin, FoundJob, LiveFilter } from '../core/store/admin.ts'
import type { JobId } from '../core/store/store.ts'
import { choiceFlag, nameFlag } from './flags.ts'
import type { Names } from './selection.ts'
import { listed, mostNamed } from './words.ts'

/** The flags that select live jobs; all that are given must match. */
export const liveFilterFlags = {
  queue: nameFlag({ char: 'q', summary: 'jobs on this queue' }),
  job: nameFlag({ char: 'j', summary: 'jobs of this name' }),
  state: choiceFlag(['scheduled', 'ready', 'running'])({ summary: 'jobs in this state' }),
}

/** The values of `liveFilterFlags`. */
export interface LiveFilterValues {
  readonly queue: string | undefined
  readonly job: string | undefined
  readonly state: NonNullable<LiveFilter['state']> | undefined
}

/** Turns ids and flags into what the store selects by. An empty filter selects every live job. */
export function liveFilter(ids: readonly JobId[], { queue, job, state }: LiveFilterValues): LiveFilter {
  return {
    ...(ids.length > 0 && { ids }),
    ...(queue !== undefined && { queue }),
    ...(job !== undefined && { job }),
    ...(state !== undefined && { state }),
  }
}

/** An id that was asked for and is not among the selected jobs, and what there is of it. */
export interface Unselected {
  readonly id: JobId
  /** null: nothing of that id is left, if there ever was anything. */
  readonly state: FoundJob['state'] | null
}

/** Live jobs as they were when they were looked at, with the few that can be named one by one. */
export interface LiveSelection extends Names {
  readonly ids: readonly JobId[]
  readonly unselected: readonly Unselected[]
}

/** Looks the selected jobs up. What is dispatched later is not part of it. */
export async function selectLive(admin: Admin, filter: LiveFilter): Promise<LiveSelection> {
  const ids = await admin.selectLive(filter)
  const found = new Set(ids)
  const others = [...new Set(filter.ids ?? [])].filter((id) => !found.has(id))
  return { ids, jobs: await named(admin, ids), unselected: await statesOf(admin, others) }
}

async function named(admin: Admin, ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob>> {
  if (ids.length > mostNamed) return new Map()
  const jobs = await Promise.all(ids.map((id) => admin.find(id)))
  return new Map(jobs.filter((job) => job !== null).map((job) => [job.id, job]))
}

/** What has become of jobs, in the order asked. */
export async function statesOf(admin: Admin, ids: readonly JobId[]): Promise<readonly Unselected[]> {
  const states = await admin.states(ids)
  return ids.map((id) => ({ id, state: states.get(id) ?? null }))
}

/** One error for each thing that unselected jobs are; none for those that are cancelled already. */
export function unselectedErrors(unselected: readonly Unselected[]): readonly KhepriError[] {
  const groups = Map.groupBy(unselected, ({ state }) => fateOf(state))
  groups.delete('cancelled')
  return [...groups].map(([fate, jobs]) =>
    notAlive(
      fate,
      jobs.map(({ id }) => id),
    ),
  )
}

type Fate = 'gone' | 'failed' | 'done' | 'cancelled' | 'alive'

function fateOf(state: Unselected['state']): Fate {
  if (state === null) return 'gone'
  return state === 'failed' || state === 'done' || state === 'cancelled' ? state : 'alive'
}

function notAlive(fate: Fate, ids: readonly JobId[]): KhepriError {
  const [one, many, fix] = fates[fate]
  const subject = `${ids.length === 1 ? 'job' : 'jobs'} ${listed(ids)}`
  return new KhepriError('NOT_FOUND', `${subject} ${ids.length === 1 ? one : many}`, fix === null ? {} : { fix })
}

/** What is said of one job, of many, and the way out. */
const fates: Readonly<Record<Fate, readonly [string, string, string | null]>> = {
  gone: [
    'is done or was deleted, or never was',
    'are done or were deleted, or never were',
    'keepDone in the configuration keeps done jobs',
  ],
  failed: ['has failed already', 'have failed already', 'khepri flush deletes failed jobs'],
  done: ['is done', 'are done', null],
  cancelled: ['was cancelled already', 'were cancelled already', null],
  alive: ['does not match the filter', 'do not match the filter', null],
}
