import { isUtf8 } from 'node:buffer'
import { isRecord } from '../core/config-keys.ts'
import { defaults } from '../core/defaults.ts'
import { type DurationInput, parseDuration } from '../core/duration.ts'
import { isKhepriError } from '../core/errors.ts'
import { NonRetryable, nonRetryable, Release } from '../core/job.ts'
import { oneLine, shown } from '../core/text.ts'
import { maxResultBytes, type RunFiles } from './run-files.ts'

/** How a command has ended. */
export interface Ended {
  /** null where a signal has ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Nobody has asked it to end. */
  readonly byItself: boolean
  /** The last line on its stderr. */
  readonly lastLine: string | null
}

/** A command has ended otherwise than with 0, or has told us what nobody can read. */
class CommandFailed extends Error {
  override readonly name = 'CommandFailed'

  constructor(message: string) {
    super(message)
    this.stack = ''
  }
}

/** Bad data and bad configuration, as sysexits.h has them: another try would meet the same. */
const finalCodes: readonly (number | null)[] = [65, 78]

/** What a handler would throw; null for one that has done its work. What the result file says outranks the exit code. */
export function errorOf(ended: Ended, files: RunFiles): Error | null {
  const said = ended.byItself && ended.code !== null ? resultIn(files) : null
  return said ?? errorOfExit(ended)
}

function errorOfExit({ code, signal, lastLine }: Ended): Error | null {
  if (code === 0) return null
  const how = code === null ? `killed by ${signal}` : `exit ${code}`
  const error = new CommandFailed(lastLine === null ? how : `${how}: ${oneLine(lastLine)}`)
  return finalCodes.includes(code) ? nonRetryable(error) : error
}

function resultIn(files: RunFiles): Error | null {
  const bytes = files.readResult()
  if (bytes === null)
    return unreadable(files, `it must be a file of at most ${maxResultBytes.toLocaleString('en')} bytes`)
  if (bytes.length === 0) return null
  const said = isUtf8(bytes) ? parse(bytes.toString('utf8')) : undefined
  if (!isRecord(said) || Object.keys(said).length !== 1) return unreadable(files, wanted)
  if ('release' in said) return releaseAfter(said.release, files)
  return typeof said.fail === 'string' ? finalFailure(said.fail) : unreadable(files, wanted)
}

const wanted = 'it must hold one line of JSON, {"release":"10m"} or {"fail":"reason"}'

function parse(text: string): unknown {
  try {
    return /[\r\n]./s.test(text) ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}

function releaseAfter(delay: unknown, files: RunFiles): Error {
  try {
    parseDuration(delay, 'release', defaults.maxDelayMs)
    return new Release(delay as DurationInput)
  } catch (error) {
    return unreadable(files, isKhepriError(error) ? error.message : `release is ${shown(delay)}`)
  }
}

function finalFailure(reason: string): Error {
  const error = new NonRetryable(reason)
  error.stack = ''
  return error
}

const unreadable = ({ result }: RunFiles, why: string): Error =>
  new CommandFailed(`the result file ${result} cannot be read: ${why}`)
