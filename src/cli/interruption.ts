/** What a shell expects of a process that ended by these. */
const statuses = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

/** Turns the first signal that asks this process to end into an abort, so that it can clear up; the second ends it at once. */
export class Interruption {
  readonly #controller = new AbortController()
  readonly #listeners: readonly (readonly [string, () => void])[]
  readonly #source: NodeJS.EventEmitter
  #status = 0

  /** source: where signals come from, as events. */
  constructor(source: NodeJS.EventEmitter) {
    this.#source = source
    this.#listeners = Object.entries(statuses).map(([name, status]) => [name, () => this.#stop(status)])
    for (const [name, listener] of this.#listeners) source.once(name, listener)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The exit code that belongs to the signal; 0 where none has come. */
  get status(): number {
    return this.#status
  }

  #stop(status: number): void {
    this.#status = status
    this.close()
    this.#controller.abort()
  }

  /** Gives the signals back. */
  close(): void {
    for (const [name, listener] of this.#listeners) this.#source.off(name, listener)
  }
}
