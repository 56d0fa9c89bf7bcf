import { defaults } from '../core/defaults.ts'
import { parseDuration } from '../core/duration.ts'
import { KhepriError } from '../core/errors.ts'

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Says how long ago a moment was, in one unit: "3m ago"; or how far ahead: "in 3m". */
export function age(at: number, now: number): string {
  const distance = Math.abs(now - at)
  const [unit, size] = units.find(([, each]) => distance >= each) ?? units[3]
  const text = `${Math.floor(distance / size)}${unit}`
  return at > now && distance >= 1_000 ? `in ${text}` : `${text} ago`
}

const furthest = 8.64e15

/** Writes a moment as ISO 8601: in UTC, or with the offset of a time zone. */
export function isoTime(at: number, timezone?: string): string {
  if (!(Math.abs(at) <= furthest)) return String(at)
  if (timezone === undefined) return new Date(at).toISOString()
  const offset = offsetMs(at, timezone)
  return `${new Date(at + offset).toISOString().slice(0, -1)}${offsetText(offset)}`
}

function offsetText(offset: number): string {
  const minutes = Math.round(Math.abs(offset) / 60_000)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

/** Milliseconds a zone's clocks are ahead of UTC at a moment. */
function offsetMs(at: number, timezone: string): number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const wall = Date.UTC(
    parts['year'] as number,
    (parts['month'] as number) - 1,
    parts['day'],
    parts['hour'],
    parts['minute'],
    parts['second'],
  )
  return wall - Math.floor(at / 1_000) * 1_000
}

/** Checks the name of a time zone. Throws USAGE. */
export function checkTimezone(input: string, what: string): string {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: input }).resolvedOptions().timeZone && input
  } catch (error) {
    throw new KhepriError(
      'USAGE',
      `${what} must be a time zone such as Europe/Berlin or UTC, got ${JSON.stringify(input)}`,
      { cause: error },
    )
  }
}

const isoPattern = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?))?(Z|[+-]\d{2}:?\d{2})?$/i

/**
 * Reads an ISO 8601 moment; the result is epoch milliseconds.
 *
 * Without an offset in the text the time zone says what is meant. Throws USAGE where neither is there, where the text is
 * no date, and for a time of day that the zone's clocks skip.
 */
export function parseZonedTime(input: string, what: string, timezone: string | undefined): number {
  const [, date, time = '00:00', offset] = isoPattern.exec(input.trim()) ?? []
  const wall = date === undefined ? Number.NaN : Date.parse(`${date}T${time}Z`)
  if (Number.isNaN(wall) || new Date(wall).toISOString().slice(0, 10) !== date)
    throw new KhepriError('USAGE', `${what} must be a time such as 2026-11-30T14:00:00Z, got ${JSON.stringify(input)}`)
  if (offset !== undefined)
    return Date.parse(`${date}T${time}${/^z$/i.test(offset) ? 'Z' : offset.replace(/^(...):?(..)$/, '$1:$2')}`)
  if (timezone === undefined)
    throw new KhepriError('USAGE', `${what} needs an offset, got ${JSON.stringify(input)}`, {
      fix: `write ${input}Z for UTC, or say --timezone Europe/Berlin`,
    })
  const at = wall - offsetMs(wall - offsetMs(wall, timezone), timezone)
  if (at + offsetMs(at, timezone) === wall) return at
  throw new KhepriError('USAGE', `${what} names a time that clocks in ${timezone} skip: ${JSON.stringify(input)}`)
}

/** Reads a moment in the past: a duration ("2h": two hours ago) or an ISO 8601 time. Throws USAGE. */
export function parsePast(
  input: string,
  what: string,
  { timezone, now }: { readonly timezone: string | undefined; readonly now: number },
): number {
  if (/^\d+(\.\d+)?[a-z]+$/i.test(input)) return now - durationOf(input, what)
  if (!isoPattern.test(input.trim())) throw notPast(input, what)
  return parseZonedTime(input, what, timezone)
}

function durationOf(input: string, what: string): number {
  try {
    return parseDuration(input, what, defaults.maxDelayMs)
  } catch (error) {
    throw notPast(input, what, error)
  }
}

const notPast = (input: string, what: string, cause?: unknown): KhepriError =>
  new KhepriError(
    'USAGE',
    `${what} must be a duration such as 2h or a time such as 2026-11-30T14:00:00Z, got ${JSON.stringify(input)}`,
    { cause },
  )
