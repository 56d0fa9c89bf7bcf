import { inspect, stripVTControlCharacters } from 'node:util'
import { defaults } from './defaults.ts'
import type { ErrorFacts } from './events.ts'

const cutMark = '…'

/** Makes any text storable everywhere: no NUL, no lone surrogate, at most `max` characters, a cut shown by a mark. */
export function clean(text: string, max: number): string {
  const short =
    text.length > max
      ? text.slice(0, Math.max(0, max - cutMark.length)).replace(/[\ud800-\udbff]$/, '') + cutMark
      : text
  return short.toWellFormed().replaceAll('\0', '\ufffd')
}

/** What must not reach a terminal as it is: control characters, line and paragraph marks, and what reverses the reading direction. */
const foreign = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/
const visible = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Makes any text one line that is safe to print: line ends become spaces, escape codes go, other control characters are shown. */
export function oneLine(text: string): string {
  if (!foreign.test(text)) return text
  const plain = stripVTControlCharacters(text.toWellFormed())
  return plain.replace(/[\r\n\t\v\f\u2028\u2029]+/g, ' ').replace(visible, shownCode)
}

function shownCode(character: string): string {
  const unit = character.charCodeAt(0)
  return unit < 0x100 ? `\\x${unit.toString(16).padStart(2, '0')}` : `\\u${unit.toString(16).padStart(4, '0')}`
}

/** Writes a value for an error message: as JSON where that is possible, one line, short. */
export function shown(value: unknown): string {
  const text = typeof value === 'number' || value === undefined ? String(value) : inJson(value)
  return oneLine(clean(text, 60))
}

function inJson(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(clean(value, 58))
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

const deepestCause = 10

/**
 * Describes whatever was thrown, so that it can always be stored and printed.
 *
 * Never throws itself: getters that throw, proxies, null, symbols and causes that form a ring are described as far as
 * they let themselves be. The causes follow in the stack.
 */
export function describeError(thrown: unknown): ErrorFacts {
  const message = messageOf(thrown)
  const stack = [stackOf(thrown), ...causesOf(thrown)].filter((each) => each !== null).join('\n')
  return {
    type: oneLine(clean(typeOf(thrown), defaults.maxNameLength)),
    message: clean(message, defaults.maxMessageLength),
    stack: stack === '' ? null : clean(stack, defaults.maxStackLength),
  }
}

/** Values that users throw may do anything when they are looked at. */
function safely<T>(look: () => T, otherwise: T): T {
  try {
    return look()
  } catch {
    return otherwise
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

function textIn(value: unknown, key: string): string | null {
  if (!isObject(value)) return null
  const found = safely(() => value[key], null)
  return typeof found === 'string' && found !== '' ? found : null
}

function typeOf(thrown: unknown): string {
  if (thrown === null) return 'null'
  if (!isObject(thrown)) return typeof thrown
  return textIn(thrown, 'name') ?? safely(() => textIn(thrown.constructor, 'name'), null) ?? 'object'
}

function messageOf(thrown: unknown): string {
  const message = textIn(thrown, 'message')
  if (message !== null) return message
  const parts = errorsOf(thrown)
    .map((each) => textIn(each, 'message'))
    .filter((each) => each !== null)
  if (parts.length > 0) return parts.join('; ')
  if (textIn(thrown, 'stack') !== null) return typeOf(thrown)
  return typeof thrown === 'string'
    ? thrown
    : safely(() => inspect(thrown, { depth: 2, customInspect: false, breakLength: Infinity }), typeOf(thrown))
}

/** An AggregateError often has no message of its own. */
function errorsOf(thrown: unknown): readonly unknown[] {
  if (!isObject(thrown)) return []
  return safely(() => (Array.isArray(thrown.errors) ? [...thrown.errors] : []), []).slice(0, deepestCause)
}

const stackOf = (thrown: unknown): string | null => textIn(thrown, 'stack')

function causesOf(thrown: unknown): string[] {
  const seen = new Set<unknown>([thrown])
  const lines: string[] = []
  let cause = causeOf(thrown)
  while (cause !== undefined && !seen.has(cause) && lines.length < deepestCause) {
    seen.add(cause)
    lines.push(`caused by: ${stackOf(cause) ?? messageOf(cause)}`)
    cause = causeOf(cause)
  }
  return lines
}

const causeOf = (thrown: unknown): unknown => (isObject(thrown) ? safely(() => thrown.cause, undefined) : undefined)
