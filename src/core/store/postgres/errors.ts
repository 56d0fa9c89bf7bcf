import { type ErrorCode, KhepriError } from '../../errors.ts'
import { schemaMissing, tableMissing } from '../migrator.ts'

/** How far a call had come when it broke; only a write on its way leaves the outcome open. */
export type Stage = 'connecting' | 'reading' | 'writing'

/** What the rebuilt error of a broken call needs to know. */
export interface Circumstances {
  /** The database as messages show it. */
  readonly label: string
  /** The call, for people: "reserve jobs". */
  readonly doing: string
  readonly stage: Stage
  readonly deadlineMs: number
}

/** Nothing was heard from the server before the deadline, or no connection was free. */
export class SilenceError extends Error {
  readonly code = 'SILENCE'
}

/** The server cancelled a statement, and khepri had not asked for it. */
export class ServerCancelError extends Error {
  readonly code = 'SERVER_CANCEL'
  readonly severity = 'ERROR'
}

interface DriverError {
  readonly code: string
  readonly message: string
  /** Present on what the server itself has said. */
  readonly severity?: string
}

/** Recognised by shape: errors come from the driver, from sockets, from name lookup and from TLS. */
function driverError(error: unknown): DriverError | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null
  return error as unknown as DriverError
}

/** Tells whether the server undid the whole statement for a reason that the next try need not meet. */
export function isConflict(error: unknown): boolean {
  const code = driverError(error)?.code
  return code === '40001' || code === '40P01' || code === '55P03'
}

/** Tells whether the connection broke, so that a call which changes nothing twice may be sent once more. */
export function isBrokenConnection(error: unknown): boolean {
  const found = driverError(error)
  return found !== null && !isSilence(found.code) && (found.severity === undefined || isShutdown(found.code))
}

/** To ask a silent server again would double the wait. */
function isSilence(code: string): boolean {
  return code === 'SILENCE' || code === 'CONNECT_TIMEOUT'
}

function isShutdown(code: string): boolean {
  return code.startsWith('08') || code.startsWith('57P0')
}

/**
 * Rebuilds an error of the driver or of the server as ours, without parameters, passwords or statement text.
 *
 * What is no such error comes back as it is: it is a fault in this program.
 */
export function storeError(error: unknown, circumstances: Circumstances): unknown {
  const found = driverError(error)
  if (found === null || error instanceof KhepriError) return error
  return found.severity === undefined || isShutdown(found.code)
    ? connectionError(found, circumstances)
    : serverError(found, circumstances)
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the host name cannot be looked up now',
  ENOENT: 'there is no such socket',
  EACCES: 'the socket may not be opened',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network is unreachable',
  ETIMEDOUT: 'the connection timed out',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  CONNECTION_CLOSED: 'the connection was closed',
  '57P01': 'the server is shutting down',
  '57P02': 'the server has crashed',
  '57P03': 'the server is starting up',
}

function connectionError({ code, message }: DriverError, circumstances: Circumstances): KhepriError {
  const { label, doing, stage, deadlineMs } = circumstances
  const silence = `no answer within ${deadlineMs / 1_000} s`
  const reason = isSilence(code) ? silence : (reasons[code] ?? `${code}, ${message}`)
  if (stage === 'writing') return outcomeUnknown(label, doing, reason)
  return new KhepriError('STORE_UNREACHABLE', `cannot reach ${label}: ${reason}`, {
    fix: 'is the server up and the URL right? khepri doctor tests name, port, login and rights',
  })
}

function outcomeUnknown(label: string, doing: string, reason: string): KhepriError {
  const what = doing === enqueuing ? 'the jobs may or may not have been queued' : 'it may or may not have happened'
  return new KhepriError('OUTCOME_UNKNOWN', `${label} broke off while khepri tried to ${doing} (${reason}): ${what}`, {
    fix: 'look before you do it again; with a unique key a job can be dispatched twice without harm',
  })
}

/** How the call that adds jobs is named; its broken-off commit has words of its own. */
export const enqueuing = 'enqueue jobs'

interface Kind {
  readonly match: RegExp
  readonly code: ErrorCode
  says(found: DriverError, circumstances: Circumstances): string
  readonly fix: string | ((found: DriverError) => string)
}

