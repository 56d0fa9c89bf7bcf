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

  /** The store has freed what these batches held so far. */
  freed(batches: readonly number[]): void {
    const now = this.#clock.monotonic()
    for (const batch of batches) if ((this.#disowned.get(batch) ?? now) <= now) this.#disowned.delete(batch)
  }

  forget(): void {
    this.#disowned.clear()
  }
}
