import type { Clock, Timer } from '../core/clock.ts'

interface Pending {
  readonly dueAt: number
  readonly run: () => void
}

/**
 * Is a clock that stands still until a test moves it.
 *
 * Timers fire only inside `advance`, in the order in which they are due. Starts at `epoch`, epoch milliseconds.
 */
export class ManualClock implements Clock {
  readonly #pending = new Set<Pending>()
  #epoch: number
  #elapsedMs = 0

  constructor(epoch = Date.UTC(2026, 0, 5, 9)) {
    this.#epoch = epoch
  }

  now(): number {
    return this.#epoch + this.#elapsedMs
  }

  monotonic(): number {
    return this.#elapsedMs
  }

  after(ms: number, run: () => void): Timer {
    if (Number.isNaN(ms)) throw new RangeError('a timer needs a number of milliseconds, got NaN')
    const timer = { dueAt: this.#elapsedMs + Math.max(0, ms), run }
    this.#pending.add(timer)
    return { cancel: () => this.#pending.delete(timer) }
  }

  /** How many timers wait to fire; 0 shows that nothing was left behind. */
  get pending(): number {
    return this.#pending.size
  }

  /** Moves both clocks on and fires what becomes due, letting promises settle before, between and after. */
  async advance(ms: number): Promise<void> {
    const until = this.#elapsedMs + ms
    await settled()
    for (let next = this.#nextUntil(until); next; next = this.#nextUntil(until)) {
      this.#pending.delete(next)
      this.#elapsedMs = next.dueAt
      next.run()
      await settled()
    }
    this.#elapsedMs = until
  }

  /** Sets the wall clock, as an administrator or a time server would: no timer notices. */
  set(epoch: number): void {
    this.#epoch = epoch - this.#elapsedMs
  }

  /** The earliest timer due by then; of equal ones the one that was asked for first. */
  #nextUntil(until: number): Pending | undefined {
    const due = [...this.#pending].filter((timer) => timer.dueAt <= until)
    return due.sort((a, b) => a.dueAt - b.dueAt)[0]
  }
}

/** Resolves when every promise that could settle without time passing has done so. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
