import { type ErrorCode, isKhepriError } from '../core/errors.ts'

/** Every exit code of the command line, by its name. */
export const exits = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  data: 65,
  noInput: 66,
  unavailable: 69,
  bug: 70,
  cannotCreate: 73,
  io: 74,
  tryAgain: 75,
  noPermission: 77,
  config: 78,
} as const

/** The exit code that belongs to each error code. */
export const exitOf: Readonly<Record<ErrorCode, number>> = {
  USAGE: exits.usage,
  NOT_FOUND: exits.notFound,
  KEY_HELD: exits.failed,
  JOB_FAILED: exits.failed,
  SCHEDULE_FAILED: exits.failed,
  UNHEALTHY: exits.failed,
  OVER_LIMIT: exits.failed,
  JSON_INVALID: exits.data,
  DATA_INVALID: exits.data,
  PAYLOAD_REFUSED: exits.data,
  JOB_UNKNOWN: exits.data,
  INPUT_MISSING: exits.noInput,
  STORE_UNREACHABLE: exits.unavailable,
  STORE_BUSY: exits.tryAgain,
  STORE_FULL: exits.io,
  STORE_DENIED: exits.noPermission,
  STORE_FAILED: exits.bug,
  OUTCOME_UNKNOWN: exits.tryAgain,
  SCHEMA_MISSING: exits.config,
  SCHEMA_BROKEN: exits.config,
  SCHEMA_BEHIND: exits.config,
  SCHEMA_AHEAD: exits.config,
  SCHEMA_FOREIGN: exits.cannotCreate,
  CONFIG_INVALID: exits.config,
  CONFIG_MISSING: exits.config,
  CONFIG_UNSAFE: exits.noPermission,
  MODULE_BROKEN: exits.config,
  BINDING_MISSING: exits.config,
  FILE_EXISTS: exits.cannotCreate,
  IO: exits.io,
  DRAIN_TIMEOUT: exits.tryAgain,
  EXIT_CALLED: exits.bug,
  UNCAUGHT: exits.bug,
  SLOTS_STUCK: exits.bug,
  BUG: exits.bug,
}

/** The exit code of anything thrown; what khepri did not throw on purpose is a bug. */
export function exitCodeOf(error: unknown): number {
  return isKhepriError(error) ? exitOf[error.code] : exits.bug
}

/** The table of `khepri help exit-codes`. */
export const exitCodeTable: readonly { readonly code: string; readonly name: string; readonly when: string }[] = [
  {
    code: '0',
    name: 'ok',
    when: 'done; a worker that drained after a signal, --once, --stop-when-empty or --max-*; an empty list; nothing to retry',
  },
  {
    code: '1',
    name: 'failed',
    when: 'partly or wholly failed: some ids of several, rejected lines, a job that does not load, status --check over a limit, a fault that doctor found, health found nobody well, --exit-code or run with a failed job',
  },
  { code: '2', name: 'usage', when: 'unknown command or flag, bad value, missing argument, --yes needed' },
  { code: '3', name: 'not found', when: 'the id, queue or schedule asked for; work --once --exit-code found no job' },
  { code: '65', name: 'data', when: 'invalid JSON, payload refused by its schema, unknown job name' },
  { code: '66', name: 'no input', when: 'file missing or unreadable' },
  { code: '69', name: 'unavailable', when: 'database unreachable' },
  {
    code: '70',
    name: 'bug',
    when: 'internal error, with a report text; a job or module that ended the process; a worker whose slots are all stuck',
  },
  { code: '73', name: 'cannot create', when: 'the output file exists; a table of that name is not ours' },
  { code: '74', name: 'io', when: 'stdout gone, disk full' },
  {
    code: '75',
    name: 'try again',
    when: 'database locked past the time-out; drain time-out passed and jobs were released; a dispatch whose outcome is unknown',
  },
  { code: '77', name: 'no permission', when: 'database role or file rights; a config owned by a stranger' },
  {
    code: '78',
    name: 'config',
    when: 'config missing where needed, invalid; schema missing, behind or ahead; native binding missing; Node too old',
  },
  { code: '130/143', name: 'signal', when: 'second SIGINT / SIGTERM' },
]
