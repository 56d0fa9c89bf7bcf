import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import { caret, elements, type Fault, findFault, type Position, positionOf } from '../core/json-text.ts'
import { oneLine } from '../core/text.ts'
import { type Line, LineReader } from './line-reader.ts'

/** One JSON value of an input, as text and with its place. */
export interface JsonItem extends Position {
  /** Exactly the value's characters; the whole line where it was refused. */
  readonly text: string
  /** The file as the user named it; "stdin" for "-". */
  readonly source: string
  /** Why this line cannot be taken; null for a value that is valid JSON of a bearable size. */
  readonly error: KhepriError | null
}

/** What reading depends on besides the file. */
export interface ReadOptions {
  /** What "-" means. */
  readonly stdin: AsyncIterable<Uint8Array>
  readonly maxPayloadBytes: number
}

/** Room beside the payload for the other keys of a job object. */
const roomForTerms = 64 * 1024

/** One object or array over several lines is held in memory whole, so it is bounded; NDJSON of any length is not. */
export const maxDocumentBytes = 64 * 1024 * 1024

/**
 * Reads the JSON values of a file, or of stdin for "-": one value, the elements of an array, or NDJSON.
 *
 * NDJSON is what begins with a line that is a whole JSON value and goes on after it. It streams: memory stays flat, and a
 * line that cannot be taken comes as an item with an `error`, so that the rest can still be used.
 * Throws INPUT_MISSING, JSON_INVALID or PAYLOAD_REFUSED for what makes the input useless as a whole.
 */
export function readJobFile(path: string, { stdin, maxPayloadBytes }: ReadOptions): AsyncGenerator<JsonItem> {
  const source = path === '-' ? 'stdin' : oneLine(path)
  const bytes = path === '-' ? stdin : chunksOf(path, source)
  return new Input(new LineReader(bytes, source), source, maxPayloadBytes + roomForTerms).items()
}

async function* chunksOf(path: string, source: string): AsyncGenerator<Uint8Array> {
  try {
    requireRegular(await stat(path), source)
    yield* createReadStream(path, { highWaterMark: 256 * 1024 }) as AsyncIterable<Uint8Array>
  } catch (error) {
    throw isKhepriError(error) ? error : unreadable(source, error as NodeJS.ErrnoException)
  }
}

function requireRegular(found: Stats, source: string): void {
  if (found.isDirectory()) throw new KhepriError('INPUT_MISSING', `${source} is a directory, not a file`)
  if (!found.isFile())
    throw new KhepriError('INPUT_MISSING', `${source} is not a regular file`, {
      fix: `to read from a pipe or device: khepri dispatch - < ${source}`,
    })
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'a part of its path is not a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its links form a ring',
  ENAMETOOLONG: 'the name is too long',
}

const unreadable = (source: string, { code = 'unknown error' }: NodeJS.ErrnoException): KhepriError =>
  new KhepriError('INPUT_MISSING', `cannot read ${source}: ${reasons[code] ?? code}`)

/** Finds out what kind of input it is and hands out its values. */
class Input {
  readonly #reader: LineReader
  readonly #source: string
  readonly #maxItemBytes: number

  constructor(reader: LineReader, source: string, maxItemBytes: number) {
    this.#reader = reader
    this.#source = source
    this.#maxItemBytes = maxItemBytes
  }

  /** One generator and no others inside it: handing a million lines through each would cost as much as reading them. */
  async *items(): AsyncGenerator<JsonItem> {
    const first = await this.#nextFilled(maxDocumentBytes)
    if (first === null) throw new KhepriError('JSON_INVALID', `${this.#source} is empty, expected JSON`)
    // What is too large for one job is refused unread; only a list may be larger.
    const isWhole = this.#isTooLarge(first) || (first.fault === null && findFault(first.text) === null)
    let next = isWhole ? await this.#nextFilled(this.#maxItemBytes) : null
    if (next === null) {
      for (const item of this.#values(isWhole ? first.text : await this.#withRest(first), first.number)) yield item
      return
    }
    yield this.#lineItem(first)
    for (; next !== null; next = await this.#nextFilled(this.#maxItemBytes)) yield this.#lineItem(next)
  }

  async #nextFilled(maxBytes: number): Promise<Line | null> {
    for (;;) {
      const line = await this.#reader.next(maxBytes)
      if (line === null || line.fault !== null || /[^ \t\r]/.test(line.text)) return line
    }
  }

  #isTooLarge({ bytes, text }: Line): boolean {
    return bytes > this.#maxItemBytes && !beginsList(text)
  }

