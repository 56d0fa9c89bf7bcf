import type { Clock, Random } from './clock.ts'
import { defaults } from './defaults.ts'

/**
 * Decides when a worker lets its slots run empty for a suspect, which runs only where nothing else does.
 *
 * On a busy queue nobody is ever idle by chance. But jobs may take hours, and nobody else is to wait for them: room is
 * made for a limited time, then not for as long again, and each time that it was in vain for twice as long.
 */
export class SuspectRoom {
  readonly #clock: Clock
  readonly #random: Random
  #patienceMs: number
  #durationMs: number = defaults.roomMs
  /** Since when slots run empty; null: they do not. By the monotonic clock, as is the next. */
  #openedAt: number | null = null
  #notBefore = 0

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
    this.#patienceMs = this.#drawPatience()
  }

  /** Nothing is taken until nothing runs. */
  get isOpen(): boolean {
    return this.#openedAt !== null
  }

  /** Takes in how long the longest waiting suspect has been ready, milliseconds; null: none waits. */
  see(waitMs: number | null): void {
    const now = this.#clock.monotonic()
    if (waitMs === null || waitMs < this.#patienceMs || now < this.#notBefore) {
      this.#openedAt = null
    } else if (this.#openedAt === null) {
      this.#openedAt = now
    } else if (now - this.#openedAt >= this.#durationMs) {
      this.#openedAt = null
      this.#notBefore = now + this.#durationMs
      this.#durationMs *= 2
    }
  }

  /** Room was made, and a suspect came. */
  used(): void {
    this.#durationMs = defaults.roomMs
  }

  /** Room was made in vain: the suspect is not first in its queue, and waits its turn like any other job. */
  close(): void {
    this.#openedAt = null
    this.#patienceMs = this.#drawPatience()
    this.#notBefore = this.#clock.monotonic() + this.#patienceMs
  }

  /** Drawn by each worker, so that not all of them make room for one suspect. */
  #drawPatience(): number {
    return defaults.suspectPatienceMs * (1 + this.#random())
  }
}
