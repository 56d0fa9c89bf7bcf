import type { Clock } from './clock.ts'
import { isKhepriError } from './errors.ts'
import type { EventBus } from './events.ts'

/** Wall and monotonic clock further apart than this: the machine slept, or its time was set. */
const jumpMs = 5_000

/**
 * What a worker knows about its contact with the store: one event when an outage starts and one when it ends,
 * and since when contact has been unbroken, without which nobody may judge a neighbour.
 */
export class Contact {
  readonly #clock: Clock
  readonly #events: EventBus
  /** The loops that cannot reach the store at the moment. */
  readonly #failing = new Set<string>()
  #lostAt = 0
  #goodSince: number
  #skewMs: number

  constructor(clock: Clock, events: EventBus) {
    this.#clock = clock
    this.#events = events
    this.#goodSince = clock.monotonic()
    this.#skewMs = this.#skew()
  }

  good(loop: string): void {
    if (!this.#failing.delete(loop) || this.#failing.size > 0) return
    this.#goodSince = this.#clock.monotonic()
    this.#events.emit('store.back', { outageMs: this.#goodSince - this.#lostAt })
  }

  lost(loop: string, error: unknown): void {
    if (this.#failing.size === 0) {
      this.#lostAt = this.#clock.monotonic()
      this.#events.emit('store.lost', { message: isKhepriError(error) ? error.message : String(error) })
    }
    this.#failing.add(loop)
  }

  /** True when contact has been unbroken for so long, without a jump of the clock in between. */
  hasBeenGoodFor(ms: number): boolean {
    if (Math.abs(this.#skew() - this.#skewMs) > jumpMs) {
      this.#skewMs = this.#skew()
      this.#goodSince = this.#clock.monotonic()
    }
    return this.#failing.size === 0 && this.#clock.monotonic() - this.#goodSince >= ms
  }

  #skew(): number {
    return this.#clock.now() - this.#clock.monotonic()
  }
}