  /** The first line and all that follow, as one valid text. */
  async #withRest(first: Line): Promise<string> {
    const most = beginsList(first.text) ? maxDocumentBytes : this.#maxItemBytes
    const texts: string[] = []
    let left = most
    for (let line: Line | null = first; line !== null; line = await this.#reader.next(left)) {
      left -= line.bytes + 1
      if (left < 0) throw this.#overflow(texts.join('\n'), first.number, most)
      if (line.fault) throw line.fault
      texts.push(line.text)
    }
    const text = texts.join('\n')
    const fault = findFault(text)
    if (fault) throw this.#invalid(text, fault, first.number)
    return text
  }

  /** What is broken before the limit is broken; what only goes on beyond it is too large. */
  #overflow(text: string, line: number, most: number): KhepriError {
    const fault = findFault(`${text}\n`)
    if (fault && fault.offset < text.trimEnd().length) return this.#invalid(text, fault, line)
    return most === maxDocumentBytes ? this.#documentTooLarge() : tooLarge(this.#source, line, most)
  }

  #invalid(text: string, fault: Fault, line: number): KhepriError {
    return new KhepriError('JSON_INVALID', caret({ source: this.#source, text, ...fault, origin: { line, column: 1 } }))
  }

  *#values(text: string, line: number): Generator<JsonItem> {
    if (beginsList(text)) yield* this.#elements(text, line)
    else yield this.#item(text.trim(), { line, column: text.search(/[^ \t]/) + 1 })
  }

  /** Counts lines from one element to the next, as counting each from the start would take forever. */
  *#elements(text: string, firstLine: number): Generator<JsonItem> {
    let line = firstLine
    let counted = 0
    let lineStart = 0
    for (const { start, end } of elements(text)) {
      for (let at = text.indexOf('\n', counted); at >= 0 && at < start; at = text.indexOf('\n', counted)) {
        line++
        counted = lineStart = at + 1
      }
      yield this.#item(text.slice(start, end), { line, column: start - lineStart + 1 })
    }
  }

  #lineItem(line: Line): JsonItem {
    const { text, number } = line
    const fault = line.bytes > this.#maxItemBytes ? tooLarge(this.#source, number, this.#maxItemBytes) : line.fault
    if (fault) return { text, source: this.#source, line: number, column: 1, error: fault }
    const found = findFault(text)
    const column = text.search(/[^ \t\r]/) + 1
    if (found === null) return this.#item(text.trim(), { line: number, column })
    const error = this.#invalid(text, found, number)
    return { text, source: this.#source, line: number, column: positionOf(text, found.offset).column, error }
  }

  #item(text: string, { line, column }: Position): JsonItem {
    return { text, source: this.#source, line, column, error: this.#sizeFault(text, line) }
  }

  #sizeFault(text: string, line: number): KhepriError | null {
    // No character takes more than three bytes a unit, so short texts need no counting.
    const bytes = text.length * 3 > this.#maxItemBytes ? Buffer.byteLength(text) : 0
    return bytes > this.#maxItemBytes ? tooLarge(this.#source, line, this.#maxItemBytes) : null
  }

  #documentTooLarge(): KhepriError {
    const most = `${maxDocumentBytes / 1024 ** 2} MiB`
    return new KhepriError('PAYLOAD_REFUSED', `${this.#source} is one JSON text of more than ${most}`, {
      fix: 'write one job a line (NDJSON), which may be of any length',
    })
  }
}

/** Tells whether a text is an array, by its first character. */
const beginsList = (text: string): boolean => /^[ \t]*\[/.test(text)

function tooLarge(source: string, line: number, maxBytes: number): KhepriError {
  return new KhepriError(
    'PAYLOAD_REFUSED',
    `${source}:${line}: this job has more than ${maxBytes.toLocaleString('en')} bytes`,
    {
      fix: 'store the data elsewhere and dispatch a reference, or raise maxPayload in the config',
    },
  )
}
