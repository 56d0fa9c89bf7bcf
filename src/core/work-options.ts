import { isRecord } from './config-keys.ts'
import { KhepriError } from './errors.ts'
import { checkName, checkQueue, checkTries, checkWhole } from './terms.ts'
import { shown } from './text.ts'
import { refuseStrangers } from './unknown-keys.ts'
import type { WorkOptions } from './work.ts'

type Check = (value: unknown, what: string) => unknown

const isOneOf =
  (...words: readonly unknown[]): Check =>
  (value, what) => {
    if (!words.includes(value)) throw invalid(what, words.map(shown).join(' or '), value)
  }
const orNull =
  (check: Check): Check =>
  (value, what) =>
    value === null ? null : check(value, what)
const count: Check = (value, what) => checkWhole(value, what, { least: 1, most: Number.MAX_SAFE_INTEGER })
const bytes = count
const truth = isOneOf(true, false)
const ms: Check = (value, what) => {
  if (typeof value !== 'number' || !(value >= 0) || value === Number.POSITIVE_INFINITY)
    throw invalid(what, 'a number of milliseconds', value)
}

/** How each option of `work` is checked where a program gives it; the command line has checks of its own. */
const checks: { readonly [Key in keyof WorkOptions | 'schedule']: Check } = {
  queues: checkGroups,
  concurrency: count,
  queueLimits: checkLimits,
  sleepMs: ms,
  restMs: ms,
  once: truth,
  stopWhenEmpty: truth,
  maxJobs: orNull(count),
  maxTimeMs: orNull(ms),
  drainTimeoutMs: orNull(ms),
  timeoutMs: orNull(ms),
  tries: checkTries,
  backoff: checkBackoff,
  retryAfterMs: ms,
  unknownJobs: isOneOf('fail', 'wait'),
  maxPayloadBytes: bytes,
  keepDoneMs: orNull(ms),
  endsWhenBlocked: truth,
  name: checkName,
  only: orNull(checkNames),
  except: checkNames,
  // Nothing that a worker does itself; whoever starts it asks for it in the same breath.
  schedule: truth,
}

/** Checks what a program gives to `work`; what is undefined was not given. Throws DATA_INVALID with the option and the value. */
export function checkWorkOptions(options: Partial<WorkOptions>): void {
  if (!isRecord(options)) throw invalid('the options of work', 'an object', options)
  refuseStrangers(options, Object.keys(checks), { what: 'the options of work', code: 'DATA_INVALID' })
  for (const [key, value] of Object.entries(options))
    if (value !== undefined) checks[key as keyof typeof checks](value, key)
}

function checkGroups(value: unknown, what: string): void {
  if (value === 'all') return
  const groups: readonly unknown[] = Array.isArray(value) ? value : []
  if (groups.length === 0 || !groups.every(Array.isArray))
    throw invalid(what, `"all" or a list of groups such as [['high'], ['default']]`, value)
  for (const queue of groups.flat()) checkQueue(queue, `a name in ${what}`)
}

function checkLimits(value: unknown, what: string): void {
  if (!(value instanceof Map)) throw invalid(what, 'a Map from queues to jobs at once', value)
  for (const [queue, limit] of value) count(limit, `${what} of ${checkQueue(queue, `a name in ${what}`)}`)
}

function checkNames(value: unknown, what: string): void {
  if (!Array.isArray(value)) throw invalid(what, 'a list of job names', value)
  for (const name of value) checkName(name, `a name in ${what}`)
}

function checkBackoff(value: unknown, what: string): void {
  if (!isRecord(value) || typeof value.kind !== 'string')
    throw invalid(what, `an object such as { kind: 'fixed', delayMs: 1000 }`, value)
}

const invalid = (what: string, wanted: string, got: unknown): KhepriError =>
  new KhepriError('DATA_INVALID', `${what} must be ${wanted}, got ${shown(got)}`)
