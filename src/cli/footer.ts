import type { Clock, Timer } from '../core/clock.ts'
import type { Admin } from '../core/store/admin.ts'
import type { WorkCounts } from '../core/work.ts'

export interface FooterOptions {
  readonly counts: () => WorkCounts
  /** Opens the cold side of the store; called once, after the worker has started. */
  readonly admin: () => Promise<Admin>
  readonly clock: Clock
}

/** Counting scans the tables: it happens this seldom, and takes at most a twentieth of the time. */
const everyMs = 2_000
const restPerCost = 20

interface Totals {
  readonly ready: number
  readonly scheduled: number
  readonly failed: number
}

/** The line below a worker's lines: what runs, what waits, how fast it goes. */
export class Footer {
  readonly #options: FooterOptions
  #totals: Totals | null = null
  #timer: Timer | null = null
  #closed = false
  #rate = 0
  #rated: { readonly at: number; readonly ended: number }

  constructor(options: FooterOptions) {
    this.#options = options
    this.#rated = { at: options.clock.monotonic(), ended: 0 }
    this.#timer = options.clock.after(0, () => void this.#count())
  }

  /** "  3 running  12 ready  5 scheduled  1 failed   3,120/s   ^C stops"; without the totals until they are known. */
  text(): string {
    const totals = this.#totals
    const parts = [`${grouped(this.#options.counts().running)} running`]
    if (totals)
      parts.push(
        `${grouped(totals.ready)} ready`,
        `${grouped(totals.scheduled)} scheduled`,
        `${grouped(totals.failed)} failed`,
      )
    return `  ${parts.join('  ')}   ${grouped(this.#currentRate())}/s   ^C stops`
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  /** Attempts ended a second, over the last second or more. */
  #currentRate(): number {
    const { done, retried, failed } = this.#options.counts()
    const ended = done + retried + failed
    const now = this.#options.clock.monotonic()
    const ms = now - this.#rated.at
    if (ms >= 1_000) {
      this.#rate = Math.round(((ended - this.#rated.ended) * 1_000) / ms)
      this.#rated = { at: now, ended }
    }
    return this.#rate
  }

  async #count(): Promise<void> {
    const { clock, admin } = this.#options
    const startedAt = clock.monotonic()
    try {
      const queues = await (await admin()).counts()
      this.#totals = {
        ready: sum(queues.map(({ ready }) => ready)),
        scheduled: sum(queues.map(({ scheduled }) => scheduled)),
        failed: sum(queues.map(({ failed }) => failed)),
      }
    } catch {
      // The worker itself reports a store that is gone; here the numbers are merely left out.
      this.#totals = null
    }
    if (!this.#closed)
      this.#timer = clock.after(
        Math.max(everyMs, restPerCost * (clock.monotonic() - startedAt)),
        () => void this.#count(),
      )
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
const grouped = (number: number): string => number.toLocaleString('en-US')
