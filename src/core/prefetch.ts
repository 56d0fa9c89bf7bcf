import type { Clock } from './clock.ts'
import { defaults } from './defaults.ts'
import type { Reservation, Settlement } from './store/store.ts'

interface Waiting {
  readonly reservation: Reservation
  /** By the monotonic clock. */
  readonly since: number
}

type Return = Settlement & { readonly kind: 'release' }

/**
 * Jobs that a worker holds before it has a slot for them, so that one round trip serves many.
 *
 * Nobody is to notice: what has not started within 50 ms goes back with its place in the order, and how much is held
 * follows from how long jobs take. The rule and its figures come from a simulation of one, two and four workers under
 * steady, mixed and changing loads: the target is what the slots start within 25 ms; the duration it is reckoned from
 * moves by half towards a longer job and by a fifth towards a shorter one; a target at most doubles from one reservation
 * to the next; and after giving back only free slots are filled until a job has ended.
 */
export class Prefetch {
  readonly #clock: Clock
  readonly #concurrency: number
  readonly #most: number
  /** In run order; those before `#head` have been taken out. */
  #waiting: Waiting[] = []
  #head = 0
  #returns: Return[] = []
  #target: number
  #durationMs = Number.NaN
  /** Jobs went back: others are as quick as we are. */
  #isShy = false

  /** most: the largest target; as much as the concurrency holds nothing in advance. */
  constructor(clock: Clock, concurrency: number, most: number) {
    this.#clock = clock
    this.#concurrency = concurrency
    this.#most = Math.max(concurrency, most)
    this.#target = concurrency
  }

  /** Jobs that wait for a slot. */
  get size(): number {
    return this.#waiting.length - this.#head
  }

  /** How many jobs it would be good to hold beyond those that run; 0: none. */
  get room(): number {
    if (this.#isShy || this.#target <= this.#concurrency) return 0
    return Math.max(0, this.#target - this.size)
  }

  /** So few are left that a round trip had better begin. */
  get isLow(): boolean {
    return this.room > 0 && this.size * 2 < this.#target
  }

  /** A reservation was made: the next one may be twice as large. */
  reserved(): void {
    const wanted = Math.floor((this.#concurrency * defaults.prefetchWindowMs) / this.#durationMs)
    // Before the first job has ended nothing is known of durations.
    const target = Number.isNaN(wanted) ? this.#concurrency : wanted
    this.#target = Math.max(this.#concurrency, Math.min(target, this.#target * 2, this.#most))
  }

  /** A job has run for so long. */
  ended(ms: number): void {
    this.#isShy = false
    const last = Number.isNaN(this.#durationMs) ? ms : this.#durationMs
    this.#durationMs = last + (ms - last) * (ms > last ? 0.5 : 0.2)
  }

  add(reservations: readonly Reservation[]): void {
    const since = this.#clock.monotonic()
    for (const reservation of reservations) this.#waiting.push({ reservation, since })
  }

  /** Takes the next job out, in run order. */
  next(): Reservation | undefined {
    const next = this.#waiting[this.#head]
    if (next === undefined) return undefined
    this.#head++
    if (this.#head === this.#waiting.length) {
      this.#waiting = []
      this.#head = 0
    }
    return next.reservation
  }

  /** Milliseconds until a job has waited for too long; null: none waits. */
  get staleInMs(): number | null {
    const next = this.#waiting[this.#head]
    return next === undefined ? null : Math.max(0, next.since + defaults.prefetchPatienceMs - this.#clock.monotonic())
  }

  /** Gives back what has waited for too long. */
  giveBackStale(): void {
    if (this.staleInMs !== 0) return
    const limit = this.#clock.monotonic() - defaults.prefetchPatienceMs
    const fresh = this.#waiting.findIndex(({ since }, index) => index >= this.#head && since > limit)
    this.#giveBack(fresh === -1 ? this.#waiting.length : fresh)
  }

  giveBackAll(): void {
    if (this.size > 0) this.#giveBack(this.#waiting.length)
  }

  /** Gives back jobs that were reserved and are not to wait here. */
  refuse(reservations: readonly Reservation[]): void {
    if (reservations.length === 0) return
    this.#isShy = true
    for (const { id, fence } of reservations) this.#returns.push({ id, fence, kind: 'release', delayMs: null })
  }

  get hasReturns(): boolean {
    return this.#returns.length > 0
  }

  /** What the store is to be told has gone back. */
  takeReturns(): readonly Return[] {
    const returns = this.#returns
    this.#returns = []
    return returns
  }

  /** The store was not reached. What it has freed all the same it will refuse to free again. */
  putBack(returns: readonly Return[]): void {
    this.#returns = [...returns, ...this.#returns]
  }

  /** All of it is somebody else's by now. */
  forget(): void {
    this.#waiting = []
    this.#head = 0
    this.#returns = []
  }

  #giveBack(end: number): void {
    const gone = this.#waiting.slice(this.#head, end)
    this.#waiting = this.#waiting.slice(end)
    this.#head = 0
    this.refuse(gone.map(({ reservation }) => reservation))
  }
}
