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
  readonly #longestGapMs: number
  readonly #events: EventBus
  /** The loops that cannot reach the store at the moment. */
  readonly #failing = new Set<string>()
  #lostAt = 0
  #goodSince: number
  #heardAt: number
  #skewMs: number

  /** longestGapMs: a longer silence of all loops is no contact, whatever came before and after: the process was frozen. */
  constructor(clock: Clock, events: EventBus, longestGapMs: number) {
    this.#clock = clock
    this.#longestGapMs = longestGapMs
    this.#events = events
    this.#goodSince = this.#heardAt = clock.monotonic()
    this.#skewMs = this.#skew()
  }

  good(loop: string): void {
    this.#hear()
    if (!this.#failing.delete(loop) || this.#failing.size > 0) return
    this.#goodSince = this.#clock.monotonic()
    this.#events.emit('store.back', { outageMs: this.#goodSince - this.#lostAt })
  }

  #hear(): void {
    const now = this.#clock.monotonic()
    if (now - this.#heardAt > this.#longestGapMs) this.#goodSince = now
    this.#heardAt = now
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
