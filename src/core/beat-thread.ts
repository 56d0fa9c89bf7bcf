import { join } from 'node:path'
import { Worker as Thread } from 'node:worker_threads'
import {
  type Beating,
  type BeatOptions,
  type BeatState,
  type HeardBeat,
  LoopBeating,
  type StartBeat,
  type Watch,
} from './beat.ts'
import type { SharedDatabase } from './database-url.ts'
import { defaults } from './defaults.ts'
import { KhepriError } from './errors.ts'
import { OpeningGate } from './opening-gate.ts'
import { packageRoot } from './package.ts'
import type { StoreOptions } from './store/options.ts'
import type { JobId } from './store/store.ts'
import { WatchBoard } from './watch-board.ts'

/** What a beat thread is started with. */
export interface ThreadOrder {
  readonly database: SharedDatabase
  readonly options: Omit<StoreOptions, 'clock' | 'random'>
  readonly everyMs: number
  readonly graceMs: number
  readonly worker: string
  readonly board: SharedArrayBuffer
  readonly gate: SharedArrayBuffer
  readonly state: BeatState
  /** Ends the process when jobs have passed their timeout and grace while the event loop was blocked. */
  readonly endsProcess: boolean
}

/** What the thread is told later. */
export type ThreadNews = { readonly kind: 'state'; readonly state: BeatState } | { readonly kind: 'stop' }

/** What the thread answers. Moments: milliseconds of the clock that all threads of a process share. */
export type ThreadAnswer =
  | { readonly kind: 'beat'; readonly state: BeatState; readonly known: boolean; readonly sentAt: number }
  | { readonly kind: 'trouble'; readonly code: string; readonly message: string; readonly sentAt: number }
  | { readonly kind: 'blocked'; readonly jobs: readonly JobId[] }
  | { readonly kind: 'stopped' }

/** Where the thread finds its database, and whether it may end the process. */
export interface ThreadSetting extends Pick<ThreadOrder, 'database' | 'options' | 'endsProcess' | 'worker'> {
  /** The event loop was blocked beyond the timeout and grace of these jobs; heard once it turns again. */
  readonly onBlocked: (jobs: readonly JobId[]) => void
}

/** Milliseconds of the monotonic clock that all threads of a process share. */
export const sharedNow = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000

/**
 * Beats from a thread with a connection of its own, so that a handler that blocks the event loop does not lose its jobs.
 *
 * Until the first job begins, until the thread is up, and whenever it has died, the event loop beats.
 */
export function beatInThread(setting: ThreadSetting): { readonly startBeat: StartBeat; readonly watch: Watch } {
  const board = new WatchBoard()
  return { startBeat: (options) => new ThreadBeating(options, setting, board), watch: board }
}

class ThreadBeating implements Beating {
  readonly #options: BeatOptions
  readonly #setting: ThreadSetting
  readonly #board: WatchBoard
  readonly #loop: LoopBeating
  readonly #ticking: NodeJS.Timeout
  #thread: Thread | null = null
  #gate = new OpeningGate()
  #told: BeatState | null = null
  #heardAt = Number.NEGATIVE_INFINITY
  #isStopped = false

  constructor(options: BeatOptions, setting: ThreadSetting, board: WatchBoard) {
    this.#options = options
    this.#setting = setting
    this.#board = board
    this.#loop = new LoopBeating({ ...options, beat: () => this.#beatIfSilent() })
    this.#ticking = setInterval(() => board.tick(), defaults.tickMs).unref()
  }

  beatNow(): void {
    this.#tell()
    // Its next beat may be seconds away.
    this.#heardAt = Number.NEGATIVE_INFINITY
    this.#loop.beatNow()
  }

  jobBegins(): void {
    if (this.#thread === null && !this.#isStopped) this.#start()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#ticking)
    await Promise.all([this.#loop.stop(), this.#stopThread()])
  }

  /** The thread has beaten for us lately, or we do it ourselves. */
  async #beatIfSilent(): Promise<void> {
    this.#tell()
    const isHeard = this.#options.clock.monotonic() - this.#heardAt < this.#options.everyMs * 1.5
    if (!isHeard) await this.#options.beat()
  }

  #start(): void {
    const { database, options, worker, endsProcess } = this.#setting
    this.#told = this.#options.state()
    this.#gate = new OpeningGate()
    const order: ThreadOrder = {
      database,
      options,
      worker,
      endsProcess,
      everyMs: this.#options.everyMs,
      graceMs: defaults.graceMs,
      board: this.#board.memory,
      gate: this.#gate.memory,
      state: this.#told,
    }
    const thread = new Thread(threadFile(), { workerData: order, stdin: false, execArgv: [], env: process.env })
    thread.unref()
    thread.on('message', (answer: ThreadAnswer) => this.#hear(answer))
    thread.on('error', ({ message }) => this.#options.heard(this.#trouble('STORE_FAILED', message, sharedNow())))
    thread.on('exit', () => this.#onExit(thread))
    this.#thread = thread
  }

  /** A thread that has died is started again when the next job begins; until then the event loop beats. */
  #onExit(thread: Thread): void {
    if (this.#thread === thread) this.#thread = null
    this.#heardAt = Number.NEGATIVE_INFINITY
  }

  #hear(answer: ThreadAnswer): void {
    const { heard } = this.#options
    if (answer.kind === 'trouble') heard(this.#trouble(answer.code, answer.message, answer.sentAt))
    else if (answer.kind === 'blocked') this.#setting.onBlocked(answer.jobs)
    else if (answer.kind === 'beat') {
      const sentAt = this.#ourTime(answer.sentAt)
      this.#heardAt = sentAt
      heard({ worker: answer.state.worker, known: answer.known, sentAt })
    }
  }

  #trouble(code: string, message: string, sentAt: number): HeardBeat {
    const error = new KhepriError(code as KhepriError['code'], message)
    return { error, sentAt: this.#ourTime(sentAt) }
  }

  /** A moment of the clock that all threads share, by the clock of this worker. */
  #ourTime(moment: number): number {
    return this.#options.clock.monotonic() - (sharedNow() - moment)
  }

  /** Tells the thread what its beats must say, when that has changed. */
  #tell(): void {
    const state = this.#options.state()
    if (!this.#thread || (state.worker === this.#told?.worker && state.kind === this.#told.kind)) return
    this.#told = state
    this.#thread.postMessage({ kind: 'state', state } satisfies ThreadNews)
  }

  async #stopThread(): Promise<void> {
    const thread = this.#thread
    if (!thread) return
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    thread.ref()
    thread.postMessage({ kind: 'stop' } satisfies ThreadNews)
    // One that is still coming up has nothing to end, and a short life of the worker is not to wait for it.
    if (this.#gate.bar()) void thread.terminate()
    // A connection that hangs must not hold up the end.
    const deadline = setTimeout(() => void thread.terminate(), 2_000)
    await ended
    clearTimeout(deadline)
  }
}

/** The thread's own file: source beside source, bundle in the bundle's folder. */
function threadFile(): string | URL {
  const isSource = import.meta.url.endsWith('.ts')
  return isSource
    ? new URL('../beat-thread-main.ts', import.meta.url)
    : join(packageRoot(), 'dist', 'beat-thread-main.js')
}
