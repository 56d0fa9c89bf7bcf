import { isRecord, refuseUnknownKeys } from './config-keys.ts'
import { KhepriError } from './errors.ts'
import type { HandlerSource } from './handler.ts'
import type { JobTerms } from './job.ts'
import { termKeys } from './terms.ts'
import { shown } from './text.ts'

/** What may be said of a command beside its path. */
export interface ExecutableOptions extends JobTerms {
  /** Words behind the command; the payload is not among them, it comes on stdin. */
  readonly args?: readonly string[]
  /** Where it runs, relative to the configuration; beside the configuration where none is given. */
  readonly cwd?: string
  /** Variables beside those of the worker. */
  readonly env?: Readonly<Record<string, string>>
}

/** A command as a job, as a configuration holds it; the same in JSON. */
export interface ExecutableInput extends ExecutableOptions {
  /** With a slash a path, relative to the configuration; without one a command on the PATH. */
  readonly exec: string
}

/** A command as a job, checked. Nothing is started through a shell: what is said here is what is run. */
export interface Executable {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Makes a handler of a command. Another layer knows how; the kernel only knows that a name may stand for one. */
export type MakeExecutable = (executable: Executable) => Promise<HandlerSource>

/**
 * Makes any program a job: it gets the payload on stdin and tells by its exit code how it went.
 *
 * command: with a slash a path, relative to the configuration; without one a command on the PATH.
 */
export function exec(command: string, options: ExecutableOptions = {}): ExecutableInput {
  return Object.freeze({ ...options, exec: command })
}

/** Tells whether an entry of a configuration is a command. */
export const isExecutable = (value: Readonly<Record<string, unknown>>): boolean => 'exec' in value

/** Reads a command; its terms are read where all terms are. what: the entry, for messages. Throws CONFIG_INVALID. */
export function parseExecutable(value: Readonly<Record<string, unknown>>, what: string): Executable {
  refuseUnknownKeys(value, ['exec', 'args', 'cwd', 'env', ...termKeys], what)
  return {
    command: checkWord(value.exec, `${what}.exec`, 'a path or a command'),
    args: checkArgs(value.args ?? [], `${what}.args`),
    cwd: value.cwd === undefined ? '.' : checkWord(value.cwd, `${what}.cwd`, 'a folder'),
    env: checkEnv(value.env ?? {}, `${what}.env`),
  }
}

function checkWord(value: unknown, what: string, wanted: string): string {
  if (!isText(value) || value === '') throw invalid(what, wanted, value)
  return value
}

function checkArgs(value: unknown, what: string): readonly string[] {
  if (!Array.isArray(value)) throw invalid(what, 'a list of texts', value)
  for (const [index, each] of value.entries()) if (!isText(each)) throw invalid(`${what}[${index}]`, 'a text', each)
  return value as readonly string[]
}

/** What a POSIX shell passes on; it drops other names without a word. */
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

function checkEnv(value: unknown, what: string): Readonly<Record<string, string>> {
  if (!isRecord(value)) throw invalid(what, 'an object of texts', value)
  for (const [name, text] of Object.entries(value)) {
    if (!variableName.test(name) || name.startsWith('KHEPRI_JOB_'))
      throw invalid(`a name in ${what}`, 'made of letters, digits and _, and not begin with KHEPRI_JOB_', name)
    if (!isText(text)) throw invalid(`${what}.${name}`, 'a text', text)
  }
  return value as Readonly<Record<string, string>>
}

/** The system takes a NUL for the end of a text. */
const isText = (value: unknown): value is string => typeof value === 'string' && !value.includes('\0')

const invalid = (what: string, wanted: string, got: unknown): KhepriError =>
  new KhepriError('CONFIG_INVALID', `${what} must be ${wanted}, got ${shown(got)}`)
