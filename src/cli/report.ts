import { isKhepriError, KhepriError } from '../core/errors.ts'
import { describeError } from '../core/text.ts'
import { fileBehind } from '../core/user-code.ts'

/** What was thrown, as an error that can be reported; what khepri did not throw on purpose is a bug. */
export function asKhepriError(thrown: unknown): KhepriError {
  if (isKhepriError(thrown)) return thrown
  const what = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  const fix = 'please report it, with the output of the same command and --verbose'
  return new KhepriError('BUG', `internal error: ${what}`, { fix, cause: thrown })
}

/** The error for one that a timer or a promise threw to nobody; a bug of khepri's, unless it comes from a file of the user's. */
export function strayError(thrown: unknown): KhepriError {
  const file = fileBehind(thrown)
  if (file === null) return asKhepriError(thrown)
  return new KhepriError('UNCAUGHT', `${file}: nobody caught an error: ${describeError(thrown).message}`, {
    fix: 'await what the file starts, and catch what its timers throw',
    cause: thrown,
  })
}
