import type { Clock, Timer } from './clock.ts'
import type { JobId, WorkerId } from './store/store.ts'

/** Shows that a worker lives, until stopped. */
export interface Beating {
  /** Beats at once instead of at the next interval's end: what the beat tells has changed. */
  beatNow(): void
  /** User code is about to run, and may block this event loop from now on. */
  jobBegins(): void
  /** Resolves when no beat is under way and none will follow. */
  stop(): Promise<void>
}

/** What a beat tells. */
export interface BeatState {
  readonly worker: WorkerId
  readonly kind: 'working' | 'draining'
}

/** A beat that was sent from elsewhere. `sentAt`: by the monotonic clock of this process. */
export type HeardBeat =
  | { readonly worker: WorkerId; readonly known: boolean; readonly sentAt: number }
  | { readonly error: unknown; readonly sentAt: number }

export interface BeatOptions {
  readonly clock: Clock
  readonly everyMs: number
  /** Sends one beat from here; it handles its own errors. */
  readonly beat: () => Promise<void>
  /** What a beat that is sent from elsewhere must tell. */
  readonly state: () => BeatState
  /** Takes in what became of it. */
  readonly heard: (beat: HeardBeat) => void
}

/** An attempt that must not outlast its timeout, as the beat thread needs to know it to settle it by itself. */
export interface Watched {
  readonly id: JobId
  readonly fence: number
  readonly attempt: number
  /** Wall clock, epoch milliseconds. */
  readonly startedAt: number
  readonly timeoutMs: number
  /** What follows if it runs out: a retry after so many milliseconds; null: it has failed. */
  readonly retryMs: number | null
}

/** Watches attempts that are bound in time while the event loop may be blocked; the result of `enter` ends it. */
export interface Watch {
  enter(watched: Watched): () => void
}

/** Nobody watches: a blocked event loop blocks its own timers. */
export const unwatched: Watch = { enter: () => () => {} }

/** How beats are driven; a parameter of the worker, so that a thread or a simulator can take over. */
export type StartBeat = (options: BeatOptions) => Beating

/** Beats from this event loop: one at a time, the next one interval after the last one's end. */
export const beatInLoop: StartBeat = (options) => new LoopBeating(options)

/** Beats from this event loop, which can be suspended while somebody else does it. */
export class LoopBeating implements Beating {
  readonly #options: Pick<BeatOptions, 'clock' | 'everyMs' | 'beat'>
  #timer: Timer
  #underWay: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(options: Pick<BeatOptions, 'clock' | 'everyMs' | 'beat'>) {
    this.#options = options
    this.#timer = this.#arm()
  }

  beatNow(): void {
    this.#timer.cancel()
    this.#underWay = this.#underWay.then(() => this.#beat())
  }

  jobBegins(): void {
    // Whoever beats from the event loop cannot do anything about it.
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer.cancel()
    await this.#underWay
  }

  async #beat(): Promise<void> {
    if (this.#isStopped) return
    await this.#options.beat()
    this.#timer.cancel()
    if (!this.#isStopped) this.#timer = this.#arm()
  }

  #arm(): Timer {
    return this.#options.clock.after(this.#options.everyMs, () => this.beatNow())
  }
}
