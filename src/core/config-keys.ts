import { type Backoff, parseBackoff } from './backoff.ts'
import { defaults } from './defaults.ts'
import { parseDuration } from './duration.ts'
import { KhepriError } from './errors.ts'
import {
  checkMaxCrashes,
  checkQueue,
  checkTries,
  checkWhole,
  parsePositive,
  parseRetryAfter,
  parseTimeout,
} from './terms.ts'
import { shown } from './text.ts'
import { refuseStrangers } from './unknown-keys.ts'

/** A queue that the config declares; the order of declaration is the order of draining. */
export interface DeclaredQueue {
  readonly name: string
  /** How many of its jobs a worker may run at once; null: no limit but the worker's own. */
  readonly concurrency: number | null
}

/** The settings that are one value each, resolved. */
export interface Settings {
  readonly table: string
  readonly failedTable: string
  readonly schema: string | undefined
  /** For jobs that name none. */
  readonly queue: string
  /** Null: as many as the limits of the queues served add up to, and one for queues without a limit. */
  readonly concurrency: number | null
  /** Silence after which a worker is dead. */
  readonly retryAfterMs: number
  /** The longest wait between two looks at an idle store. */
  readonly sleepMs: number
  /** For jobs without their own; null: none. */
  readonly timeoutMs: number | null
  readonly tries: number
  readonly backoff: Backoff
  readonly maxCrashes: number
  readonly unknownJobs: 'fail' | 'wait'
  readonly maxPayloadBytes: number
  /** null: deleted at once. */
  readonly keepDoneMs: number | null
  /** null: for ever. */
  readonly keepFailedMs: number | null
  readonly keepCancelledMs: number
  /** Postgres only: false behind a pooler in transaction mode. */
  readonly prepare: boolean
  /** A producer starts no worker; a worker dispatches from its handlers only. */
  readonly role: Role
  /** That jobs end with the process is meant so, also in production. */
  readonly ephemeral: boolean
}

/** What a process does. */
export type Role = 'both' | 'producer' | 'worker'

/** How a setting is read: its key in a config, its meaning, its value where nobody gave one, and the check of a given one. */
interface Setting<T> {
  readonly key: string
  readonly meaning: string
  readonly otherwise: T
  readonly parse: (value: unknown, what: string) => T
}

/** How long what has ended may be kept at most. */
const longestKeepMs = 36_500 * 86_400_000

const keep = (value: unknown, what: string): number => parseDuration(value, what, longestKeepMs)
const positive = (value: unknown, what: string): number => parsePositive(value, what, defaults.maxDelayMs)

/** Every setting with one value, the database apart. Text from the environment is read by the same checks. */
export const settings: { readonly [Name in keyof Settings]: Setting<Settings[Name]> } = {
  table: {
    key: 'table',
    meaning: 'the table of jobs; the other names follow from it',
    otherwise: defaults.table,
    parse: checkText,
  },
  failedTable: {
    key: 'failedTable',
    meaning: 'the table of failed jobs',
    otherwise: defaults.failedTable,
    parse: checkText,
  },
  schema: { key: 'schema', meaning: 'the Postgres schema of the tables', otherwise: undefined, parse: checkSchema },
  queue: { key: 'queue', meaning: 'the queue of jobs that name none', otherwise: defaults.queue, parse: checkQueue },
  concurrency: {
    key: 'concurrency',
    meaning: 'jobs a worker runs at once',
    otherwise: null,
    parse: checkConcurrency,
  },
  retryAfterMs: {
    key: 'retryAfter',
    meaning: 'silence after which a worker is dead',
    otherwise: defaults.retryAfterMs,
    parse: parseRetryAfter,
  },
  sleepMs: {
    key: 'sleep',
    meaning: 'the longest wait between two looks at an idle queue',
    otherwise: defaults.sleepMs,
    parse: positive,
  },
  timeoutMs: {
    key: 'timeout',
    meaning: 'bounds an attempt of jobs without their own',
    otherwise: null,
    parse: parseTimeout,
  },
  tries: {
    key: 'tries',
    meaning: 'how often jobs without their own may run',
    otherwise: defaults.tries,
    parse: checkTries,
  },
  backoff: {
    key: 'backoff',
    meaning: 'the wait before the next try, for jobs without their own',
    otherwise: defaults.backoff,
    parse: parseBackoff,
  },
  maxCrashes: {
    key: 'maxCrashes',
    meaning: 'deaths of its worker after which a job is failed',
    otherwise: defaults.maxCrashes,
    parse: checkMaxCrashes,
  },
  unknownJobs: {
    key: 'unknownJobs',
    meaning: 'what becomes of jobs without a handler: fail or wait',
    otherwise: 'fail',
    parse: checkUnknownJobs,
  },
  maxPayloadBytes: {
    key: 'maxPayload',
    meaning: 'the largest payload',
    otherwise: defaults.maxPayloadBytes,
    parse: parseSize,
  },
  keepDoneMs: {
    key: 'keepDone',
    meaning: 'how long done jobs are kept; not at all unless set',
    otherwise: null,
    parse: keep,
  },
  keepFailedMs: {
    key: 'keepFailed',
    meaning: 'how long failed jobs are kept; for ever unless set',
    otherwise: null,
    parse: keep,
  },
  keepCancelledMs: {
    key: 'keepCancelled',
    meaning: 'how long cancelled jobs are kept',
    otherwise: defaults.keepCancelledMs,
    parse: keep,
  },
  prepare: {
    key: 'prepare',
    meaning: 'false behind a Postgres pooler in transaction mode',
    otherwise: true,
    parse: checkFlag,
  },
  role: {
    key: 'role',
    meaning: 'what this process does: both, producer (no worker) or worker (only handlers dispatch)',
    otherwise: 'both',
    parse: checkRole,
  },
  ephemeral: {
    key: 'ephemeral',
    meaning: 'true: memory: and sync: are meant, also in production',
    otherwise: false,
    parse: checkFlag,
  },
}

