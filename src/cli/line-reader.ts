import { isUtf8 } from 'node:buffer'
import { KhepriError } from '../core/errors.ts'

/** One line of an input, without its line end. */
export interface Line {
  /** Only a beginning of it where `bytes` is more than was asked for. */
  readonly text: string
  /** 1-based. */
  readonly number: number
  /** Its true length. */
  readonly bytes: number
  /** Set where it is not UTF-8; its text is an approximation then. */
  readonly fault: KhepriError | null
}

const newline = 0x0a

/** Kept of a line that is too long, to be shown. */
const keptBytes = 1024

/** Reads lines from bytes, holding one of them at a time. Each is checked to be UTF-8; a byte order mark is passed over. */
export class LineReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #source: string
  #chunk: Buffer = Buffer.alloc(0)
  #at = 0
  #number = 0
  /** Where the current line begins in the input, for messages. */
  #offset = 0

  constructor(chunks: AsyncIterable<Uint8Array>, source: string) {
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#source = source
  }

  /** The next line, or null at the end. Of one with more than `maxBytes` only a beginning is kept. */
  async next(maxBytes: number): Promise<Line | null> {
    const end = this.#chunk.indexOf(newline, this.#at)
    if (end < 0) return this.#gather(maxBytes)
    const bytes = this.#chunk.subarray(this.#at, end)
    this.#at = end + 1
    return this.#line(bytes, bytes.length, maxBytes)
  }

  /** A line that goes beyond the chunk at hand. What is too long is passed over, not held. */
  async #gather(maxBytes: number): Promise<Line | null> {
    const pieces: Buffer[] = []
    let length = 0
    for (;;) {
      const end = this.#chunk.indexOf(newline, this.#at)
      const piece = this.#chunk.subarray(this.#at, end < 0 ? undefined : end)
      length += piece.length
      if (length <= maxBytes) pieces.push(piece)
      else if (pieces.length > 0) pieces.splice(0, pieces.length, Buffer.concat(pieces).subarray(0, keptBytes))
      else pieces.push(piece.subarray(0, keptBytes))
      this.#at = end < 0 ? this.#chunk.length : end + 1
      if (end >= 0) break
      if (await this.#isAtEnd()) {
        if (length === 0) return null
        break
      }
    }
    return this.#line(Buffer.concat(pieces), length, maxBytes)
  }

  async #isAtEnd(): Promise<boolean> {
    const { done, value } = await this.#chunks.next()
    if (done) return true
    this.#chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    this.#at = 0
    return false
  }

  #line(raw: Buffer, length: number, maxBytes: number): Line {
    this.#number++
    const bytes = this.#number === 1 ? withoutMark(raw) : raw
    const start = this.#offset
    this.#offset += length + 1
    const isUsable = length > maxBytes || isUtf8(raw)
    return {
      text: bytes.toString('utf8'),
      number: this.#number,
      bytes: length,
      fault: isUsable ? null : this.#notUtf8(raw, start),
    }
  }

  #notUtf8(bytes: Buffer, start: number): KhepriError {
    const isUtf16 = this.#number === 1 && utf16Marks.some((mark) => mark.equals(bytes.subarray(0, 2)))
    const where = `${this.#source}:${this.#number}: not UTF-8 at byte ${start + firstBadByte(bytes)}`
    return new KhepriError('JSON_INVALID', isUtf16 ? `${where}, it looks like UTF-16` : where, {
      fix: 'save it as UTF-8',
    })
  }
}

const utf16Marks = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])]
const mark = Buffer.from([0xef, 0xbb, 0xbf])

const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, mark.length).equals(mark) ? bytes.subarray(mark.length) : bytes

const replacement = Buffer.from('\ufffd')

/** Decoding puts a replacement character where bytes make no sense; the first that is not itself in the bytes shows the place. */
function firstBadByte(bytes: Buffer): number {
  let at = 0
  for (const character of bytes.toString('utf8')) {
    if (character === '\ufffd' && !bytes.subarray(at, at + replacement.length).equals(replacement)) return at
    at += Buffer.byteLength(character)
  }
  return at
}
