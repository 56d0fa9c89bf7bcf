/**
 * Every error code khepri can show, with what it means. Codes are stable: scripts may match on them.
 * The exit code that belongs to each stands in `cli/exit-codes.ts`; a test walks both tables.
 */
export const errorCodes = {
  USAGE: 'an unknown command or flag, a bad value, a missing argument',
  NOT_FOUND: 'the id, queue or schedule asked for does not exist',
  KEY_HELD: 'a live job holds the unique key of a job that was to be dispatched or put back',
  JOB_FAILED: 'the job that khepri run ran did not end well',
  SCHEDULE_FAILED: 'a schedule cannot fire: its job is unknown, does not load, or refuses the payload',
  UNHEALTHY: 'khepri health found no worker that is well',
  OVER_LIMIT: 'status --check found more ready or failed jobs, or a longer wait, than a limit allows',
  JSON_INVALID: 'the input is not valid JSON, or holds more than one value on a line',
  DATA_INVALID: 'a job object has an unknown key, a wrong type or a value out of range',
  PAYLOAD_REFUSED: "the payload does not fit the job's schema, is too large or nested too deeply",
  JOB_UNKNOWN: 'no handler is registered under this job name',
  INPUT_MISSING: 'an input file is missing, unreadable or not a file',
  STORE_UNREACHABLE: 'the database cannot be reached; nothing was written',
  STORE_BUSY: 'the database stayed locked past the time-out; nothing was written',
  STORE_FULL: 'the disk or the database is full; nothing was written',
  STORE_DENIED: 'the database role or the file rights do not allow this',
  STORE_FAILED: 'the database refused a statement for a reason khepri does not expect',
  OUTCOME_UNKNOWN: 'the connection broke while a commit was under way: it may or may not have happened',
  SCHEMA_MISSING: 'the tables do not exist yet',
  SCHEMA_BROKEN: 'a table that the migrations created is gone',
  SCHEMA_BEHIND: 'the tables are older than this khepri needs',
  SCHEMA_AHEAD: 'the tables are newer than this khepri understands',
  SCHEMA_FOREIGN: 'a table of that name exists and does not belong to khepri',
  CONFIG_INVALID: 'the configuration has a syntax error, an unknown key or a bad value',
  CONFIG_MISSING: 'a configuration file is needed here and none was found',
  CONFIG_UNSAFE: 'the configuration or the jobs folder belongs to a stranger or is writable by all',
  MODULE_BROKEN: 'a job module or a configuration cannot be imported',
  BINDING_MISSING: 'the native part of better-sqlite3 cannot be loaded',
  FILE_EXISTS: 'the output file exists already',
  IO: 'writing to standard output or to a file failed',
  DRAIN_TIMEOUT: 'the drain time-out passed; running jobs were given back',
  EXIT_CALLED: "the user's code ended the process, or left it nothing to do, before khepri was done",
  UNCAUGHT: "a timer or a promise of the user's code threw an error that belongs to no job",
  SLOTS_STUCK: 'every slot of a worker holds a handler that ignores its abort signal',
  BUG: 'an internal error',
} as const

/** The code of an error that khepri throws; stable, so that programs may match on it. */
export type ErrorCode = keyof typeof errorCodes

export interface ErrorDetails {
  /** The next command or edit that gets the user out, without the word "fix:". */
  readonly fix?: string
  readonly cause?: unknown
}

const brand = Symbol.for('khepri.error')

/** The one error khepri throws on purpose: what happened, to which thing, with the value; and the way out. */
export class KhepriError extends Error {
  readonly [brand] = true
  readonly code: ErrorCode
  readonly fix: string | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'KhepriError'
    this.code = code
    this.fix = details.fix
  }
}

/** Tells whether a value is a KhepriError, of this copy of the package or of another one. */
export function isKhepriError(value: unknown): value is KhepriError {
  try {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
  } catch {
    // Users may throw what throws itself when it is looked at.
    return false
  }
}

const transientCodes: ReadonlySet<ErrorCode> = new Set([
  'STORE_UNREACHABLE',
  'STORE_BUSY',
  'STORE_FULL',
  'STORE_DENIED',
  'OUTCOME_UNKNOWN',
])

/** Tells whether a worker should wait and try again: the store may come back, be unlocked, or get room or rights. */
export function isTransient(error: unknown): error is KhepriError {
  return isKhepriError(error) && transientCodes.has(error.code)
}