/** Every key a config may have. */
export const configKeys: readonly string[] = [
  'database',
  'queues',
  'jobs',
  'schedules',
  'scope',
  ...Object.values(settings).map(({ key }) => key),
]

/** Throws CONFIG_INVALID, with a suggestion, at the first key that is not known. what: the thing that has the keys, "" for the config. */
export function refuseUnknownKeys(input: object, known: readonly string[], what: string): void {
  refuseStrangers(input, known, { what, code: 'CONFIG_INVALID' })
}

/** Reads `queues`; the order in which they stand is kept. */
export function parseQueues(value: unknown): readonly DeclaredQueue[] {
  if (!isRecord(value)) throw invalid('queues', 'an object such as { high: { concurrency: 8 }, default: {} }', value)
  const declared = Object.entries(value)
  if (declared.length === 0) throw invalid('queues', 'an object with at least one queue', value)
  return declared.map(([name, options]) => {
    const what = `queues.${name}`
    if (!isRecord(options)) throw invalid(what, 'an object, {} where it has no options', options)
    refuseUnknownKeys(options, ['concurrency'], what)
    const { concurrency } = options
    return {
      name: checkQueue(name, what),
      concurrency: concurrency === undefined ? null : checkConcurrency(concurrency, `${what}.concurrency`),
    }
  })
}

const unitBytes: Readonly<Record<string, number>> = { B: 1, kB: 1e3, MB: 1e6, KiB: 1024, MiB: 1024 ** 2 }
const largestPayload = 256 * 1024 ** 2

/** Reads a size: "1MiB", "512KiB", "100kB", or a bare number of bytes. The result is bytes. */
function parseSize(value: unknown, what: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(B|kB|KiB|MB|MiB)?$/.exec(
    typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : '',
  )
  const bytes = match ? Math.round(Number(match[1]) * (unitBytes[match[2] ?? 'B'] as number)) : Number.NaN
  if (!(bytes >= 1 && bytes <= largestPayload))
    throw invalid(what, 'a size such as "1MiB" or "512KiB", at most 256MiB (a bare number is bytes)', value)
  return bytes
}

function checkConcurrency(value: unknown, what: string): number {
  return checkWhole(value, what, { least: 1, most: Number.MAX_SAFE_INTEGER })
}

function checkText(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '') throw invalid(what, 'a name', value)
  return value
}

/** The longest identifier that Postgres does not cut. */
const schemaPattern = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/

function checkSchema(value: unknown, what: string): string {
  if (typeof value !== 'string' || !schemaPattern.test(value))
    throw invalid(what, '1 to 63 letters, digits and _, not beginning with a digit', value)
  return value
}

function checkUnknownJobs(value: unknown, what: string): 'fail' | 'wait' {
  if (value !== 'fail' && value !== 'wait') throw invalid(what, '"fail" or "wait"', value)
  return value
}

const roles: readonly Role[] = ['both', 'producer', 'worker']

function checkRole(value: unknown, what: string): Role {
  const known = roles.find((role) => role === value)
  if (known === undefined) throw invalid(what, '"both", "producer" or "worker"', value)
  return known
}

function checkFlag(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw invalid(what, 'true or false', value)
  return value
}

/** Tells whether a value is an object with keys. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const invalid = (what: string, wanted: string, got: unknown): KhepriError =>
  new KhepriError('CONFIG_INVALID', `${what} must be ${wanted}, got ${shown(got)}`)
