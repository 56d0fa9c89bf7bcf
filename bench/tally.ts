import { now } from './peer.ts'

/** What one worker process has done so far. */
export interface Tallied {
  readonly kind: 'tally'
  /** First attempts that have ended. */
  readonly ended: number
  /** Of the first handler's start and the last one's end. */
  readonly firstAt: number
  readonly lastAt: number
  /** Since the last report, where the measure asks for each run: number of the job, start or end, and when. */
  readonly runs: readonly Run[]
}

/** A start or an end of a handler. */
export interface Run {
  readonly n: number
  readonly what: 'start' | 'end'
  readonly at: number
  /** From being asked for to this moment, milliseconds. */
  readonly ageMs: number
}

const reportEveryMs = 10

/** Counts the runs of a worker process and tells the one that started it. */
export class Tally {
  readonly #keepsRuns: boolean
  #runs: Run[] = []
  #ended = 0
  #firstAt = 0
  #lastAt = 0
  #reported = ''
  #reportedAt = 0

  constructor(keepsRuns: boolean) {
    this.#keepsRuns = keepsRuns
    setInterval(() => this.#report(), reportEveryMs).unref()
  }

  start(n: number, askedAt: number): void {
    if (this.#firstAt === 0) this.#firstAt = now()
    if (this.#keepsRuns) this.#note(n, 'start', askedAt)
  }

  end(n: number, attempt: number): void {
    if (attempt === 1) this.#ended += 1
    this.#lastAt = now()
    if (this.#keepsRuns) this.#note(n, 'end', this.#lastAt)
    // Some let no timer through while they are busy.
    else if (this.#lastAt - this.#reportedAt > reportEveryMs) this.#report()
  }

  #note(n: number, what: Run['what'], askedAt: number): void {
    const at = now()
    this.#runs.push({ n, what, at, ageMs: at - askedAt })
    this.#report()
  }

  #report(): void {
    const state = `${this.#ended} ${this.#lastAt} ${this.#firstAt}`
    if (state === this.#reported && this.#runs.length === 0) return
    this.#reported = state
    this.#reportedAt = now()
    const report: Tallied = {
      kind: 'tally',
      ended: this.#ended,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      runs: this.#runs,
    }
    this.#runs = []
    process.send?.(report)
  }
}
