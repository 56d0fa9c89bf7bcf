import { defaults } from '../core/defaults.ts'
import { KhepriError } from '../core/errors.ts'
import type { Executable } from '../core/executable.ts'
import { type HandlerSource, handlerBrand } from '../core/handler.ts'
import { CommandNotStarted, findCommand } from './command.ts'
import { runCommand } from './run.ts'

/** SIGTERM, a grace, SIGKILL, and as much again: what then still is there waits for a disk or a network. */
const graceMs = 2 * defaults.graceMs

/** Makes a handler of any program. It is looked for when a job comes: one that is missing is a failed attempt. */
export function executableHandler(executable: Executable): HandlerSource {
  return {
    terms: {},
    [handlerBrand]: (root) => ({
      terms: {},
      hasSchema: false,
      check: (payload) => ({ ok: true, value: payload }),
      run: async (_payload, context) => runCommand(findCommand(executable, root), context),
      failed: null,
      toPayload: null,
      graceMs,
      verify: async () => verify(executable, root),
    }),
  }
}

function verify(executable: Executable, root: string): void {
  try {
    findCommand(executable, root)
  } catch (error) {
    if (!(error instanceof CommandNotStarted)) throw error
    throw new KhepriError('MODULE_BROKEN', error.message, error.fix === undefined ? {} : { fix: error.fix })
  }
}
