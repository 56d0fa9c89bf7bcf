import { type Clock, systemClock, type Timer } from '../core/clock.ts'
import { formatDuration } from '../core/duration.ts'
import { count } from './words.ts'

export interface ProgressOptions {
  /** What is being done: "dispatching". */
  readonly label: string
  /** What is counted, one of it: "line". */
  readonly unit: string
  /** Where it is shown: `bar` redraws one line at a terminal, `lines` writes one every few seconds, `none` nothing. */
  readonly mode: 'bar' | 'lines' | 'none'
  readonly write: (text: string) => void
  readonly clock?: Clock
}

/** Work that is over sooner than the first of these shows no progress at all. */
const barEveryMs = 200
const lineEveryMs = 5_000
const barWidth = 25

/** Shows how far long work is: count, share, rate and time left. */
export class Progress {
  readonly #options: ProgressOptions
  readonly #clock: Clock
  readonly #startedAt: number
  #timer: Timer | null = null
  #drawn = false
  #done = 0
  #share: number | null = null

  constructor(options: ProgressOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#startedAt = this.#clock.monotonic()
    if (options.mode !== 'none') this.#arm()
  }

  /** Notes how much is done by now. share: of the whole, 0 to 1; null where the whole is not known. */
  update(done: number, share: number | null = null): void {
    this.#done = done
    this.#share = share
    // Synchronous work never lets the timer run.
    if (this.#timer !== null && this.#clock.monotonic() >= this.#nextAt) this.#draw()
  }

  /** Removes the bar; what was done is the caller's line to write. */
  end(): void {
    this.#timer?.cancel()
    this.#timer = null
    if (this.#drawn && this.#options.mode === 'bar') this.#options.write('\r\u001b[K')
  }

  #nextAt = 0

  #arm(): void {
    const everyMs = this.#options.mode === 'bar' ? barEveryMs : lineEveryMs
    this.#timer?.cancel()
    this.#nextAt = this.#clock.monotonic() + everyMs
    this.#timer = this.#clock.after(everyMs, () => this.#draw())
  }

  #draw(): void {
    this.#drawn = true
    const text = this.#text()
    this.#options.write(this.#options.mode === 'bar' ? `\r${text}\u001b[K` : `${text}\n`)
    this.#arm()
  }

  #text(): string {
    const { label, unit, mode } = this.#options
    const elapsedMs = this.#clock.monotonic() - this.#startedAt
    const share = this.#share === null ? null : Math.min(Math.max(this.#share, 0), 1)
    return [
      label,
      ...(share === null || mode === 'lines' ? [] : [bar(share)]),
      count(this.#done, unit),
      ...(share === null ? [] : [`${Math.floor(share * 100)}%`]),
      `${formatRate(this.#done, elapsedMs)}/s`,
      ...(share === null || share === 0 ? [] : [`eta ${formatLeft((elapsedMs * (1 - share)) / share)}`]),
    ].join('  ')
  }
}

function bar(share: number): string {
  const full = Math.round(share * barWidth)
  return '█'.repeat(full) + '░'.repeat(barWidth - full)
}

/** A rate in few characters: "980", "9.5k", "131k", "1.2M". */
export function formatRate(count: number, ms: number): string {
  const rate = (count / Math.max(ms, 1)) * 1_000
  if (rate < 1_000) return String(Math.round(rate))
  const [size, suffix] = rate < 1_000_000 ? [1_000, 'k'] : [1_000_000, 'M']
  const scaled = rate / size
  return `${scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)}${suffix}`
}

const formatLeft = (ms: number): string => formatDuration(Math.max(Math.round(ms / 1_000), 1) * 1_000)
