import type { Clock } from './clock.ts'

/** Numbers a worker's reservations, and remembers those whose answer was lost. */
export class Batches {
  readonly #clock: Clock
  readonly #leaseMs: number
  /** Each until a lease has passed: a statement that hung may still commit that late. */
  readonly #disowned = new Map<number, number>()
  #last = 0

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
  }

  get disowned(): readonly number[] {
    return [...this.#disowned.keys()]
  }

  next(): number {
    return ++this.#last
  }

  /** What this batch may have reserved is not ours to run: nobody told us of it. */
  disown(batch: number): void {
    this.#disowned.set(batch, this.#clock.monotonic() + this.#leaseMs)
  }

  /**
   * The store has freed what these batches held, in a round that was sent at that moment of the monotonic clock. Those
   * whose time had passed by then are forgotten; not by now: the answer may have waited in a process that was frozen.
   */
  freed(batches: readonly number[], sentAt: number): void {
    for (const batch of batches) if ((this.#disowned.get(batch) ?? sentAt) <= sentAt) this.#disowned.delete(batch)
  }

  forget(): void {
    this.#disowned.clear()
  }
}
