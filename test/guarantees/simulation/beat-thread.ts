import type { Beating, BeatOptions, StartBeat } from '../../../src/core/beat.ts'
import type { Timer } from '../../../src/core/clock.ts'
import { isKhepriError } from '../../../src/core/errors.ts'
import type { Store } from '../../../src/core/store/store.ts'
import type { SimulatedProcess } from './simulated-process.ts'

/** Beats as a thread of the process does it, with a connection of its own: a blocked event loop does not hold it up. */
export function beatInThread(process: SimulatedProcess, store: Pick<Store, 'beat'>): StartBeat {
  return (options) => new ThreadBeating(process, store, options)
}

class ThreadBeating implements Beating {
  readonly #process: SimulatedProcess
  readonly #store: Pick<Store, 'beat'>
  readonly #options: BeatOptions
  #timer: Timer
  #underWay: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(process: SimulatedProcess, store: Pick<Store, 'beat'>, options: BeatOptions) {
    this.#process = process
    this.#store = store
    this.#options = options
    this.#timer = this.#arm()
  }

  beatNow(): void {
    this.#timer.cancel()
    this.#underWay = this.#underWay.then(() => this.#beat())
  }

  /** It beats from the first moment. */
  jobBegins(): void {}

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer.cancel()
    await this.#underWay
  }

  async #beat(): Promise<void> {
    if (this.#isStopped) return
    await this.#send()
    this.#timer.cancel()
    if (!this.#isStopped) this.#timer = this.#arm()
  }

  async #send(): Promise<void> {
    const { heard, state } = this.#options
    const beat = state()
    const sentAt = this.#process.monotonic()
    try {
      const { known } = await this.#store.beat(beat)
      this.#process.deliver(() => heard({ worker: beat.worker, known, sentAt }))
    } catch (error) {
      if (!isKhepriError(error)) throw error
      this.#process.deliver(() => heard({ error, sentAt }))
    }
  }

  #arm(): Timer {
    return this.#process.threadClock.after(this.#options.everyMs, () => this.beatNow())
  }
}
