import { formatDuration } from '../../duration.ts'
import { isKhepriError, KhepriError } from '../../errors.ts'
import { tableMissing } from '../migrator.ts'

/** What the driver throws: recognised by shape, since it may come from another copy of it. */
interface DriverError extends Error {
  readonly code: string
}

/** Finds the driver's own error, also inside a query builder's, whose text would carry parameters. */
function driverError(error: unknown): DriverError | null {
  if (!(error instanceof Error)) return null
  if (error.name === 'SqliteError' && 'code' in error && typeof error.code === 'string') return error as DriverError
  return driverError(error.cause)
}

/** Tells whether somebody else holds the lock: nothing has happened, and trying again is safe. */
export function isBusy(error: unknown): boolean {
  const code = driverError(error)?.code ?? ''
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')
}

/** The error for a lock that was not free whenever it was asked for. waitedMs: for how long it was. */
export function storeBusy(label: string, waitedMs: number, cause: unknown): KhepriError {
  const waited = formatDuration(Math.round(waitedMs / 100) * 100)
  return new KhepriError('STORE_BUSY', `${label} was locked by other processes whenever khepri looked, for ${waited}`, {
    fix: 'try again; khepri workers shows whether its own workers are so busy, otherwise a backup, a shell or a transaction holds it',
    cause: driverError(cause),
  })
}

/** The error for a call that came, or was still waiting for the lock, when the store was closed. */
export function storeClosed(label: string): KhepriError {
  return new KhepriError('STORE_UNREACHABLE', `${label} was closed; nothing was written`)
}

/**
 * Rebuilds a driver's error as ours, without its text and without parameters.
 *
 * What is ours already comes back as it is, and so does what is no error of the database: it is a fault in this program.
 */
export function toStoreError(error: unknown, label: string): unknown {
  const cause = driverError(error)
  if (cause === null || isKhepriError(error)) return error
  const table = /^no such table: (?:main\.)?(.*)$/.exec(cause.message)?.[1]
  if (table !== undefined) return tableMissing(table, label)
  const { code, says, fix } = kinds.find(({ match }) => match.test(cause.code)) ?? unexpected
  return new KhepriError(code, `${label} ${says} (${cause.code})`, { fix, cause })
}

/** The error for a commit that the disk did not confirm. */
export function outcomeUnknown(error: unknown, label: string): unknown {
  const cause = driverError(error)
  if (!cause?.code.startsWith('SQLITE_IOERR')) return error
  return new KhepriError('OUTCOME_UNKNOWN', `${label} may or may not have kept the last change (${cause.code})`, {
    fix: 'check the disk, then look before you do it again',
    cause,
  })
}

interface Kind {
  readonly match: RegExp
  readonly code: 'CONFIG_INVALID' | 'STORE_FULL' | 'STORE_DENIED' | 'STORE_UNREACHABLE' | 'STORE_FAILED'
  readonly says: string
  readonly fix: string
}

const unexpected: Kind = {
  match: /^/,
  code: 'STORE_FAILED',
  says: 'refused a statement',
  fix: 'khepri doctor checks the database',
}

const kinds: readonly Kind[] = [
  {
    match: /^SQLITE_FULL/,
    code: 'STORE_FULL',
    says: 'is full',
    fix: 'make room on its disk, or raise its max_page_count',
  },
  {
    match: /^SQLITE_READONLY_DBMOVED/,
    code: 'STORE_UNREACHABLE',
    says: 'was moved or deleted while it was open',
    fix: 'put the file back, or start again with the new path',
  },
  {
    match: /^SQLITE_(READONLY|PERM|AUTH)/,
    code: 'STORE_DENIED',
    says: 'cannot be written',
    fix: 'check the rights of the file, of its -wal and -shm files and of its folder',
  },
  {
    match: /^SQLITE_CANTOPEN/,
    code: 'STORE_UNREACHABLE',
    says: 'cannot be opened',
    fix: 'check the path, and the rights of the file and of its folder',
  },
  {
    match: /^SQLITE_IOERR/,
    code: 'STORE_UNREACHABLE',
    says: 'cannot be read or written',
    fix: 'check the disk and its mount',
  },
  {
    match: /^SQLITE_NOTADB/,
    code: 'CONFIG_INVALID',
    says: 'is not an SQLite database',
    fix: 'check the path; khepri never overwrites a file',
  },
  {
    match: /^SQLITE_CORRUPT/,
    code: 'STORE_FAILED',
    says: 'is damaged',
    fix: 'put back a backup, or recover it with sqlite3 and .recover',
  },
]
