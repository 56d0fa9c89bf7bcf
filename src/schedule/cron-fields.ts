import { KhepriError } from '../core/errors.ts'
import { didYouMean } from '../core/suggest.ts'
import { shown } from '../core/text.ts'

/** One field of a cron expression: the values it allows, in rising order. */
interface Field {
  readonly values: readonly number[]
  /** It begins with `*`. */
  readonly isOpen: boolean
}

/** What a cron expression allows. */
export interface CronFields {
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  /** 1 is the first day of the month, and January. */
  readonly days: readonly number[]
  readonly months: readonly number[]
  /** 0 is Sunday. */
  readonly weekdays: readonly number[]
  /** Both the days of the month and those of the week are restricted: either will do. */
  readonly isEitherDay: boolean
  /** The field of the hours is `*` or `*` with a step: the expression follows real time, not the clock on the wall. */
  readonly isRealTime: boolean
}

interface FieldKind {
  readonly name: string
  readonly least: number
  readonly most: number
  /** The first name stands for `least`. */
  readonly names: readonly string[]
}

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const kinds = {
  minute: { name: 'minute', least: 0, most: 59, names: [] },
  hour: { name: 'hour', least: 0, most: 23, names: [] },
  day: { name: 'day of the month', least: 1, most: 31, names: [] },
  month: { name: 'month', least: 1, most: 12, names: monthNames },
  // 7 is Sunday once more.
  weekday: { name: 'day of the week', least: 0, most: 7, names: weekdayNames },
} as const satisfies Record<string, FieldKind>

const nicknames: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

/** The days of each month at their most, January first. */
const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/**
 * Reads a cron expression: five fields, or a nickname such as `@daily`.
 *
 * Throws DATA_INVALID, with the expression and the reason, for whatever is not one or can never fire.
 */
export function parseCronFields(expression: string): CronFields {
  const refuse = (reason: string, fix?: string): never => {
    const message = `the cron expression ${shown(expression)} ${reason}`
    throw new KhepriError('DATA_INVALID', message, fix === undefined ? {} : { fix })
  }
  try {
    const fields = read(expression)
    if (!canFire(fields)) throw new Fault('can never fire: no month that it names has such a day')
    return fields
  } catch (error) {
    if (error instanceof Fault) return refuse(error.message, error.fix)
    throw error
  }
}

/** What is wrong with an expression, as the end of a sentence. */
class Fault extends Error {
  readonly fix: string | undefined

  constructor(reason: string, fix?: string) {
    super(reason)
    this.fix = fix
  }
}

function read(expression: string): CronFields {
  const words = expand(expression.trim()).split(/\s+/)
  const [minute, hour, day, month, weekday] = words
  if (words.length !== 5 || !minute || !hour || !day || !month || !weekday) throw notFive(words)
  const days = readField(day, kinds.day)
  const weekdays = readField(weekday, kinds.weekday)
  return {
    minutes: readField(minute, kinds.minute).values,
    hours: readField(hour, kinds.hour).values,
    days: days.values,
    months: readField(month, kinds.month).values,
    weekdays: rising(weekdays.values.map((value) => value % 7)),
    isEitherDay: !days.isOpen && !weekdays.isOpen,
    isRealTime: /^\*(\/\d+)?$/.test(hour),
  }
}

function expand(text: string): string {
  if (!text.startsWith('@')) return text
  const expression = nicknames[text.toLowerCase()]
  if (expression !== undefined) return expression
  if (/^@reboot$/i.test(text)) throw new Fault('names no time: nothing fires when a machine starts', rebootFix)
  if (/^@every\b/i.test(text)) throw new Fault('is an interval', 'write every: "15m" instead of cron')
  const known = Object.keys(nicknames)
  throw new Fault(`is unknown${didYouMean(text, known)}`, `the nicknames are ${known.join(', ')}`)
}

const rebootFix = 'let a systemd unit with WantedBy=multi-user.target dispatch the job'

function notFive(words: readonly string[]): Fault {
  const count = words[0] === '' ? 0 : words.length
  const fix =
    count === 6
      ? 'leave out the field of the seconds, or that of the year'
      : 'write minute, hour, day of the month, month and day of the week, as in "30 2 * * mon-fri"'
  return new Fault(`has ${count} ${count === 1 ? 'field' : 'fields'}, and needs five`, fix)
}

function readField(text: string, kind: FieldKind): Field {
  const values = text.split(',').flatMap((item) => readItem(item, text, kind))
  return { values: rising(values), isOpen: text.startsWith('*') }
}

/** Reads `*`, a value or a range, with a step behind all but the value. */
function readItem(item: string, field: string, kind: FieldKind): readonly number[] {
  const [, range = '', step] = /^([^/]*)(?:\/(.*))?$/.exec(item) as RegExpExecArray
  const [first, last] = readRange(range, field, kind)
  if (step === undefined) return valuesBetween(first, last, 1)
  if (range !== '*' && !range.includes('-'))
    throw new Fault(
      `has ${shown(item)} as its ${kind.name}: a step needs a range`,
      `write ${range}-${lastOf(kind)}/${step}`,
    )
  return valuesBetween(first, last, readStep(step, field, kind))
}

function readRange(range: string, field: string, kind: FieldKind): readonly [number, number] {
  if (range === '*') return [kind.least, lastOf(kind)]
  const dash = range.indexOf('-')
  if (dash < 0) {
    const value = readValue(range, field, kind)
    return [value, value]
  }
  const first = readValue(range.slice(0, dash), field, kind)
  const last = readValue(range.slice(dash + 1), field, kind)
  if (first <= last) return [first, last]
  // The week ends with the Sunday that it may also begin with: fri-sun.
  if (kind.name === kinds.weekday.name && last === 0) return [first, 7]
  throw new Fault(
    `has ${shown(range)} as its ${kind.name}, which runs backwards`,
    `write ${rangeText(first, lastOf(kind))},${rangeText(kind.least, last)}`,
  )
}

function readValue(text: string, field: string, kind: FieldKind): number {
  const place = kind.names.indexOf(text.toLowerCase())
  if (place >= 0) return kind.least + place
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= kind.least && value <= kind.most) return value
  const names = kind.names.length === 0 ? '' : ` or ${kind.names[0]} to ${kind.names.at(-1)}`
  const hint = didYouMean(text, kind.names)
  throw new Fault(`has ${shown(field)} as its ${kind.name}, which must be ${kind.least} to ${kind.most}${names}${hint}`)
}

function readStep(text: string, field: string, kind: FieldKind): number {
  const step = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  const most = lastOf(kind) - kind.least + 1
  if (step >= 1 && step <= most) return step
  const fix = step > most ? 'for longer intervals write every: "90m" instead of cron' : undefined
  throw new Fault(`has ${shown(field)} as its ${kind.name}, whose step must be 1 to ${most}`, fix)
}

/** The last value of a field that is not another name for an earlier one. */
const lastOf = (kind: FieldKind): number => (kind.name === kinds.weekday.name ? 6 : kind.most)

const rangeText = (first: number, last: number): string => (first === last ? `${first}` : `${first}-${last}`)

const valuesBetween = (first: number, last: number, step: number): readonly number[] =>
  Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step)

const rising = (values: readonly number[]): readonly number[] => [...new Set(values)].sort((a, b) => a - b)

/** Every date meets every day of the week within 400 years, so it takes no more than one month that is long enough. */
function canFire({ days, months, isEitherDay }: CronFields): boolean {
  const [first = 1] = days
  return isEitherDay || months.some((month) => first <= (longestMonths[month - 1] ?? 0))
}
