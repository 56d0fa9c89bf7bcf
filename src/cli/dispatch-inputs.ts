import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import type { DispatchRequest } from '../core/dispatch.ts'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import { requireJson } from '../core/json-text.ts'
import type { Due, JobId } from '../core/store/store.ts'
import type { Terms } from '../core/terms.ts'
import { oneLine } from '../core/text.ts'
import { type JsonItem, type ReadOptions, readJobFile } from './job-files.ts'
import { parseJobObject } from './job-object.ts'

/** What the command line says about every job of a dispatch; it outranks what the files say. */
export interface Overrides {
  /** Given: every value of an input is a payload of this job. */
  readonly job: string | null
  readonly terms: Terms
  readonly due: Due | null
  readonly unique: string | null
  /** What each of them waits for. */
  readonly after?: readonly JobId[]
}

/** The values of a dispatch's files, and the requests they stand for. */
export class Inputs {
  readonly #overrides: Overrides
  readonly #read: ReadOptions
  readonly #files: readonly string[]

  constructor(files: readonly string[], overrides: Overrides, read: ReadOptions) {
    this.#files = files
    this.#overrides = overrides
    this.#read = read
  }

  /** Whether a part of it can be read only once. */
  get isStream(): boolean {
    return this.#files.includes('-')
  }

  /** Whether lines are counted in more than one file. */
  get areSeveral(): boolean {
    return this.#files.length > 1
  }

  /** The part of it that can be read again. */
  get files(): Inputs {
    return new Inputs(
      this.#files.filter((file) => file !== '-'),
      this.#overrides,
      this.#read,
    )
  }

  async *items(): AsyncGenerator<JsonItem> {
    for (const file of this.#files) yield* readJobFile(file, this.#read)
  }

  /** What an item asks for. Throws its own fault, or DATA_INVALID. */
  request(item: JsonItem): DispatchRequest {
    if (item.error !== null) throw item.error
    const { job, terms, due, unique, after } = this.#overrides
    const said = after && { after }
    if (job !== null) return { job, payloadText: item.text, terms, due, unique, ...said }
    const found = parseJobObject(item)
    return {
      job: found.job,
      payloadText: found.payloadText ?? '{}',
      terms: { ...found.terms, ...terms },
      due: due ?? found.due,
      unique: unique ?? found.unique,
      ...(found.after && { after: found.after }),
      ...(found.onParentFailure && { onParentFailure: found.onParentFailure }),
      ...(found.context && { context: found.context }),
      ...(found.trace && { trace: found.trace }),
      ...said,
    }
  }
}

/** Puts file and line in front of an error that does not name them yet. */
export function located(error: unknown, { source, line }: Pick<JsonItem, 'source' | 'line'>): unknown {
  if (!isKhepriError(error) || error.message.startsWith(`${source}:`)) return error
  return new KhepriError(error.code, `${source}:${line}: ${error.message}`, {
    ...(error.fix !== undefined && { fix: error.fix }),
    cause: error,
  })
}

/** What --payload and --set say. */
export interface PayloadFlags {
  readonly payload: string | undefined
  readonly set: readonly string[]
}

/** The payload's text from --payload JSON, --payload @FILE or --set pairs; "{}" where none is given. Throws USAGE, JSON_INVALID or INPUT_MISSING. */
export function payloadText({ payload, set }: PayloadFlags): string {
  if (payload !== undefined && set.length > 0) throw new KhepriError('USAGE', '--payload and --set exclude each other')
  if (payload === undefined) return objectText(set)
  const source = payload.startsWith('@') ? oneLine(payload.slice(1)) : '--payload'
  const text = payload.startsWith('@') ? readText(payload.slice(1), source) : payload
  requireJson(text, source)
  return text.trim()
}

/** Writes the object of key=text and key:=json pairs; a JSON value keeps its exact text. */
function objectText(pairs: readonly string[]): string {
  const members = new Map<string, string>()
  for (const pair of pairs) {
    const [, key, operator, value] = /^([^=]+?)(:?=)(.*)$/s.exec(pair) ?? []
    if (key === undefined || value === undefined)
      throw new KhepriError('USAGE', `--set must be key=text or key:=json, got ${JSON.stringify(pair)}`)
    if (members.has(key)) throw new KhepriError('USAGE', `--set gives ${JSON.stringify(key)} twice`)
    if (operator === ':=') requireJson(value, `--set ${key}`)
    members.set(key, operator === ':=' ? value.trim() : JSON.stringify(value))
  }
  return `{${[...members].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`
}

const reasons: Readonly<Record<string, string>> = { ENOENT: 'no such file', EACCES: 'permission denied' }

function readText(path: string, source: string): string {
  const bytes = readBytes(path, source)
  if (!isUtf8(bytes)) throw new KhepriError('JSON_INVALID', `${source} is not UTF-8`, { fix: 'save it as UTF-8' })
  return bytes.toString('utf8').replace(/^\ufeff/, '')
}

function readBytes(path: string, source: string): Buffer {
  try {
    if (!statSync(path).isFile()) throw new KhepriError('INPUT_MISSING', `${source} is not a file`)
    return readFileSync(path)
  } catch (error) {
    if (isKhepriError(error)) throw error
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    throw new KhepriError('INPUT_MISSING', `cannot read ${source}: ${reasons[code] ?? code}`, { cause: error })
  }
}
