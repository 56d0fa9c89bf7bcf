import { type DurationInput, parseDuration } from '../core/duration.ts'
import { KhepriError } from '../core/errors.ts'
import { shown } from '../core/text.ts'
import { nextMatch } from './calendar.ts'
import { type CronFields, parseCronFields } from './cron-fields.ts'
import { type ZoneClock, zoneClock } from './zone-clock.ts'

/** When a schedule fires, as its definition says it; exactly one of the first three. */
export interface CadenceInput {
  /** Five fields, or `@hourly`, `@daily` and so on. */
  readonly cron?: string | undefined
  /** An interval; its slots are its multiples, counted from 1970-01-01T00:00Z, so that all processes agree. */
  readonly every?: DurationInput | undefined
  /** A time of the day, "02:30". */
  readonly dailyAt?: string | undefined
  /** An IANA time zone; UTC unless given, never that of the process. */
  readonly zone?: string | undefined
}

/** What a change of the clocks has to do with a slot. */
export interface SlotMarks {
  /** It stands for times that the clock skips. */
  readonly gap: boolean
  /** The clock shows its time twice, and it runs at the first. */
  readonly doubled: boolean
}

/** When a schedule fires. Instants are epoch milliseconds. */
export interface Cadence {
  /** The definition, for people. */
  readonly text: string
  readonly zone: string
  /** The first slot after an instant. Throws RangeError for one before the year 1900 or after 9000. */
  next(after: number): number
  /** What is special about a slot. */
  marksAt(slot: number): SlotMarks
}

/** One firing of a schedule. */
export interface Firing extends SlotMarks {
  readonly at: number
}

/** Reads a cadence. Throws DATA_INVALID for whatever is invalid or can never fire. */
export function parseCadence(input: CadenceInput): Cadence {
  const clock = zoneClock(input.zone ?? 'UTC')
  const given = (['cron', 'every', 'dailyAt'] as const).filter((key) => input[key] !== undefined)
  if (given.length !== 1)
    throw new KhepriError(
      'DATA_INVALID',
      `a schedule needs cron, every or dailyAt, got ${given.join(' and ') || 'none'}`,
      {
        fix: 'give exactly one of the three',
      },
    )
  if (input.every !== undefined) return new Interval(input.every, clock.zone)
  if (input.dailyAt !== undefined) return daily(input.dailyAt, clock)
  return onCron(input.cron, clock)
}

/** Walks through the slots from one instant on to another, which is no longer included. */
export function* firings(cadence: Cadence, from: number, to: number): Generator<Firing, void, undefined> {
  for (let at = cadence.next(from - 1); at < to; at = cadence.next(at)) yield { at, ...cadence.marksAt(at) }
}

const unmarked: SlotMarks = Object.freeze({ gap: false, doubled: false })

function onCron(cron: unknown, clock: ZoneClock): Cadence {
  if (typeof cron !== 'string')
    throw new KhepriError('DATA_INVALID', `cron must be an expression such as "30 2 * * *", got ${shown(cron)}`)
  const fields = parseCronFields(cron)
  const text = cron.trim().replace(/\s+/g, ' ')
  return fields.isRealTime ? new RealTime(text, fields, clock) : new WallTime(text, fields, clock)
}

function daily(dailyAt: unknown, clock: ZoneClock): Cadence {
  const [, hour, minute] = (typeof dailyAt === 'string' && /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(dailyAt.trim())) || []
  if (hour === undefined || minute === undefined)
    throw new KhepriError('DATA_INVALID', `dailyAt must be a time from "00:00" to "23:59", got ${shown(dailyAt)}`)
  const fields = parseCronFields(`${minute} ${hour} * * *`)
  return new WallTime(`daily at ${hour.padStart(2, '0')}:${minute}`, fields, clock)
}

/** Slots at the multiples of a duration. */
class Interval implements Cadence {
  readonly text: string
  readonly zone: string
  readonly #everyMs: number

  constructor(every: DurationInput, zone: string) {
    this.#everyMs = parseDuration(every, 'every', longestEveryMs)
    if (this.#everyMs < leastEveryMs)
      throw new KhepriError('DATA_INVALID', `every must be at least 1s, got ${shown(every)}`)
    this.text = `every ${typeof every === 'number' ? `${every}s` : every.trim()}`
    this.zone = zone
  }

  next(after: number): number {
    return (Math.floor(inRange(after) / this.#everyMs) + 1) * this.#everyMs
  }

  marksAt(): SlotMarks {
    return unmarked
  }
}

/** Slots at every instant at which the clock shows an allowed time. */
class RealTime implements Cadence {
  readonly text: string
  readonly zone: string
  readonly #fields: CronFields
  readonly #clock: ZoneClock

  constructor(text: string, fields: CronFields, clock: ZoneClock) {
    this.text = text
    this.zone = clock.zone
    this.#fields = fields
    this.#clock = clock
  }

  next(after: number): number {
    for (let from = inRange(after) + 1; ; ) {
      const { until, offset } = this.#clock.stretchAt(from)
      const slot = nextMatch(this.#fields, from + offset) - offset
      if (slot < until) return slot
      from = until
    }
  }

  marksAt(): SlotMarks {
    return unmarked
  }
}

/**
 * One slot for each allowed time on the wall: at the first instant that shows it or, in a gap, at the first after it.
 *
 * All times in a gap therefore meet at one instant, and with them the time that this instant itself shows.
 */
class WallTime implements Cadence {
  readonly text: string
  readonly zone: string
  readonly #fields: CronFields
  readonly #clock: ZoneClock

  constructor(text: string, fields: CronFields, clock: ZoneClock) {
    this.text = text
    this.zone = clock.zone
    this.#fields = fields
    this.#clock = clock
  }

  next(after: number): number {
    return this.#clock.firstInstant(nextMatch(this.#fields, this.#clock.unseenFrom(inRange(after))))
  }

  marksAt(slot: number): SlotMarks {
    const gap = this.#clock.gapAt(slot)
    return {
      gap: gap !== null && nextMatch(this.#fields, gap.from) < gap.to,
      doubled: this.#clock.isShownAgain(slot),
    }
  }
}

const leastEveryMs = 1_000
const longestEveryMs = 3_650 * 86_400_000

const [earliest, latest] = [Date.UTC(1900), Date.UTC(9000)]

function inRange(at: number): number {
  if (at >= earliest && at <= latest) return Math.floor(at)
  throw new RangeError(`an instant must be in the years 1900 to 9000, got ${shown(at)}`)
}
