import { KhepriError } from '../../../src/core/errors.ts'
import type { Seeded } from './seeded.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { Timeline } from './timeline.ts'

/**
 * slow: answers take seconds. flaky: one call in four breaks, in every way a call can. refused: nothing gets through, and
 * each call breaks at once. silent: nothing gets through, and a call breaks only at its deadline.
 */
export type Weather = 'slow' | 'flaky' | 'refused' | 'silent'

const worstFirst: readonly Weather[] = ['silent', 'refused', 'flaky', 'slow']

/** One stretch of bad weather, for one process or between the store and everybody. */
export interface Storm {
  readonly weather: Weather
  readonly process: SimulatedProcess | null
  readonly from: number
  readonly until: number
}

/** What befalls one call: an answer, or an error, before it was done, after, or without anybody ever knowing. */
export type Fate =
  | { readonly kind: 'answered'; readonly thereMs: number; readonly backMs: number }
  | {
      readonly kind: 'broken'
      readonly error: KhepriError
      readonly doneAfterMs: number | null
      readonly afterMs: number
    }

/** Decides how long calls take and how they break. */
export class Network {
  readonly storms: Storm[] = []
  /** When clocks were set. */
  readonly clockSets: number[] = []
  readonly #timeline: Timeline
  readonly #random: Seeded
  readonly #deadlineMs: number
  /** A statement whose client has given up commits within this time or never. */
  readonly #latestMs: number

  constructor(timeline: Timeline, random: Seeded, leaseMs: number) {
    this.#timeline = timeline
    this.#random = random
    this.#deadlineMs = leaseMs / 9
    this.#latestMs = leaseMs / 2
  }

  storm(weather: Weather, forMs: number, process: SimulatedProcess | null): void {
    const { now } = this.#timeline
    this.storms.push({ weather, process, from: now, until: now + forMs })
    process?.disturb(forMs + this.#deadlineMs)
  }

  /** Ends all bad weather. */
  calm(): void {
    for (const [index, storm] of this.storms.entries())
      this.storms[index] = { ...storm, until: Math.min(storm.until, this.#timeline.now) }
  }

  /** Whether all that stood between anybody and the store since then was that the store was away, for everybody. */
  wasAway(since: number): boolean {
    const storms = this.storms.filter(({ process, until }) => process === null && until > since)
    return storms.length > 0 && storms.every(({ weather }) => weather === 'refused' || weather === 'silent')
  }

  /** mayWrite: its outcome can be unknown; a call that only reads can simply be repeated. */
  fate(process: SimulatedProcess, mayWrite: boolean): Fate {
    const weather = this.#weatherFor(process)
    const roll = this.#random.next()
    if (weather === 'slow') return this.#answered(this.#deadlineMs / 2)
    if (weather === 'refused') return this.#refused(5)
    if (weather === 'silent') return mayWrite && roll < 0.5 ? this.#unknown(null) : this.#refused(this.#deadlineMs, 1)
    if (weather === 'flaky' && roll < 0.25) return this.#anyFault(mayWrite)
    return this.#answered(roll < 0.95 ? 2 : 20)
  }

  #weatherFor(process: SimulatedProcess): Weather | null {
    const { now } = this.#timeline
    const storms = this.storms.filter((each) => {
      return each.from <= now && now < each.until && (each.process === null || each.process === process)
    })
    return worstFirst.find((weather) => storms.some((storm) => storm.weather === weather)) ?? null
  }

  #anyFault(mayWrite: boolean): Fate {
    if (!mayWrite) return this.#refused(20)
    const { next } = this.#random
    return this.#random.pick<() => Fate>([
      () => this.#refused(20),
      () => this.#unknown(null),
      () => this.#unknown(next() * 10),
      () => this.#unknown(this.#deadlineMs + next() * this.#latestMs),
    ])()
  }

  #answered(mostMs: number): Fate {
    const { next } = this.#random
    return { kind: 'answered', thereMs: next() * mostMs, backMs: next() * mostMs }
  }

  #refused(mostMs: number, least = 0): Fate {
    const afterMs = mostMs * Math.max(least, this.#random.next())
    return { kind: 'broken', error: unreachable, doneAfterMs: null, afterMs }
  }

  #unknown(doneAfterMs: number | null): Fate {
    const isPrompt = doneAfterMs !== null && doneAfterMs <= 10
    const afterMs = isPrompt ? doneAfterMs + this.#random.next() * 10 : this.#deadlineMs
    return { kind: 'broken', error: unknown, doneAfterMs, afterMs }
  }
}

const unreachable = new KhepriError('STORE_UNREACHABLE', 'the simulated store cannot be reached')
const unknown = new KhepriError('OUTCOME_UNKNOWN', 'the connection to the simulated store broke during a commit')
