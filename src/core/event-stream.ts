/** Items that wait for a slow reader; the oldest are dropped beyond it, since nothing may wait for the reader. */
export const mostWaiting = 10_000

/** Told in place of what a slow reader has missed. */
export interface Dropped {
  readonly event: 'events.dropped'
  readonly count: number
}

/**
 * A queue between who must not wait and who takes its time.
 *
 * Whoever pushes is never slowed down: a reader that falls more than 10,000 items behind loses the oldest, and is told
 * how many. Ended, it hands out what still waits, and then no more.
 */
export class EventStream<Item> implements AsyncIterableIterator<Item | Dropped, undefined> {
  readonly #onEnd: () => void
  readonly #readers: ((result: IteratorResult<Item | Dropped, undefined>) => void)[] = []
  #waiting: Item[] = []
  #dropped = 0
  #isOver = false

  /** onEnd: called once, when nothing more is to be pushed. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  push(item: Item): void {
    if (this.#isOver) return
    const reader = this.#readers.shift()
    if (reader) return reader({ value: item, done: false })
    if (this.#waiting.push(item) <= mostWaiting) return
    // Half of them at once: to move the rest up for each single one would cost whoever pushes.
    const kept = this.#waiting.slice(mostWaiting / 2)
    this.#dropped += this.#waiting.length - kept.length
    this.#waiting = kept
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#onEnd()
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true })
  }

  next(): Promise<IteratorResult<Item | Dropped, undefined>> {
    if (this.#dropped > 0) {
      const value: Dropped = { event: 'events.dropped', count: this.#dropped }
      this.#dropped = 0
      return Promise.resolve({ value, done: false })
    }
    if (this.#waiting.length > 0) return Promise.resolve({ value: this.#waiting.shift() as Item, done: false })
    if (this.#isOver) return Promise.resolve({ value: undefined, done: true })
    return new Promise((resolve) => this.#readers.push(resolve))
  }

  /** What a loop calls that is left early: nothing is kept for it any more. */
  async return(): Promise<IteratorResult<Item | Dropped, undefined>> {
    this.end()
    this.#waiting = []
    this.#dropped = 0
    return { value: undefined, done: true }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }
}
