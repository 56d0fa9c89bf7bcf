import type { Clock } from './clock.ts'
import { defaults } from './defaults.ts'

/**
 * When a worker with free slots looks at the store again: at once while jobs come, then ever later up to a ceiling,
 * never later than the next job is due, and never earlier than 50 ms after a look that found nothing.
 */
export class Pace {
  readonly #clock: Clock
  readonly #ceilingMs: number
  #lookAt = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  #emptyLooks = 0

  constructor(clock: Clock, ceilingMs: number) {
    this.#clock = clock
    this.#ceilingMs = ceilingMs
  }

  /** Milliseconds until the next look; 0 for now. */
  get waitMs(): number {
    return Math.max(0, this.#lookAt - this.#clock.monotonic())
  }

  /** The look found something: again at once if it found all it asked for, soon if the store was running dry. */
  found(isAll: boolean): void {
    this.#emptyLooks = 0
    this.#lookAt = isAll ? 0 : this.#clock.monotonic() + defaults.leastSleepMs
  }

  /** The look found nothing; the next job is due in so many milliseconds, or none is known. */
  foundNothing(dueMs: number | null): void {
    const backedOffMs = defaults.leastSleepMs * 2 ** Math.min(this.#emptyLooks++, 20)
    this.#lookedAt = this.#clock.monotonic()
    const waitMs = Math.min(this.#ceilingMs, backedOffMs, dueMs ?? Number.POSITIVE_INFINITY)
    this.#lookAt = this.#lookedAt + Math.max(defaults.leastSleepMs, waitMs)
  }

  /** Looks at once, or a little later where the last look has only just been. */
  wake(): void {
    this.#lookAt = Math.min(this.#lookAt, this.#lookedAt + defaults.leastWakeMs)
  }

  lookNow(): void {
    this.#emptyLooks = 0
    this.#lookAt = 0
  }
}
