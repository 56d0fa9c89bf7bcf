import { diedAt, type Evidence, nameOf, pausesOf, type Run, type Story } from './evidence.ts'
import type { AskedJob } from './history.ts'
import { told } from './second-starts.ts'
import type { Violation } from './violation.ts'

/** A better job that becomes ready later waits this long for jobs that a worker holds unstarted. */
const heldUnstartedMs = 250

interface Waiting {
  readonly story: Story
  readonly first: Run
  readonly readyAt: number
}

/**
 * Promise 11, over first starts.
 *
 * A job that was surely ready when a worse one was reserved, and that still waited when it started, was passed over. Left
 * out is what waited while a worker died or stood still: it may have been reserved there without having been started. A
 * worker with several slots may start a job long after it was reserved, so only those with one are judged.
 */
export function judgeOrder(evidence: Evidence): Violation[] {
  return comparableIn(evidence)
    .passedOver.slice(0, 20)
    .map(([better, worse]) => ({
      promise: 'ordered',
      what: `${nameOf(better.story)} (${placeOf(better.story.asked)}) waited while ${nameOf(worse.story)} (${placeOf(worse.story.asked)}) started ${told(worse.first)}`,
    }))
}

/** How many first starts could be compared with what waited. */
export function orderedStarts(evidence: Evidence): number {
  return comparableIn(evidence).compared
}

const placeOf = ({ queue, priority }: AskedJob): string => `queue ${queue}, priority ${priority}`

function comparableIn(evidence: Evidence): { readonly compared: number; readonly passedOver: [Waiting, Waiting][] } {
  const { promptMs } = evidence.history.timing
  const waiting = waitingIn(evidence)
  const arrivals = waiting.toSorted((a, b) => a.readyAt - b.readyAt)
  const starts = waiting.toSorted((a, b) => a.first.startedAt - b.first.startedAt)
  const lines = new Lines()
  const passedOver: [Waiting, Waiting][] = []
  let compared = 0
  let arrived = 0
  for (const start of starts) {
    const at = start.first.startedAt
    for (; (arrivals[arrived]?.readyAt ?? Number.POSITIVE_INFINITY) <= at - heldUnstartedMs - promptMs; arrived++)
      lines.add(arrivals[arrived] as Waiting)
    if (lines.isEmpty(at) || start.first.worker.concurrency > 1) continue
    compared++
    const better = lines.better(start, at + heldUnstartedMs + promptMs)
    if (better) passedOver.push([better, start])
  }
  return { compared, passedOver }
}

function waitingIn({ stories, history }: Evidence): readonly Waiting[] {
  const troubles = history.workers
    .flatMap((worker) =>
      [diedAt(worker) ?? [], pausesOf(worker).map(({ from }) => from), pausesOf(worker).map(({ to }) => to)].flat(),
    )
    .sort((a, b) => a - b)
  return stories.flatMap((story): Waiting[] => {
    const [first] = story.runs
    if (!first || story.dispatch.code !== 0 || story.asked.delayMs > 0) return []
    const readyAt = story.dispatch.endedAt
    return hasBetween(troubles, readyAt, first.startedAt) ? [] : [{ story, first, readyAt }]
  })
}

/** Tells whether a sorted list has a value in a span, by halving. */
function hasBetween(sorted: readonly number[], from: number, to: number): boolean {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] as number) < from) low = middle + 1
    else high = middle
  }
  return (sorted[low] ?? Number.POSITIVE_INFINITY) <= to
}

/** What waits, in one line for each queue and priority: within a line the order is that of dispatch. */
class Lines {
  readonly #lines = new Map<string, Waiting[]>()

  add(waiting: Waiting): void {
    const place = placeOf(waiting.story.asked)
    const line = this.#lines.get(place)
    if (line) line.push(waiting)
    else this.#lines.set(place, [waiting])
  }

  /** Drops what has started by then. */
  isEmpty(at: number): boolean {
    for (const line of this.#lines.values()) while (line[0] && line[0].first.startedAt <= at) line.shift()
    return [...this.#lines.values()].every((line) => line.length === 0)
  }

  /** One that waits in a better place than `start`, and still waits after `until`. */
  better(start: Waiting, until: number): Waiting | undefined {
    const { queues } = start.first.worker
    for (const line of this.#lines.values()) {
      const [head] = line
      if (!head || !queues.includes(head.story.asked.queue)) continue
      const rank = compare(head.story.asked, start.story.asked, queues)
      if (rank > 0) continue
      // Within one line whoever comes after somebody that is not better is not better either.
      const end = rank < 0 ? line.length : line.findIndex((each) => !isBefore(each, start))
      const found = line.slice(0, end === -1 ? line.length : end).find(({ first }) => first.startedAt > until)
      if (found) return found
    }
    return undefined
  }
}

function compare(a: AskedJob, b: AskedJob, queues: readonly string[]): number {
  return queues.indexOf(a.queue) - queues.indexOf(b.queue) || a.priority - b.priority
}

/** Surely dispatched before: by a command that had ended, or earlier in the same file. */
function isBefore(a: Waiting, b: Waiting): boolean {
  if (a.story.dispatch === b.story.dispatch)
    return a.story.dispatch.asked.indexOf(a.story.asked) < a.story.dispatch.asked.indexOf(b.story.asked)
  return a.story.dispatch.endedAt < b.story.dispatch.startedAt
}
