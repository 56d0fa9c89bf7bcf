import { KhepriError } from './errors.ts'
import { findFault } from './json-fault.ts'
import { caret } from './json-place.ts'
import { isSpace, skipSpace, units } from './json-units.ts'

/**
 * JSON as text, by RFC 8259, without building values: where a fault is, where members lie, how deep it goes.
 * Nothing here recurses, so that nesting of any depth is read like everything else. Offsets count UTF-16 units.
 */
export { type Fault, findFault } from './json-fault.ts'
export { caret, type Position, positionOf, within } from './json-place.ts'

const { quote, backslash, comma, colon, openBrace, closeBrace, openBracket, closeBracket } = units

/** A value inside a text: `text.slice(start, end)` is exactly its JSON. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** A member of an object: its key as a string, where the key stands, and the span of its value. */
export interface Member extends Span {
  readonly key: string
  readonly keyStart: number
}

/** From the opening quote of a valid string to behind its closing one. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    const unit = text.charCodeAt(at)
    if (unit === quote || Number.isNaN(unit)) return at + 1
    at += unit === backslash ? 2 : 1
  }
}

const isOpening = (unit: number): boolean => unit === openBrace || unit === openBracket
const isClosing = (unit: number): boolean => unit === closeBrace || unit === closeBracket

/** From the first character of a valid value to behind its last. */
function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start)
  if (first === quote) return endOfString(text, start)
  return isOpening(first) ? endOfNested(text, start) : endOfScalar(text, start)
}

function endOfScalar(text: string, start: number): number {
  let at = start
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit === comma || isClosing(unit) || isSpace(unit)) break
    at++
  }
  return at
}

function endOfNested(text: string, start: number): number {
  let depth = 0
  let at = start
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      at = endOfString(text, at)
      continue
    }
    at++
    if (isOpening(unit)) depth++
    else if (isClosing(unit) && --depth === 0) break
  }
  return at
}

/** The members of the object that a valid text is, in order, doubled keys included; none if it is no object. */
export function members(text: string): readonly Member[] {
  const found: Member[] = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== openBrace) return found
  at = skipSpace(text, at + 1)
  while (at < text.length && text.charCodeAt(at) !== closeBrace) {
    const keyStart = at
    const keyEnd = endOfString(text, keyStart)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const end = endOfValue(text, start)
    found.push({ key: keyOf(text, keyStart, keyEnd), keyStart, start, end })
    at = nextItem(text, end)
  }
  return found
}

/** The elements of the array that a valid text is, in order; none if it is no array. */
export function elements(text: string): readonly Span[] {
  const found: Span[] = []
  let at = skipSpace(text, 0)
  if (text.charCodeAt(at) !== openBracket) return found
  at = skipSpace(text, at + 1)
  while (at < text.length && text.charCodeAt(at) !== closeBracket) {
    const end = endOfValue(text, at)
    found.push({ start: at, end })
    at = nextItem(text, end)
  }
  return found
}

function nextItem(text: string, end: number): number {
  const at = skipSpace(text, end)
  return text.charCodeAt(at) === comma ? skipSpace(text, at + 1) : at
}

function keyOf(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
}

/** How many arrays and objects lie in one another at the deepest place of a text. */
export function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  let at = 0
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit === quote) {
      at = endOfString(text, at)
      continue
    }
    at++
    if (isOpening(unit)) deepest = Math.max(deepest, ++depth)
    else if (isClosing(unit)) depth--
  }
  return deepest
}

/** Tells whether a valid text is nested deeper than a limit. Short texts, which cannot be, are not even looked at. */
export function isDeeperThan(text: string, limit: number): boolean {
  return text.length >= 2 * limit && depthOf(text) > limit
}

/** The first key that an object of a valid text, at any depth, has twice; null if there is none. */
export function findDuplicateKey(text: string): { readonly key: string; readonly offset: number } | null {
  const keys: (Set<string> | null)[] = []
  let at = 0
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    if (unit !== quote) {
      if (isOpening(unit)) keys.push(unit === openBrace ? new Set() : null)
      else if (isClosing(unit)) keys.pop()
      at++
      continue
    }
    const end = endOfString(text, at)
    const known = text.charCodeAt(skipSpace(text, end)) === colon ? keys.at(-1) : null
    if (known) {
      const key = keyOf(text, at, end)
      if (known.has(key)) return { key, offset: at }
      known.add(key)
    }
    at = end
  }
  return null
}

/** Throws JSON_INVALID with the place unless a text is exactly one JSON value. */
export function requireJson(text: string, source: string): void {
  const fault = findFault(text)
  if (fault) throw new KhepriError('JSON_INVALID', caret({ source, text, ...fault }))
}
