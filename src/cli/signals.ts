import type { Clock, Timer } from '../core/clock.ts'
import { defaults } from '../core/defaults.ts'
import type { WorkHandle } from '../core/work.ts'

/** Where signals and uncaught errors come from: the process. */
export interface SignalSource {
  on(name: string, listener: (...facts: unknown[]) => void): unknown
  off(name: string, listener: (...facts: unknown[]) => void): unknown
}

export interface SignalOptions {
  readonly handle: Pick<WorkHandle, 'drain' | 'abort' | 'quiet' | 'resume' | 'attribute'>
  readonly source: SignalSource
  readonly clock: Clock
  /** Tells the person about an error that no job is to blame for. */
  readonly report: (error: unknown) => void
}

/** The signals that stop a worker, with the exit status of one that had to be told twice. */
const stops: Readonly<Record<string, number>> = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

/** npx, shells and terminals send the same signal twice within milliseconds; a person takes longer. */
const doubledMs = 1_000

/**
 * Leads the signals and uncaught errors of a process to its worker: the first stop signal drains, a second one at least
 * a second later aborts, SIGUSR2 and SIGCONT quiet and resume, and an error that belongs to no job drains within 5 s.
 */
export class WorkerSignals {
  readonly #options: SignalOptions
  readonly #listeners: readonly (readonly [string, (...facts: unknown[]) => void])[]
  #firstStopAt: number | null = null
  #forcedStatus: number | null = null
  #uncaught = false
  #limit: Timer | null = null

  constructor(options: SignalOptions) {
    this.#options = options
    const { handle, source } = options
    this.#listeners = [
      ...Object.entries(stops).map(([name, status]) => [name, () => this.#stop(status)] as const),
      ['SIGUSR2', () => handle.quiet()],
      ['SIGCONT', () => handle.resume()],
      ['uncaughtException', (error) => this.#judge(error)],
      ['unhandledRejection', (error) => this.#judge(error)],
    ]
    for (const [name, listener] of this.#listeners) source.on(name, listener)
  }

  /** 130, 143 or 129 after a second signal, 70 after an uncaught error, else null. */
  get exitStatus(): number | null {
    return this.#forcedStatus ?? (this.#uncaught ? 70 : null)
  }

  /** Gives the signals back to whoever had them. */
  close(): void {
    this.#limit?.cancel()
    for (const [name, listener] of this.#listeners) this.#options.source.off(name, listener)
  }

  #stop(status: number): void {
    const { handle, clock } = this.#options
    const now = clock.monotonic()
    if (this.#firstStopAt === null) {
      this.#firstStopAt = now
      handle.drain('signal')
    } else if (now - this.#firstStopAt >= doubledMs && this.#forcedStatus === null) {
      this.#forcedStatus = status
      handle.abort()
    }
  }

  #judge(error: unknown): void {
    const { handle, clock, report } = this.#options
    // The state of the process is in doubt from the first such error on; what follows from it is not news.
    if (handle.attribute(error) || this.#uncaught) return
    this.#uncaught = true
    report(error)
    handle.drain('uncaught')
    this.#limit = clock.after(defaults.graceMs, () => handle.abort())
  }
}
