import type { Clock, Timer } from '../core/clock.ts'
import { defaults } from '../core/defaults.ts'
import { type DurationInput, parseDuration } from '../core/duration.ts'
import { ManualClock } from './manual-clock.ts'

/** Taken when the kit is loaded: a test may install a fake clock of its own. */
const { setImmediate, clearImmediate } = globalThis

/** A frozen clock: time passes where a test says so, and nowhere else. Begins on 5 January 2026, 09:00 UTC. */
export class TestClock implements Clock {
  readonly #manual = new ManualClock()

  /** Epoch milliseconds. */
  now(): number {
    return this.#manual.now()
  }

  monotonic(): number {
    return this.#manual.monotonic()
  }

  after(ms: number, run: () => void): Timer {
    if (ms > 0 || Number.isNaN(ms)) return this.#manual.after(ms, run)
    // No time has to pass for it.
    const handle = setImmediate(run)
    return { cancel: () => clearImmediate(handle) }
  }

  /** Lets time pass: "90s", "1h", or a number of seconds. What becomes due meanwhile fires in its order. */
  async advance(duration: DurationInput): Promise<void> {
    await this.#manual.advance(parseDuration(duration, 'the time to advance', defaults.maxDelayMs))
  }
}
