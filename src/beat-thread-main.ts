import { writeSync } from 'node:fs'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { openStore } from './app.ts'
import { timeoutError } from './core/attempt.ts'
import type { BeatState, Watched } from './core/beat.ts'
import { sharedNow, type ThreadAnswer, type ThreadNews, type ThreadOrder } from './core/beat-thread.ts'
import { systemClock } from './core/clock.ts'
import { isKhepriError } from './core/errors.ts'
import { OpeningGate } from './core/opening-gate.ts'
import type { AttemptRecord, Settlement, Store } from './core/store/store.ts'
import { describeError } from './core/text.ts'
import { Wake } from './core/wake.ts'
import { WatchBoard } from './core/watch-board.ts'

/** How often the thread looks at the board. */
const lookEveryMs = 1_000

/**
 * Beats for a worker, and watches over its event loop.
 *
 * With the event loop blocked and an attempt beyond its timeout and grace, nobody but this thread can settle it: it
 * records the attempt as failed, gives the worker's other jobs back at no cost, and ends the process.
 */
class BeatThread {
  readonly #order: ThreadOrder
  readonly #port: MessagePort
  readonly #board: WatchBoard
  readonly #gate: OpeningGate
  readonly #wake = new Wake(systemClock)
  #store: Store | null = null
  #state: BeatState
  #isStopped = false
  #beatAt = Number.NEGATIVE_INFINITY
  #ticks = -1
  #tickedAt = sharedNow()
  #hasReported = false

  constructor(order: ThreadOrder, port: MessagePort) {
    this.#order = order
    this.#port = port
    this.#state = order.state
    this.#board = new WatchBoard(order.board)
    this.#gate = new OpeningGate(order.gate)
    port.on('message', (news: ThreadNews) => this.#hear(news))
  }

  async run(): Promise<void> {
    while (!this.#isStopped) {
      if (sharedNow() - this.#beatAt >= this.#order.everyMs) await this.#guarded(() => this.#beat())
      await this.#guarded(() => this.#lookAtBoard())
      await this.#wake.wait(Math.min(lookEveryMs, Math.max(0, this.#beatAt + this.#order.everyMs - sharedNow())))
    }
    await this.#store?.close()
    this.#port.close()
  }

  #hear(news: ThreadNews): void {
    if (news.kind === 'stop') this.#isStopped = true
    else this.#tell(news.state)
    this.#wake.ring()
  }

  /** What the beat says has changed: neighbours should hear it at once. */
  #tell(state: BeatState): void {
    this.#state = state
    this.#beatAt = Number.NEGATIVE_INFINITY
  }

  async #guarded(step: () => Promise<void>): Promise<void> {
    const sentAt = sharedNow()
    try {
      await step()
    } catch (error) {
      const { message } = describeError(error)
      this.#answer({ kind: 'trouble', code: isKhepriError(error) ? error.code : 'BUG', message, sentAt })
    }
  }

  async #beat(): Promise<void> {
    const state = this.#state
    const sentAt = sharedNow()
    // Also where it fails: the next attempt comes an interval later.
    this.#beatAt = sentAt
    const store = await this.#open()
    const { known } = await store.beat(state)
    this.#answer({ kind: 'beat', state, known, sentAt })
  }

  async #open(): Promise<Store> {
    const { database, options } = this.#order
    if (this.#store) return this.#store
    // Barred: this thread is about to be ended, and only has to wait for it.
    if (!this.#gate.begin()) return new Promise(() => {})
    try {
      this.#store = await openStore(database, { ...options, clock: undefined, random: Math.random })
      return this.#store
    } finally {
      this.#gate.done()
    }
  }

  async #lookAtBoard(): Promise<void> {
    const { ticks } = this.#board
    if (ticks !== this.#ticks) {
      this.#ticks = ticks
      this.#tickedAt = sharedNow()
      this.#hasReported = false
    }
    if (sharedNow() - this.#tickedAt < this.#order.graceMs || this.#hasReported) return
    const overdue = this.#board.watched.filter((watched) => this.#isOverdue(watched))
    if (overdue.length > 0) await this.#onBlocked(overdue)
  }

  #isOverdue({ startedAt, timeoutMs }: Watched): boolean {
    return Date.now() - startedAt > timeoutMs + this.#order.graceMs
  }

  async #onBlocked(overdue: readonly Watched[]): Promise<void> {
    this.#hasReported = true
    const jobs = overdue.map(({ id }) => id)
    if (!this.#order.endsProcess) return this.#answer({ kind: 'blocked', jobs })
    try {
      await this.#settle(overdue)
    } finally {
      // The main thread cannot write it any more, and process.exit would end this thread alone.
      writeSync(2, `error: the event loop was blocked past the timeout of ${describe(jobs)}; the worker ends\n`)
      process.kill(process.pid, 'SIGKILL')
    }
  }

  /** Settles what ran out, and leaves: what else the worker holds is free again, at no cost. */
  async #settle(overdue: readonly Watched[]): Promise<void> {
    const store = await this.#open()
    const { worker } = this.#state
    // What it runs outside of this process must not run beside the next attempt.
    await (await import('./exec/recorded-groups.ts')).endGroupsOf([worker])
    const settle = overdue.map((watched) => this.#settlementOf(watched))
    await store.exchange({ worker, settle, enqueue: [], disown: [], start: [], reserve: null })
    await store.beat({ kind: 'leaving', worker })
  }

  #settlementOf({ id, fence, attempt, startedAt, timeoutMs, retryMs }: Watched): Settlement {
    const error = describeError(timeoutError(timeoutMs))
    const record: AttemptRecord = {
      attempt,
      worker: this.#order.worker,
      startedAt,
      endedAt: Date.now(),
      errorType: error.type,
      message: `${error.message}, with the event loop blocked`,
      stack: null,
      output: null,
    }
    if (retryMs === null) return { id, fence, kind: 'fail', reason: 'tries', attempt: record }
    return { id, fence, kind: 'retry', delayMs: retryMs, attempt: record }
  }

  #answer(answer: ThreadAnswer): void {
    this.#port.postMessage(answer)
  }
}

function describe(jobs: readonly number[]): string {
  return jobs.length === 1 ? `job ${jobs[0]}` : `jobs ${jobs.join(', ')}`
}

if (parentPort) await new BeatThread(workerData as ThreadOrder, parentPort).run()
