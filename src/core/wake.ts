import type { Clock } from './clock.ts'

/** Lets one loop sleep until a time has passed or somebody rings; a ring while it is awake is not forgotten. */
export class Wake {
  readonly #clock: Clock
  #rung = false
  #resolve: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  ring(): void {
    this.#rung = true
    this.#resolve?.()
  }

  /** Waits for a ring, at most so many milliseconds; null: as long as it takes. */
  async wait(ms: number | null): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const timer = ms === null ? null : this.#clock.after(ms, resolve)
        this.#resolve = () => {
          timer?.cancel()
          resolve()
        }
      })
      this.#resolve = null
    }
    this.#rung = false
  }
}
