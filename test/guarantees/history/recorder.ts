import { type Ended, Live } from '../../support/live.ts'
import type { AskedJob, Client, SentSignal, WorkerProcess } from './history.ts'
import { workerVariable } from './ledger.ts'

/** Runs real commands and workers in one folder, and remembers what was seen of them. */
export class Recorder {
  readonly clients: Client[] = []
  readonly workers: RecordedWorker[] = []
  readonly #cwd: string

  constructor(cwd: string) {
    this.#cwd = cwd
  }

  /** Runs a command to its end; with `killAfterMs` it is killed then, if it has not ended before. */
  async client(
    argv: readonly string[],
    asked: readonly AskedJob[] = [],
    killAfterMs: number | null = null,
  ): Promise<Client> {
    const startedAt = Date.now()
    const live = Live.start(argv, { cwd: this.#cwd })
    const timer = killAfterMs === null ? null : setTimeout(() => live.kill('SIGKILL'), killAfterMs)
    const ended = await live.ended
    if (timer) clearTimeout(timer)
    const client = { argv, asked, ...ended, startedAt, endedAt: Date.now() }
    this.clients.push(client)
    return client
  }

  /** Starts a worker process; it may not be ready yet. */
  work(options: WorkerTerms): RecordedWorker {
    const worker = new RecordedWorker(`w${this.workers.length + 1}`, options, this.#cwd)
    this.workers.push(worker)
    return worker
  }
}

/** What a worker is told on its command line. */
export interface WorkerTerms {
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly flags?: readonly string[]
}

/** A worker process whose signals are written down. */
export class RecordedWorker {
  readonly name: string
  readonly ended: Promise<Ended>
  readonly #live: Live
  readonly #terms: WorkerTerms
  readonly #argv: readonly string[]
  readonly #startedAt = Date.now()
  readonly #signals: SentSignal[] = []
  #readyAt: number | null = null
  #end: (Ended & { readonly endedAt: number }) | null = null

  constructor(name: string, terms: WorkerTerms, cwd: string) {
    const { queues, concurrency, flags = [] } = terms
    this.name = name
    this.#terms = terms
    this.#argv = ['work', `--queue=${queues.join(',')}`, `--concurrency=${concurrency}`, `--name=${name}`, ...flags]
    this.#live = Live.start(this.#argv, { cwd, env: { [workerVariable]: name } })
    this.ended = this.#live.ended.then((ended) => {
      this.#end = { ...ended, endedAt: Date.now() }
      return ended
    })
    void this.#live.until(/Ctrl-C stops gently/).then(
      () => {
        this.#readyAt = Date.now()
      },
      () => {},
    )
  }

  get isOver(): boolean {
    return this.#end !== null
  }

  get isPaused(): boolean {
    return this.#signals.at(-1)?.signal === 'SIGSTOP'
  }

  /** It has ended, or was told to. */
  get isLeaving(): boolean {
    return this.isOver || this.#signals.some(({ signal }) => signal === 'SIGKILL' || signal === 'SIGTERM')
  }

  /** Sends a signal. The moment written down lies outside of what the signal does, so that nothing is blamed on it too early. */
  send(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): void {
    if (this.isOver) return
    if (signal !== 'SIGCONT') this.#signals.push({ signal, at: Date.now() })
    this.#live.kill(signal)
    if (signal === 'SIGCONT') this.#signals.push({ signal, at: Date.now() })
  }

  /** What was seen of it; it must have ended. */
  get seen(): WorkerProcess {
    if (!this.#end) throw new Error(`${this.name} has not ended`)
    const { queues, concurrency } = this.#terms
    return {
      ...{ name: this.name, argv: this.#argv, queues, concurrency },
      ...{ startedAt: this.#startedAt, readyAt: this.#readyAt, signals: this.#signals },
      ...this.#end,
    }
  }
}
