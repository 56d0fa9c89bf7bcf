import { type Backoff, parseBackoff } from './backoff.ts'
import { defaults } from './defaults.ts'
import { formatDuration, parseDuration } from './duration.ts'
import { KhepriError } from './errors.ts'
import type { JobTerms } from './job.ts'
import type { JobId, OnParentFailure } from './store/store.ts'
import { shown } from './text.ts'

/** The terms of a job as the kernel counts them; what is not there was not given. */
export interface Terms {
  readonly queue?: string
  readonly priority?: number
  readonly tries?: number
  readonly backoff?: Backoff
  readonly timeoutMs?: number
  readonly maxCrashes?: number
}

/** The highest priority number, and with a minus sign the lowest: a 16 bit integer without its odd end. */
export const maxPriority = 32_767

/** Tries and crashes are counted in 32 bits. */
const maxCount = 2 ** 31 - 1

interface Reader {
  readonly name: keyof Terms
  readonly parse: (value: unknown, what: string) => unknown
}

/** How each term is read, by its key as users write it. */
const readers: { readonly [Key in keyof JobTerms]-?: Reader } = {
  queue: { name: 'queue', parse: checkQueue },
  priority: { name: 'priority', parse: checkPriority },
  tries: { name: 'tries', parse: checkTries },
  backoff: { name: 'backoff', parse: parseBackoff },
  timeout: { name: 'timeoutMs', parse: parseTimeout },
  maxCrashes: { name: 'maxCrashes', parse: checkMaxCrashes },
}

/** The keys of the terms as users write them. */
export const termKeys = Object.keys(readers) as readonly (keyof JobTerms)[]

/**
 * Reads the terms among the properties of anything: a definition, a class, a part of a job file. Other keys are not looked at.
 *
 * path: stands before each key in messages, "" for none. Throws DATA_INVALID with the path and the value.
 */
export function parseTerms(input: object, path: string): Terms {
  const given = input as JobTerms
  const terms: Record<string, unknown> = {}
  for (const key of termKeys) {
    const value: unknown = given[key]
    if (value === undefined) continue
    const { name, parse } = readers[key]
    terms[name] = parse(value, path === '' ? key : `${path}.${key}`)
  }
  return terms as Terms
}

/** Checks a name, of a job or of anything else: 1 to 255 characters, valid Unicode, no control characters. */
export function checkName(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '') throw invalid(what, 'a name', value)
  if (value.length > defaults.maxNameLength)
    throw new KhepriError(
      'DATA_INVALID',
      `${what} must have at most ${defaults.maxNameLength} characters, got ${value.length}`,
    )
  if (!value.isWellFormed() || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(value))
    throw invalid(what, 'free of control characters and valid Unicode', value)
  return value
}

/** Checks a queue's name: as others, and nothing that a list of queues on the command line could not say. */
export function checkQueue(value: unknown, what: string): string {
  const name = checkName(value, what)
  if (name.includes(',')) throw invalid(what, 'one name without a comma', value)
  if (name.trim() !== name) throw invalid(what, 'free of white space at both ends', value)
  if (name === '*') throw invalid(what, 'a name; "*" means every queue', value)
  return name
}

/** Checks a unique key: it obeys the rules of names. */
export function checkUnique(value: unknown, what: string): string {
  return checkName(value, what)
}

/** Reads the ids of the jobs that a job waits for: one of them, or a list. */
export function parseAfter(value: unknown, what: string): readonly JobId[] {
  const ids: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (ids.length > defaults.mostParents)
    throw new KhepriError(
      'DATA_INVALID',
      `${what} names ${ids.length} jobs, at most ${defaults.mostParents} may be waited for`,
      {
        fix: 'let a job wait for some of them, and others for the rest',
      },
    )
  return ids.map((id) => checkWhole(id, what, { least: 1, most: Number.MAX_SAFE_INTEGER }))
}

const parentFailures: readonly OnParentFailure[] = ['wait', 'cancel', 'run']

/** Checks what becomes of a job whose parent is not done. */
export function checkParentFailure(value: unknown, what: string): OnParentFailure {
  const known = parentFailures.find((one) => one === value)
  if (known === undefined) throw invalid(what, '"wait", "cancel" or "run"', value)
  return known
}

/** Checks a priority: a whole number from -32767 to 32767. */
export function checkPriority(value: unknown, what: string): number {
  return checkWhole(value, what, { least: -maxPriority, most: maxPriority })
}

/** Checks a number of tries. */
export function checkTries(value: unknown, what: string): number {
  return checkWhole(value, what, { least: 1, most: maxCount })
}

/** Checks how many deaths of a worker a job may cause. */
export function checkMaxCrashes(value: unknown, what: string): number {
  return checkWhole(value, what, { least: 0, most: maxCount })
}

/** Reads a bound of an attempt; the result is milliseconds, above zero. */
export function parseTimeout(value: unknown, what: string): number {
  return parsePositive(value, what, defaults.maxDelayMs)
}

/** Reads a duration that must not be zero. */
export function parsePositive(value: unknown, what: string, maxMs: number): number {
  const ms = parseDuration(value, what, maxMs)
  if (ms === 0) throw invalid(what, 'longer than 0', value)
  return ms
}

/** Reads the lease of a worker; the result is milliseconds. */
export function parseRetryAfter(value: unknown, what: string): number {
  const ms = parseDuration(value, what, defaults.maxDelayMs)
  if (ms < defaults.leastRetryAfterMs)
    throw invalid(what, `at least ${formatDuration(defaults.leastRetryAfterMs)}`, value)
  return ms
}

/** Checks a whole number within bounds. */
export function checkWhole(
  value: unknown,
  what: string,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most)
    return (value as number) + 0
  const wanted = most >= maxCount ? `of at least ${least}` : `from ${least} to ${most}`
  throw invalid(what, `a whole number ${wanted}`, value)
}

const momentPattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)$/

/** Below it, an epoch in seconds was meant: as milliseconds it would lie in 1973 or before. */
const leastMoment = 10 ** 11
const lastMoment = Date.UTC(9999, 11, 31)

/** Reads a moment: ISO 8601 with an offset, or epoch milliseconds. The result is epoch milliseconds. */
export function parseMoment(value: unknown, what: string): number {
  const ms = typeof value === 'string' ? parseIso(value) : value
  if (!Number.isSafeInteger(ms))
    throw invalid(what, 'a time with an offset such as "2030-01-31T09:00:00+01:00", or epoch milliseconds', value)
  if ((ms as number) < leastMoment)
    throw invalid(what, 'a time after 1973; numbers are epoch milliseconds, not seconds', value)
  if ((ms as number) > lastMoment)
    throw invalid(what, 'a time before the year 9999; numbers are epoch milliseconds', value)
  return ms as number
}

function parseIso(text: string): number {
  const match = momentPattern.exec(text)
  if (!match) return Number.NaN
  // Date.parse takes the 30th of February for the 2nd of March.
  const [year, month, day] = match.slice(1, 4).map(Number) as [number, number, number]
  return day > new Date(Date.UTC(year, month, 0)).getUTCDate() ? Number.NaN : Date.parse(text)
}

const invalid = (what: string, wanted: string, got: unknown): KhepriError =>
  new KhepriError('DATA_INVALID', `${what} must be ${wanted}, got ${shown(got)}`)
