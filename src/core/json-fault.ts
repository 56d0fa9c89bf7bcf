import { skipSpace, units } from './json-units.ts'

const { quote, backslash, comma, colon, openBrace, closeBrace, openBracket, closeBracket } = units

/** What is wrong with a text, and where the caret stands. */
export interface Fault {
  readonly offset: number
  readonly message: string
}

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const numberLikePattern = /[-+.\w]+/y
const wordPattern = /[A-Za-z_$][\w$]*/y
const escapePattern = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

class Unexpected extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}

/** Finds the first thing that keeps a text from being exactly one JSON value; null if nothing does. */
export function findFault(text: string): Fault | null {
  try {
    new Scanner(text).readDocument()
    return null
  } catch (error) {
    if (error instanceof Unexpected) return { offset: error.offset, message: error.message }
    throw error
  }
}

/** Walks a text once, left to right; throws Unexpected at the first fault. */
class Scanner {
  readonly #text: string
  /** The closing characters that are still to come, outermost first. */
  readonly #closers: number[] = []
  /** The value that must come next, as a message would name it; null where one has just ended. */
  #wanted: string | null = 'a JSON value'
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** A loop and no recursion: a value inside another is wanted next, not read at once. */
  readDocument(): void {
    while (this.#wanted !== null || this.#closers.length > 0) {
      if (this.#wanted !== null) this.#readValue(this.#wanted)
      else this.#readNext()
    }
    if (this.#peek() >= 0) throw this.#unexpected('expected the end after a value')
  }

  /** Reads a scalar whole, or enters an object or array; an empty one is left again at once. */
  #readValue(wanted: string): void {
    this.#wanted = null
    const first = this.#peek()
    if (first === openBrace) this.#enter(closeBrace)
    else if (first === openBracket) this.#enter(closeBracket)
    else if (first === quote) this.#readString()
    else this.#readScalar(wanted)
  }

  #enter(closer: number): void {
    this.#at++
    if (this.#peek() === closer) {
      this.#at++
      return
    }
    this.#closers.push(closer)
    if (closer === closeBrace) this.#readKey("expected a key in double quotes or '}'")
    else this.#wanted = "a value or ']'"
  }

  /** After a value inside an object or array: the next one, or the end of it. */
  #readNext(): void {
    const closer = this.#closers.at(-1)
    const next = this.#peek()
    if (next === closer) {
      this.#at++
      this.#closers.pop()
      return
    }
    if (next !== comma)
      throw this.#unexpected(
        closer === closeBrace ? "expected ',' or '}' after a value" : "expected ',' or ']' after a value",
      )
    this.#at++
    if (closer === closeBrace) this.#readKey("expected a key in double quotes after ','")
    else this.#wanted = "a value after ','"
  }

  #readKey(wanted: string): void {
    if (this.#peek() !== quote) throw this.#unexpected(wanted)
    this.#readString()
    if (this.#peek() !== colon) throw this.#unexpected("expected ':' after a key")
    this.#at++
    this.#wanted = "a value after ':'"
  }

  #readString(): void {
    const start = this.#at++
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at)
      if (unit === quote) break
      if (unit === backslash) this.#readEscape()
      else if (unit >= 0x20) this.#at++
      else if (Number.isNaN(unit)) throw new Unexpected(start, 'this string is never closed')
      else
        throw new Unexpected(this.#at, `a control character inside a string must be written as an escape such as \\n`)
    }
    this.#at++
  }

  #readEscape(): void {
    const end = matchEnd(escapePattern, this.#text, this.#at)
    if (end < 0) throw new Unexpected(this.#at, 'this escape is not one JSON knows')
    this.#at = end
  }

  #readScalar(wanted: string): void {
    const start = this.#at
    const end = matchEnd(numberPattern, this.#text, start)
    if (end > 0 && matchEnd(numberLikePattern, this.#text, end) < 0) {
      this.#at = end
      return
    }
    const wordEnd = matchEnd(wordPattern, this.#text, start)
    const word = wordEnd < 0 ? '' : this.#text.slice(start, Math.min(wordEnd, start + 40))
    if (word !== 'true' && word !== 'false' && word !== 'null') throw this.#strange(wanted, word)
    this.#at = wordEnd
  }

  #strange(wanted: string, word: string): Unexpected {
    if (word !== '') return this.#unexpected(`expected ${wanted}, got the word ${word}`)
    if (matchEnd(numberLikePattern, this.#text, this.#at) > 0)
      return this.#unexpected('this is not a number as JSON writes them')
    return this.#unexpected(`expected ${wanted}`)
  }

  /** Skips white space; the next character's code, or -1 at the end. */
  #peek(): number {
    this.#at = skipSpace(this.#text, this.#at)
    return this.#at < this.#text.length ? this.#text.charCodeAt(this.#at) : -1
  }

  /** At the end of the text the caret stands right behind the last thing that was there. */
  #unexpected(message: string): Unexpected {
    if (this.#at < this.#text.length) return new Unexpected(this.#at, message)
    return new Unexpected(this.#text.replace(/[ \t\r\n]+$/, '').length, `${message}, but the text ends`)
  }
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}
