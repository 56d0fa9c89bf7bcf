import { formatDuration } from '../core/duration.ts'
import { decodeEnvelope, envelopeVersion } from '../core/envelope.ts'
import type { Parent, PausedQueue, QueueCounts, WholeJob, WorkerRow } from '../core/store/admin.ts'
import { failReasons } from './job-parts.ts'
import { count } from './words.ts'
import { stateOf } from './worker-list.ts'

/** What stands around a job and may be in its way. */
export interface Surroundings {
  /** Epoch milliseconds. */
  readonly at: number
  readonly pauses: readonly PausedQueue[]
  /** The free jobs on its queue that come before it. */
  readonly ahead: number
  readonly workers: readonly WorkerRow[]
  readonly queues: readonly QueueCounts[]
  /** What the job waits for. */
  readonly parents: readonly Parent[]
  /** Writes a moment as the reader wants it. */
  readonly moment: (at: number) => string
}

/** A ready job that free workers leave alone for so long is one that they do not want. */
const pickUpMs = 5_000

/** Says in one line why a job is not running, or what has become of it. */
export function whyNot(job: WholeJob, around: Surroundings): string {
  switch (job.state) {
    case 'running':
      return whyHeld(job, around, 'running on')
    case 'scheduled':
    case 'ready':
      return job.holder === null ? whyWaiting(job, around) : whyHeld(job, around, 'held by')
    case 'failed':
      return `failed: ${job.failure === null ? 'nobody knows why' : failReasons[job.failure.reason]}; khepri retry ${job.id} puts it back`
    case 'done':
      return 'it is done'
    case 'cancelled':
      return 'it was cancelled'
  }
}

function whyHeld({ holder, startedAt, cancelledAt }: WholeJob, { at, moment }: Surroundings, verb: string): string {
  const leaseUntil = holder?.leaseUntil ?? null
  const parts = [
    `${verb} worker ${holder?.name ?? 'of which nothing is known any more'}`,
    ...(startedAt === null ? [] : [`for ${formatDuration(Math.max(0, at - startedAt))}`]),
  ]
  const lease =
    leaseUntil === null || leaseUntil < at
      ? ', which is silent; it is freed as soon as another worker looks'
      : `, lease until ${moment(leaseUntil)}`
  const mark =
    cancelledAt === null
      ? ''
      : `; cancelled ${formatDuration(Math.max(0, at - cancelledAt))} ago, its worker aborts its signal`
  return `${parts.join(' ')}${lease}${mark}`
}

function whyWaiting(job: WholeJob, around: Surroundings): string {
  const reasons = [waits, notDue, paused, notServed, tooNew, suspect, behind, behindQueue]
  for (const reason of reasons) {
    const text = reason(job, around)
    if (text !== null) return text
  }
  return nothingInTheWay(job, around)
}

/** One thing that may be in a job's way, in words; null: it is not. */
type Obstacle = (job: WholeJob, around: Surroundings) => string | null

/** The first few are named; of those that are done already nothing is to be said. */
const waits: Obstacle = (_, { parents }) => {
  if (parents.length === 0) return null
  const open = parents.filter(({ state }) => state !== null && state !== 'done')
  if (open.length === 0) return 'the jobs that it waited for are gone; the next look of a worker decides'
  const named = open.slice(0, mostNamed).map(({ id, state }) => `${id} (${state})`)
  const more = open.length > mostNamed ? ` and ${count(open.length - mostNamed, 'more job')}` : ''
  return `waits for ${open.length === 1 ? 'job' : 'jobs'} ${named.join(', ')}${more}${retryHint(open)}`
}

const mostNamed = 5

/** What leads on where a failed job is waited for. */
function retryHint(parents: readonly Parent[]): string {
  const failed = parents.find(({ state, onFailure }) => state === 'failed' && onFailure === 'wait')
  return failed === undefined ? '' : `; khepri retry ${failed.id} leads on`
}

const notDue: Obstacle = (job, { at, moment }) => {
  const { availableAt, failures } = job
  if (availableAt === null || availableAt <= at) return null
  const when = `${formatDuration(availableAt - at)}, at ${moment(availableAt)}`
  return failures === 0 ? `not due for ${when}` : `next retry in ${when} (try ${failures + 1}${triesOf(job)})`
}

/** "/5" where the envelope says so; otherwise its worker decides. */
function triesOf({ envelope, job }: WholeJob): string {
  try {
    const { tries } = decodeEnvelope(envelope, job)
    return tries === null ? '' : `/${tries}`
  } catch {
    // Poison fails at its next run; until then it is a job like any other.
    return ''
  }
}

const paused: Obstacle = ({ queue }, { pauses, moment }) => {
  const pause = pauses.find((each) => each.queue === queue)
  if (pause === undefined) return null
  const until = pause.until === null ? '' : `, until ${moment(pause.until)}`
  const reason = pause.reason === null ? '' : `: ${pause.reason}`
  return `its queue ${queue} is paused since ${moment(pause.pausedAt)}${until}${reason}`
}

const notServed: Obstacle = (job, around) =>
  serving(job, around).length === 0 ? `no live worker serves its queue ${job.queue}` : null

const tooNew: Obstacle = ({ version }) =>
  version > envelopeVersion ? `its envelope is of version ${version}, which only a newer khepri can read` : null

const suspect: Obstacle = ({ isSuspect }) =>
  isSuspect ? 'it was running when its worker died: it waits to run alone, on a worker that holds nothing else' : null

const behind: Obstacle = ({ queue }, { ahead }) =>
  ahead > 0 ? `waiting behind ${count(ahead, 'job')} on ${queue} of a better priority or a longer wait` : null

/** A queue that every serving worker names before this one. */
const behindQueue: Obstacle = (job, around) => {
  const before = serving(job, around).map(({ queues }) =>
    queues.split(',').slice(0, queues.split(',').indexOf(job.queue)),
  )
  const better = around.queues.find(
    ({ queue, ready, paused }) => ready > 0 && !paused && before.every((names) => names.includes(queue)),
  )
  return better === undefined
    ? null
    : `waiting behind ${count(better.ready, 'ready job')} on the better queue ${better.queue}`
}

function nothingInTheWay(job: WholeJob, around: Surroundings): string {
  const workers = serving(job, around)
  const free = workers.find(({ running, concurrency }) => running < concurrency)
  if (free === undefined) return `waiting for a free slot on ${workers.map(({ name }) => name).join(', ')}`
  if (around.at - (job.availableAt ?? around.at) < pickUpMs) return `ready: worker ${free.name} takes it next`
  return `worker ${free.name} has a free slot and leaves it alone: does it know the job ${job.job}, and do --job and --except-job let it in?`
}

/** Living workers that take new jobs from its queue. */
function serving({ queue }: WholeJob, { workers, at }: Surroundings): readonly WorkerRow[] {
  return workers.filter(
    (worker) =>
      stateOf(worker, at) === 'working' && (worker.queues === '*' || worker.queues.split(',').includes(queue)),
  )
}
