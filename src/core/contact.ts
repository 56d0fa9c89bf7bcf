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
  /** When the last outage was told to be over. */
  #backAt = Number.NEGATIVE_INFINITY
  #goodSince: number
  #beatAt: number
  #skewMs: number

  /**
   * longestGapMs: between two beats of our own. Whose beats hang cannot tell the silence of others from its own: the
   * process was frozen, or somebody holds a lock, which lets looks through and no beat of anybody.
   */
  constructor(clock: Clock, events: EventBus, longestGapMs: number) {
    this.#clock = clock
    this.#longestGapMs = longestGapMs
    this.#events = events
    this.#goodSince = this.#beatAt = clock.monotonic()
    this.#skewMs = this.#skew()
  }

  good(loop: string): void {
    if (loop === 'beat') this.#beaten()
    if (!this.#failing.delete(loop) || this.#failing.size > 0) return
    this.#goodSince = this.#backAt = this.#clock.monotonic()
    this.#events.emit('store.back', { outageMs: this.#goodSince - this.#lostAt })
  }

  #beaten(): void {
    if (this.#isBeatOverdue) this.#goodSince = this.#clock.monotonic()
    this.#beatAt = this.#clock.monotonic()
  }

  get #isBeatOverdue(): boolean {
    return this.#clock.monotonic() - this.#beatAt > this.#longestGapMs
  }

  /**
   * sentAt: when what failed was sent, by the monotonic clock. One silence breaks every session at its own deadline; what
   * was sent before the end of an outage was told is a part of it, and no news.
   */
  lost(loop: string, error: unknown, sentAt: number): void {
    if (this.#failing.size === 0) {
      if (sentAt < this.#backAt) {
        this.#goodSince = this.#clock.monotonic()
        return
      }
      this.#lostAt = this.#clock.monotonic()
      this.#events.emit('store.lost', { message: isKhepriError(error) ? error.message : String(error) })
    }
    this.#failing.add(loop)
  }

  /** An outage has been told of and is not over. */
  get isLost(): boolean {
    return this.#failing.size > 0
  }

  /** True when contact has been unbroken for so long, without a jump of the clock in between. */
  hasBeenGoodFor(ms: number): boolean {
    if (Math.abs(this.#skew() - this.#skewMs) > Math.min(jumpMs, this.#longestGapMs)) {
      this.#skewMs = this.#skew()
      this.#goodSince = this.#clock.monotonic()
    }
    if (this.#failing.size > 0 || this.#isBeatOverdue) return false
    return this.#clock.monotonic() - this.#goodSince >= ms
  }

  #skew(): number {
    return this.#clock.now() - this.#clock.monotonic()
  }
}