const kinds: readonly Kind[] = [
  {
    match: /^28/,
    code: 'STORE_DENIED',
    says: ({ code }, { label }) =>
      `${label} refused the login${code === '28P01' ? ': wrong user or password' : ' of this role from this host'}`,
    fix: 'check user and password in the URL, and pg_hba.conf on the server',
  },
  {
    match: /^3D000/,
    code: 'STORE_UNREACHABLE',
    says: (_, { label }) => `cannot reach ${label}: the server has no database of that name`,
    fix: 'create it with createdb, or correct the URL',
  },
  {
    match: /^53300/,
    code: 'STORE_UNREACHABLE',
    says: (_, { label }) => `cannot reach ${label}: the server has no connection left`,
    fix: 'raise max_connections, or put a pooler in front of the server and set prepare: false',
  },
  {
    match: /^53/,
    code: 'STORE_FULL',
    says: ({ code }, { label }) => `${label} is out of ${code === '53200' ? 'memory' : 'disk space'}`,
    fix: 'make room on the server',
  },
  {
    match: /^25006/,
    code: 'STORE_DENIED',
    says: (_, { label }) => `${label} is read-only`,
    fix: 'point the URL at the primary, or check default_transaction_read_only',
  },
  {
    match: /^42501/,
    code: 'STORE_DENIED',
    says: ({ message }, { label, doing }) => `${label} does not allow khepri to ${doing}: ${message}`,
    fix: ({ message }) =>
      grants.find(({ match }) => match.test(message))?.fix ??
      'grant the role select, insert, update and delete on the tables and usage on their sequences',
  },
  {
    match: /^SERVER_CANCEL/,
    code: 'STORE_BUSY',
    says: (_, { label, doing }) =>
      `${label} cancelled the statement with which khepri tried to ${doing}: it ran longer than the statement_timeout of this role or database, or somebody cancelled it`,
    fix: "look at: show statement_timeout; and raise it, as in: alter role … set statement_timeout = '30s'",
  },
  {
    match: /^25P0[34]/,
    code: 'STORE_BUSY',
    says: (_, { label, doing }) =>
      `${label} ended the transaction in which khepri tried to ${doing}: transaction_timeout or idle_in_transaction_session_timeout is too short`,
    fix: "raise it, as in: alter role … set transaction_timeout = '30s'",
  },
  {
    match: /^(57014|40001|40P01|55P03)/,
    code: 'STORE_BUSY',
    says: (_, { label, doing, deadlineMs }) =>
      `${label} did not let khepri ${doing} within ${deadlineMs / 1_000} s: something holds a lock`,
    fix: 'look in pg_stat_activity for what holds it, then try again',
  },
  {
    match: /^(26000|42P05)/,
    code: 'STORE_FAILED',
    says: (_, { label }) => `${label} lost a prepared statement`,
    fix: 'set prepare: false; a pooler in transaction mode stands in between',
  },
]

/** What allows a role what it may not do, by the server's words; these are English unless lc_messages says otherwise. */
const grants: readonly { readonly match: RegExp; readonly fix: string }[] = [
  {
    match: /for schema/,
    fix: 'as the owner of the schema: grant usage, create on schema NAME to ROLE; or run khepri migrate with a role that may create tables',
  },
  {
    match: /for database/,
    fix: 'as the owner of the database: grant create on database NAME to ROLE; or create the schema for it',
  },
  { match: /must be (the )?owner/, fix: 'run khepri migrate with the role that owns the tables' },
]

function serverError(found: DriverError, circumstances: Circumstances): KhepriError {
  if (found.code === '3F000') return schemaMissing(circumstances.label)
  if (found.code === '42P01')
    return tableMissing(/"([^"]+)"/.exec(found.message)?.[1] ?? 'of khepri', circumstances.label)
  const kind = kinds.find(({ match }) => match.test(found.code))
  if (kind) return new KhepriError(kind.code, kind.says(found, circumstances), { fix: fixOf(kind, found) })
  const { label, doing } = circumstances
  return new KhepriError('STORE_FAILED', `${label} refused to ${doing} (SQLSTATE ${found.code}${said(found)})`, {
    fix: 'the log of the server says more; khepri doctor checks the database',
  })
}

const fixOf = ({ fix }: Kind, found: DriverError): string => (typeof fix === 'string' ? fix : fix(found))

/** The server's words only where they cannot hold a value: names of tables and columns, constraints, its own faults. */
function said({ code, message }: DriverError): string {
  return /^(42|23|55|58|XX)/.test(code) ? `: ${message}` : ''
}
