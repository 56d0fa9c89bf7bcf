import type { Filter, Wish } from '../store.ts'
import type { LiveJob, MemoryState } from './state.ts'

/** Takes from the due jobs what the wish allows, in the order in which they should run. */
export function selectFor(state: MemoryState, wish: Wish): LiveJob[] {
  const due = takeable(state, wish)
    .filter((job) => job.availableAt <= state.now())
    .sort(inRunOrder(wish))
  return withinBytes(survivorsAtOnce(suspectsAlone(due), wish.started).slice(0, wish.limit), wish.maxBytes)
}

/** Every job, due or not, that a worker with this filter could take: the one condition of reserve, nextDue and look. */
export function takeable(state: MemoryState, filter: Filter): LiveJob[] {
  return wantedOfAnyVersion(state, filter).filter((job) => job.version <= filter.maxVersion)
}

/** What the worker would take if it could read every envelope. */
export function wantedOfAnyVersion(state: MemoryState, filter: Filter): LiveJob[] {
  return [...state.jobs.values()].filter(
    (job) =>
      job.worker === null &&
      job.cancelledAt === null &&
      groupOf(filter, job.queue) >= 0 &&
      !filter.exceptQueues.includes(job.queue) &&
      !state.isPaused(job.queue) &&
      (filter.only === null || filter.only.includes(job.job)) &&
      !filter.except.includes(job.job) &&
      !filter.exclude.includes(job.id) &&
      (filter.suspects || !job.suspect),
  )
}

function groupOf(filter: Filter, queue: string): number {
  return filter.queues === 'all' ? 0 : filter.queues.findIndex((group) => group.includes(queue))
}

function inRunOrder(filter: Filter): (a: LiveJob, b: LiveJob) => number {
  return (a, b) =>
    groupOf(filter, a.queue) - groupOf(filter, b.queue) ||
    a.priority - b.priority ||
    a.availableAt - b.availableAt ||
    a.id - b.id
}

/** A suspect at the head comes alone; further back it is passed over. */
function suspectsAlone(jobs: readonly LiveJob[]): readonly LiveJob[] {
  return jobs[0]?.suspect ? jobs.slice(0, 1) : jobs.filter((job) => !job.suspect)
}

/** A survivor comes to be started, or not at all; nor does what stands behind it. */
function survivorsAtOnce(jobs: readonly LiveJob[], started: number): readonly LiveJob[] {
  const first = jobs.findIndex((job, place) => job.survivor && place >= started)
  return first === -1 ? jobs : jobs.slice(0, first)
}

function withinBytes(jobs: readonly LiveJob[], maxBytes: number): LiveJob[] {
  let bytes = 0
  const firstTooMany = jobs.findIndex((job, index) => {
    bytes += Buffer.byteLength(job.envelope)
    return index > 0 && bytes > maxBytes
  })
  return firstTooMany === -1 ? [...jobs] : jobs.slice(0, firstTooMany)
}
