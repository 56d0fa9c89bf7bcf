import { KhepriError } from '../core/errors.ts'
import { didYouMean } from '../core/suggest.ts'
import { shown } from '../core/text.ts'

const hourMs = 3_600_000

/** A time on a clock's face, in milliseconds as if it were UTC; only `ZoneClock` turns it into an instant and back. */
export type WallMs = number

/** A moment from which a zone's clocks show another offset. Offsets are milliseconds east of UTC. */
export interface ClockChange {
  readonly at: number
  readonly before: number
  readonly after: number
}

/** A stretch of time, from the instant asked for, in which the clock is not changed. */
interface Stretch {
  readonly until: number
  readonly offset: number
}

/** A piece of time whose changes are known. */
interface Block {
  /** The offset when it begins. */
  readonly offset: number
  readonly changes: readonly ClockChange[]
}

/** No clock is further from UTC. */
const reachMs = 16 * hourMs

/** No change of a clock is larger: the two sides of the date line are 26 hours apart. */
const largestChangeMs = 26 * hourMs

/** Two changes nearer to each other than this could cancel each other out unseen. Since 1900 none were within 3 days. */
const sampleMs = 48 * hourMs
const samplesPerBlock = 8
const blockMs = samplesPerBlock * sampleMs

/**
 * The clock on the wall of a time zone: which instant shows which time, gaps and repeated hours included.
 *
 * Reads the rules from Intl, which knows no changes but only offsets: it looks every second day and halves the distance
 * where two differ. What it has found is kept, 16 days at a time.
 */
export class ZoneClock {
  readonly zone: string
  readonly #format: Intl.DateTimeFormat
  readonly #blocks = new Map<number, Block>()

  constructor(zone: string) {
    this.zone = zone
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  }

  /** What the clock shows at an instant. */
  wallAt(at: number): WallMs {
    return at + this.stretchAt(at).offset
  }

  /** The offset at an instant, and an instant until which it surely stays so; it may well stay longer. */
  stretchAt(at: number): Stretch {
    const index = Math.floor(at / blockMs)
    let { offset, changes } = this.#block(index)
    for (const change of changes) {
      if (change.at > at) return { until: change.at, offset }
      offset = change.after
    }
    return { until: (index + 1) * blockMs, offset }
  }

  /** The first instant at which the clock shows this time or, where a gap swallows it, a later one. */
  firstInstant(wall: WallMs): number {
    for (let at = wall - reachMs; ; ) {
      const { until, offset } = this.stretchAt(at)
      const shownAt = Math.max(at, wall - offset)
      if (shownAt < until) return shownAt
      at = until
    }
  }

  /** The least time that the clock has neither shown nor skipped up to an instant, that instant included. */
  unseenFrom(at: number): WallMs {
    const skipped = this.#changesIn(at - largestChangeMs, at).map((change) => change.at + change.before)
    return Math.max(this.wallAt(at) + 1, ...skipped)
  }

  /** The times that the clock skips at an instant, the first and the end; null when it skips none. */
  gapAt(at: number): { readonly from: WallMs; readonly to: WallMs } | null {
    const [change] = this.#changesIn(at - 1, at)
    return change === undefined || change.after < change.before
      ? null
      : { from: at + change.before, to: at + change.after }
  }

  /** Tells whether the time that the clock shows at an instant is shown a second time later. */
  isShownAgain(at: number): boolean {
    const wall = this.wallAt(at)
    return this.#changesIn(at, at + largestChangeMs).some((change) => change.at + change.after <= wall)
  }

  /** The changes after one instant up to another, that one included. */
  #changesIn(after: number, to: number): readonly ClockChange[] {
    const first = Math.floor(after / blockMs)
    const count = Math.floor(to / blockMs) - first + 1
    const changes = Array.from({ length: count }, (_, number) => this.#block(first + number).changes).flat()
    return changes.filter(({ at }) => at > after && at <= to)
  }

  #block(index: number): Block {
    const known = this.#blocks.get(index)
    if (known !== undefined) return known
    const block = this.#explore(index * blockMs)
    this.#blocks.set(index, block)
    return block
  }

  /** Finds the changes after the beginning of a block, those at the beginning of the next one included. */
  #explore(from: number): Block {
    const changes: ClockChange[] = []
    const offset = this.#offsetAt(from)
    let before = offset
    for (let sample = 1; sample <= samplesPerBlock; sample++) {
      const end = from + sample * sampleMs
      const after = this.#offsetAt(end)
      if (after !== before) changes.push({ at: this.#changeBetween(end - sampleMs, end, before), before, after })
      before = after
    }
    return { offset, changes }
  }

  /** The first instant at which the offset is no longer the given one; `early` still shows it, `late` does not. */
  #changeBetween(early: number, late: number, offset: number): number {
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2)
      if (this.#offsetAt(middle) === offset) early = middle
      else late = middle
    }
    return late
  }

  #offsetAt(at: number): number {
    const [, sign, hours, minutes, seconds] = offsetText.exec(this.#format.format(at)) as RegExpExecArray
    const size = Number(hours ?? 0) * hourMs + Number(minutes ?? 0) * 60_000 + Number(seconds ?? 0) * 1_000
    return sign === '-' ? -size : size
  }
}

/** "1/31/2026, GMT+02:00"; of UTC just "GMT". */
const offsetText = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/

/** Names that Intl takes beyond IANA's: offsets, and three letters whose meaning differs from country to country. */
const notIana = /^[+-]|^SystemV\/|^(?!UTC|GMT|UCT|EST|MST|HST|CET|MET|EET|WET|PRC|ROC|ROK)[A-Z]{3}$/i

const clocks = new Map<string, ZoneClock>()

/** Lends the clock of an IANA time zone; one for all who ask. Throws DATA_INVALID when there is no such zone. */
export function zoneClock(zone: string): ZoneClock {
  const known = clocks.get(zone)
  if (known !== undefined) return known
  const clock = open(zone)
  clocks.set(zone, clock)
  return clock
}

function open(zone: unknown): ZoneClock {
  try {
    if (typeof zone === 'string' && !notIana.test(zone)) return new ZoneClock(zone)
  } catch {
    // Intl knows no such zone: said below.
  }
  const hint = typeof zone === 'string' ? didYouMean(zone, Intl.supportedValuesOf('timeZone')) : ''
  throw new KhepriError('DATA_INVALID', `zone must be the name of an IANA time zone, got ${shown(zone)}${hint}`, {
    fix: 'write a name such as "Europe/Oslo", "America/New_York" or "UTC"',
  })
}
