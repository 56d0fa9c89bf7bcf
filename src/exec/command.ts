import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import type { Executable } from '../core/executable.ts'

/** A command that is there and may be run. */
export interface Command {
  /** As people know it. */
  readonly shown: string
  /** Absolute. */
  readonly path: string
  readonly args: readonly string[]
  /** Absolute. */
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** A command could not be started; nothing of it has run. */
export class CommandNotStarted extends Error {
  override readonly name = 'CommandNotStarted'
  readonly fix: string | undefined

  constructor(command: string, why: string, fix?: string) {
    super(`cannot start ${command}: ${why}`)
    this.fix = fix
    // Where in khepri it was thrown tells nobody anything.
    this.stack = ''
  }
}

/** Finds what is to be run. root: what its paths are relative to. Throws CommandNotStarted. */
export function findCommand({ command, args, cwd, env }: Executable, root: string): Command {
  if (process.platform === 'win32') throw new CommandNotStarted(command, 'Windows has no process groups')
  const path = command.includes('/') ? resolve(root, command) : onPath(command, env.PATH ?? process.env.PATH ?? '')
  const folder = resolve(root, cwd)
  requireExecutable(path, command)
  if (!statOf(folder)?.isDirectory()) throw new CommandNotStarted(command, `its cwd ${cwd} is not a folder`)
  return { shown: command, path, args, cwd: folder, env }
}

function onPath(command: string, path: string): string {
  const candidates = path.split(delimiter).map((folder) => join(folder || '.', command))
  const found = candidates.find((candidate) => statOf(candidate)?.isFile() && mayRun(candidate))
  if (found === undefined)
    throw new CommandNotStarted(command, 'it is not on the PATH', `a file beside the configuration is ./${command}`)
  return resolve(found)
}

function requireExecutable(path: string, command: string): void {
  const stat = statOf(path)
  if (stat === undefined) throw new CommandNotStarted(command, 'there is no such file')
  if (!stat.isFile()) throw new CommandNotStarted(command, 'it is not a file')
  if (!mayRun(path)) throw new CommandNotStarted(command, 'it is not executable', `chmod +x ${command}`)
}

const statOf = (path: string) => statSync(path, { throwIfNoEntry: false })

function mayRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
