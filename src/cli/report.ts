import { isKhepriError, KhepriError } from '../core/errors.ts'

/** What was thrown, as an error that can be reported; what khepri did not throw on purpose is a bug. */
export function asKhepriError(thrown: unknown): KhepriError {
  if (isKhepriError(thrown)) return thrown
  const what = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  const fix = 'please report it, with the output of the same command and --verbose'
  return new KhepriError('BUG', `internal error: ${what}`, { fix, cause: thrown })
}
