import type { Clock } from '../../clock.ts'
import type { JobId, NewJob, Reservation, Round, Wish } from '../store.ts'
import { inGroups } from './round.ts'

/** One priority of one queue, and the last of its jobs, in run order, that was reserved. */
export interface Mark {
  /** The group in which its queue stands. */
  readonly group: number
  readonly queue: string
  readonly priority: number
  /** Epoch milliseconds. */
  readonly availableAt: number
  readonly id: JobId
}

/** A worker that reserves fewer at once has time to look everywhere. */
const leastLimit = 50

/** A reservation that looks everywhere comes at least so often, */
const fullEveryMs = 250
/** but takes at most a twentieth of the time. */
const costFactor = 20

/**
 * Where the next jobs of a busy worker begin: the low-water marks of the queues it drains.
 *
 * Rows that were reserved or settled leave dead entries at the head of the index, and as long as any old snapshot is
 * open nothing removes them: each reservation would walk over all of them again. So while a queue gives as much as is
 * asked of it, a reservation starts behind the last job that this process has reserved there. What may lie before a
 * mark, or in a level without one, is met by the next reservation that looks everywhere: after 250 ms, or twenty times
 * what that costs, and at once after anything of our own that could put it there.
 */
export class Marks {
  readonly #clock: Clock
  readonly #levels = new Map<string, Mark>()
  /** What the marks were made for: other wishes may want what they have passed. */
  #wanted = ''
  #fullAt = Number.NEGATIVE_INFINITY
  /** Milliseconds that the last round from marks took. */
  #quickMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The levels that a reservation may start from, in no order; null: it has to look everywhere. */
  for(wish: Wish): readonly Mark[] | null {
    const isKnown = this.#levels.size > 0 && this.#wanted === wantedBy(wish)
    if (!isKnown || !suits(wish) || this.#clock.monotonic() >= this.#fullAt) return null
    return [...this.#levels.values()]
  }

  /** Takes in what a reservation has found. marked: where it started from marks. ms: how long its round took. */
  found(
    wish: Wish,
    reserved: readonly Reservation[],
    { marked, ms }: { readonly marked: boolean; readonly ms: number },
  ): void {
    if (reserved.length < wish.limit || !suits(wish)) return this.forget()
    if (marked) this.#quickMs = ms
    else this.#begin(wish, ms)
    const groups = wish.queues === 'all' ? null : inGroups(wish.queues)
    for (const { queue, priority, availableAt, id } of reserved) {
      const key = keyOf(queue, priority)
      const mark = { group: groups?.get(queue) ?? 1, queue, priority, availableAt, id }
      // With two rounds under way the answers may come in another order.
      if (isLater(mark, this.#levels.get(key))) this.#levels.set(key, mark)
    }
  }

  /** Takes in jobs of our own that were enqueued. */
  added(jobs: readonly NewJob[]): void {
    const isAhead = ({ queue, priority, due }: NewJob) => 'delayMs' in due && this.#levels.has(keyOf(queue, priority))
    if (!jobs.every(isAhead)) this.forget()
  }

  /** The next reservation looks everywhere. */
  forget(): void {
    this.#levels.clear()
  }

  #begin(wish: Wish, ms: number): void {
    this.#levels.clear()
    this.#wanted = wantedBy(wish)
    this.#fullAt = this.#clock.monotonic() + Math.max(fullEveryMs, costFactor * (ms - this.#quickMs))
  }
}

function isLater(mark: Mark, than: Mark | undefined): boolean {
  if (than === undefined || mark.availableAt > than.availableAt) return true
  return mark.availableAt === than.availableAt && mark.id > than.id
}

function keyOf(queue: string, priority: number): string {
  return `${priority} ${queue}`
}

/** Tells whether a round can put a job behind a mark, or into a level without one. */
export function mayPassMarks({ settle, enqueue, disown }: Round): boolean {
  return enqueue.length > 0 || disown.length > 0 || settle.some(({ kind }) => kind === 'release')
}

/** A worker that holds nothing looks for suspects, and has no need to hurry. */
function suits({ limit, suspects }: Wish): boolean {
  return limit >= leastLimit && !suspects
}

function wantedBy({ queues, exceptQueues, only, except, exclude, maxVersion }: Wish): string {
  return JSON.stringify([queues, exceptQueues, only, except, exclude, maxVersion])
}
