import { defaults } from '../core/defaults.ts'
import { parentsOf } from '../core/dispatch-call.ts'
import { parseDuration } from '../core/duration.ts'
import { decodeEnvelope, type Envelope, Poison } from '../core/envelope.ts'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import { caret, isDeeperThan, type Member, members, positionOf, within } from '../core/json-text.ts'
import type { Due, JobId, OnParentFailure } from '../core/store/store.ts'
import { didYouMean } from '../core/suggest.ts'
import { checkName, checkUnique, parseMoment, parseTerms, type Terms, termKeys } from '../core/terms.ts'
import { shown } from '../core/text.ts'
import type { JsonItem } from './job-files.ts'

/** A job as a file describes it. */
export interface JobObject {
  readonly job: string
  /** Exactly as in the file; null where none is given. */
  readonly payloadText: string | null
  readonly terms: Terms
  /** null: now. */
  readonly due: Due | null
  readonly unique: string | null
  readonly after?: readonly JobId[]
  readonly onParentFailure?: OnParentFailure
  /** Only of an envelope. */
  readonly context?: Envelope['context']
  readonly trace?: Envelope['trace']
  /** There for what `show --envelope` prints. */
  readonly envelope?: true
}

const jobKeys: readonly string[] = ['job', 'payload', ...termKeys, 'delay', 'at', 'unique', 'after', 'onParentFailure']

/** A member of the object, with its value; that of `payload` is left as text. */
interface Field extends Member {
  readonly value: unknown
}

type Fields = ReadonlyMap<string, Field>
type Placed = Pick<JsonItem, 'text' | 'source' | 'line' | 'column'>

/**
 * Reads a job object, or an envelope, from valid JSON text.
 *
 * Throws DATA_INVALID with file and line: no object, an unknown or doubled key, a value that is not right; PAYLOAD_REFUSED
 * for a payload that is nested too deeply.
 */
export function parseJobObject(item: Placed): JobObject {
  const fields = readFields(item)
  if (fields.has('v')) return fromEnvelope(item)
  for (const field of fields.values()) if (!jobKeys.includes(field.key)) throw unknownKey(item, field)
  const values = Object.fromEntries([...fields].map(([key, { value }]) => [key, value]))
  return placed(item, fields, () => ({
    job: checkName(values.job, 'job'),
    payloadText: payloadOf(item, fields),
    terms: parseTerms(values, ''),
    due: dueOf(values),
    unique: values.unique === undefined ? null : checkUnique(values.unique, 'unique'),
    ...parentsOf(values),
  }))
}

function readFields(item: Placed): Fields {
  if (!item.text.startsWith('{'))
    throw at(item, 0, `a job must be an object such as {"job":"send-welcome","payload":{}}, got ${kindOf(item.text)}`)
  const fields = new Map<string, Field>()
  for (const member of members(item.text)) {
    if (fields.has(member.key))
      throw new KhepriError(
        'DATA_INVALID',
        pointAt(item, member.keyStart, `${shown(member.key)} stands here a second time`),
      )
    fields.set(member.key, { ...member, value: valueIn(item, member) })
  }
  return fields
}

function valueIn(item: Placed, { key, start, end }: Member): unknown {
  const text = item.text.slice(start, end)
  if (isDeeperThan(text, defaults.maxDepth)) throw tooDeep(item, start, key)
  return key === 'payload' ? undefined : (JSON.parse(text) as unknown)
}

function tooDeep(item: Placed, offset: number, key: string): KhepriError {
  const { message } = at(
    item,
    offset,
    `${shown(key)} is nested more than ${defaults.maxDepth.toLocaleString('en')} levels deep`,
  )
  return new KhepriError('PAYLOAD_REFUSED', message)
}

function payloadOf({ text }: Placed, fields: Fields): string | null {
  const field = fields.get('payload')
  return field === undefined ? null : text.slice(field.start, field.end)
}

function dueOf({ delay, at }: Readonly<Record<string, unknown>>): Due | null {
  if (delay !== undefined && at !== undefined) throw new KhepriError('DATA_INVALID', 'at and delay exclude each other')
  if (delay !== undefined) return { delayMs: parseDuration(delay, 'delay', defaults.maxDelayMs) }
  return at === undefined ? null : { at: parseMoment(at, 'at') }
}

function fromEnvelope(item: Placed): JobObject {
  try {
    const { job } = JSON.parse(item.text) as { readonly job: string }
    const { payloadText, tries, backoff, timeoutMs, maxCrashes, unique, context, trace } = decodeEnvelope(
      item.text,
      job,
    )
    const terms: Terms = {
      maxCrashes,
      ...(tries !== null && { tries }),
      ...(backoff !== null && { backoff }),
      ...(timeoutMs !== null && { timeoutMs }),
    }
    const handedOn = { ...(context !== null && { context }), ...(trace !== null && { trace }) }
    return { job: checkName(job, 'job'), payloadText, terms, due: null, unique, envelope: true, ...handedOn }
  } catch (error) {
    if (error instanceof Poison || isKhepriError(error)) throw at(item, 0, error.message)
    throw error
  }
}

function unknownKey(item: Placed, field: Field): KhepriError {
  const { message } = at(item, field.keyStart, `unknown key ${shown(field.key)}${didYouMean(field.key, jobKeys)}`)
  return new KhepriError('DATA_INVALID', message, { fix: `known are ${jobKeys.join(', ')}` })
}

/** Puts file and line in front of what a check says; the line is that of the value which the message begins with. */
function placed<T>(item: Placed, fields: Fields, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!isKhepriError(error)) throw error
    const key = /^\w+/.exec(error.message)?.[0] ?? ''
    throw at(item, fields.get(key)?.keyStart ?? 0, error.message)
  }
}

function at(item: Placed, offset: number, message: string): KhepriError {
  return new KhepriError(
    'DATA_INVALID',
    `${item.source}:${within(item, positionOf(item.text, offset)).line}: ${message}`,
  )
}

const pointAt = (item: Placed, offset: number, message: string): string =>
  caret({ ...item, offset, message, origin: item })

const kinds: Readonly<Record<string, string>> = { '[': 'a list', '"': 'a text', t: 'true', f: 'false', n: 'null' }

const kindOf = (text: string): string => kinds[text[0] ?? ''] ?? 'a number'
