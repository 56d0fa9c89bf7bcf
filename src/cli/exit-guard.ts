import { KhepriError } from '../core/errors.ts'
import { filesLoading, jobsRunning } from '../core/user-code.ts'
import { exits } from './exit-codes.ts'

/** Keeps the exit code of the process khepri's own. */
export interface ExitGuard {
  /** khepri is done: from now on this is the exit code, whoever ends the process. */
  done(exit: number): void
}

/**
 * Makes sure that a process which ends before khepri is done does not end well, and says who ended it.
 *
 * A user's module or handler may call process.exit(0), or leave khepri waiting for what never comes; neither may pass for
 * a job that is committed. report: writes the error before the process is gone.
 */
export function guardExit(report: (error: KhepriError) => void): ExitGuard {
  let exit: number | null = null
  let isIdle = false
  process.on('beforeExit', () => {
    isIdle = true
    // Runs only where somebody found something to do after all.
    setImmediate(() => {
      isIdle = false
    }).unref()
  })
  process.on('exit', (code) => {
    process.exitCode = exit ?? exits.bug
    if (exit === null) report(isIdle ? stranded() : ended(code))
  })
  return {
    done(code) {
      exit = code
      process.exitCode = code
    },
  }
}

const fix = 'throw an error to fail, return to succeed: only khepri knows when it may end'

function ended(code: number): KhepriError {
  const how = `ended the process with process.exit(${code})`
  const suspects = [...filesLoading().map((file) => `${file}, being loaded,`), ...jobsRunning()]
  if (suspects.length < 2)
    return new KhepriError('EXIT_CALLED', `${suspects[0] ?? 'something'} ${how} before khepri was done`, { fix })
  return new KhepriError('EXIT_CALLED', `one of these ${how} before khepri was done: ${suspects.join('; ')}`, { fix })
}

function stranded(): KhepriError {
  return new KhepriError('EXIT_CALLED', 'khepri waits for something that can never come, and was not done', {
    fix: 'does a schema, a module or a handler return a promise that is never settled?',
  })
}
