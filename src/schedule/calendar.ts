import type { CronFields } from './cron-fields.ts'
import type { WallMs } from './zone-clock.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

/** The first time on the wall, from a given one on, that a cron expression allows. */
export function nextMatch(fields: CronFields, from: WallMs): WallMs {
  const start = Math.ceil(from / minuteMs) * minuteMs
  const today = Math.floor(start / dayMs) * dayMs
  const late = isDay(fields, today) ? timeOfDay(fields, start - today) : null
  if (late !== null) return today + late
  return nextDay(fields, today + dayMs) + (timeOfDay(fields, 0) ?? 0)
}

/** The first allowed day from a given one on. There is one: what can never fire has been refused. */
function nextDay(fields: CronFields, from: WallMs): WallMs {
  for (let day = from; ; ) {
    if (isDay(fields, day)) return day
    day = fields.months.includes(monthOf(day)) ? day + dayMs : nextMonth(day)
  }
}

function isDay({ days, months, weekdays, isEitherDay }: CronFields, day: WallMs): boolean {
  if (!months.includes(monthOf(day))) return false
  const date = new Date(day)
  const [isDate, isWeekday] = [days.includes(date.getUTCDate()), weekdays.includes(date.getUTCDay())]
  return isEitherDay ? isDate || isWeekday : isDate && isWeekday
}

/** The first allowed time of a day, from a given one on; null when that day has none left. */
function timeOfDay({ hours, minutes }: CronFields, from: number): number | null {
  const fromMinute = from / minuteMs
  for (const hour of hours) {
    const minute = minutes.find((each) => hour * 60 + each >= fromMinute)
    if (minute !== undefined) return (hour * 60 + minute) * minuteMs
  }
  return null
}

const monthOf = (day: WallMs): number => new Date(day).getUTCMonth() + 1

function nextMonth(day: WallMs): WallMs {
  const date = new Date(day)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}
