import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import { oneLine } from '../core/text.ts'
import type { JsonItem } from './job-files.ts'

/** The lines that a dispatch leaves out, where it was told to; they can be kept in a file. */
export class Rejects {
  /** The file as the user named it; null where the lines are only counted. */
  readonly file: string | null
  readonly #descriptor: number | null
  #count = 0
  #first: { readonly item: JsonItem; readonly reason: string } | null = null

  /** Creates the file. Throws FILE_EXISTS, or IO where it cannot be written. */
  constructor(file: string | null) {
    this.file = file
    this.#descriptor = file === null ? null : create(file)
  }

  get count(): number {
    return this.#count
  }

  /** Where the first of them stands and what is wrong with it. */
  first(areSeveral: boolean): string {
    if (this.#first === null) return ''
    const { item, reason } = this.#first
    const place = item.error?.code === 'JSON_INVALID' ? `${item.line}:${item.column}` : item.line
    return `${areSeveral ? `${item.source}:` : 'line '}${place}, ${reason}`
  }

  /** Takes a line whose error is one of the data. Throws any other error on. */
  take(item: JsonItem, error: unknown): void {
    if (!isKhepriError(error) || !dataErrors.has(error.code)) throw error
    this.#count++
    this.#first ??= { item, reason: reasonOf(error, item) }
    if (this.#descriptor !== null)
      write(this.#descriptor, `${item.text.replaceAll(/\r?\n/g, ' ')}\n`, this.file as string)
  }

  /** Closes the file; one without a line is removed again. */
  close(): void {
    if (this.#descriptor === null || this.file === null) return
    closeSync(this.#descriptor)
    if (this.#count === 0) unlinkSync(this.file)
  }
}

/** Faults of a line; a broken module or a lost database is not the line's fault. */
const dataErrors: ReadonlySet<string> = new Set(['JSON_INVALID', 'DATA_INVALID', 'PAYLOAD_REFUSED', 'JOB_UNKNOWN'])

/** The error's first line without the place, which stands before it. */
function reasonOf({ message }: KhepriError, { source }: JsonItem): string {
  const [first = ''] = message.split('\n', 1)
  return first.startsWith(`${source}:`) ? first.slice(source.length).replace(/^(?::\d+)+: /, '') : first
}

function create(file: string): number {
  try {
    return openSync(file, 'wx')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new KhepriError('FILE_EXISTS', `${oneLine(file)} exists already`, {
        fix: 'name another file for --rejects, or remove this one',
        cause: error,
      })
    throw new KhepriError('IO', `cannot create ${oneLine(file)}: ${code}`, { cause: error })
  }
}

function write(descriptor: number, text: string, file: string): void {
  try {
    writeSync(descriptor, text)
  } catch (error) {
    throw new KhepriError('IO', `cannot write to ${oneLine(file)}: ${(error as NodeJS.ErrnoException).code}`, {
      cause: error,
    })
  }
}
