import type { Face, Minute } from './watched-clock.ts'

/** A slot as the rules of docs/schedules.md say it, word by word. */
export interface NaiveSlot {
  readonly at: number
  readonly gap: boolean
  readonly doubled: boolean
}

const nicknames: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

const names =
  'jan=1 feb=2 mar=3 apr=4 may=5 jun=6 jul=7 aug=8 sep=9 oct=10 nov=11 dec=12 sun=0 mon=1 tue=2 wed=3 thu=4 fri=5 sat=6'
const numbers = new Map(names.split(' ').map((pair) => pair.split('=') as [string, string]))

/** The slots of a cron expression in the minutes in which a clock was watched, one minute after the other. */
export function slotsIn(expression: string, minutes: readonly Minute[]): readonly NaiveSlot[] {
  const allows = reader(expression)
  const hour = fieldsOf(expression)[1] ?? ''
  const isRealTime = hour === '*' || (hour.startsWith('*/') && !hour.includes(','))
  const slots: NaiveSlot[] = []
  for (const { at, face, isAgain, isTwice, skipped } of minutes) {
    if (isRealTime) {
      if (allows(face)) slots.push({ at, gap: false, doubled: false })
      continue
    }
    const gap = skipped.some(allows)
    const isDue = allows(face) && !isAgain
    if (gap || isDue) slots.push({ at, gap, doubled: isTwice && !isAgain })
  }
  return slots
}

/** Tells whether any day of 28 years, as many as it takes for every date to have been every day of the week, is allowed. */
export function everFires(expression: string): boolean {
  const [, , day, month, weekday] = fieldsOf(expression)
  const allows = reader(`* * ${day} ${month} ${weekday}`)
  for (let face = Date.UTC(2000, 0); face < Date.UTC(2028, 0); face += 86_400_000) if (allows(face)) return true
  return false
}

const fieldsOf = (expression: string): readonly string[] => (nicknames[expression] ?? expression).split(' ')

function reader(expression: string): (face: Face) => boolean {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fieldsOf(expression)
  const allowed = {
    minute: tableOf(minute, 0, 59),
    hour: tableOf(hour, 0, 23),
    day: tableOf(day, 1, 31),
    month: tableOf(month, 1, 12),
    weekday: tableOf(weekday, 0, 6),
  }
  const isEither = !day.startsWith('*') && !weekday.startsWith('*')
  return (face) => {
    const date = new Date(face)
    const isDate = allowed.day[date.getUTCDate()] === true
    const isWeekday = allowed.weekday[date.getUTCDay()] === true
    return (
      allowed.minute[date.getUTCMinutes()] === true &&
      allowed.hour[date.getUTCHours()] === true &&
      allowed.month[date.getUTCMonth() + 1] === true &&
      (isEither ? isDate || isWeekday : isDate && isWeekday)
    )
  }
}

/** For each value of a field whether it is allowed. */
const tableOf = (field: string, least: number, most: number): readonly boolean[] =>
  Array.from({ length: most + 1 }, (_, value) => value >= least && isIn(field, value, least, most))

function isIn(field: string, value: number, least: number, most: number): boolean {
  return field.split(',').some((item) => {
    const [range = '', step = '1'] = item.split('/')
    const [first = '', last = first] = range === '*' ? [`${least}`, `${most}`] : range.split('-')
    const from = numberOf(first)
    const to = most === 6 && from > 0 && numberOf(last) === 0 ? 7 : numberOf(last)
    for (let each = from; each <= to; each += Number(step)) {
      if (each === value || (most === 6 && each === 7 && value === 0)) return true
    }
    return false
  })
}

const numberOf = (text: string): number => Number(numbers.get(text.toLowerCase()) ?? text)
