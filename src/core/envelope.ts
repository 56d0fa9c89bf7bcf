import type { Backoff } from './backoff.ts'
import { defaults } from './defaults.ts'
import { isDeeperThan, members } from './json-text.ts'
import type { NewJob } from './store/store.ts'

/** The newest envelope version this khepri writes and reads. */
export const envelopeVersion = 1

/**
 * What a job is, as it is stored: its name, the terms it was dispatched under, and the user's payload.
 *
 * Terms that are null were given neither by the dispatch nor by the definition; the worker's own defaults fill them in.
 */
export interface Envelope {
  readonly job: string
  /** The user's JSON text, byte for byte. */
  readonly payloadText: string
  readonly tries: number | null
  readonly backoff: Backoff | null
  readonly timeoutMs: number | null
  readonly maxCrashes: number
  /** Epoch milliseconds, by the clock of the dispatching host. */
  readonly dispatchedAt: number
  readonly unique: string | null
  /** What the application gives to its jobs; a JSON object. */
  readonly context: Readonly<Record<string, unknown>> | null
  /** A W3C traceparent. */
  readonly trace: string | null
  /** The slot of a schedule that it was enqueued for; of other jobs not there, or null. */
  readonly schedule?: ScheduledRun | null
}

/** One run of a schedule. Moments are epoch milliseconds. */
export interface ScheduledRun {
  readonly name: string
  /** When it was to run. */
  readonly scheduledFor: number
  /** When it was enqueued. */
  readonly firedAt: number
  /** How many slots before it went by without a run, because nobody looked in time. */
  readonly missed: number
}

/** An envelope that was read, with its payload as a value. */
export interface OpenEnvelope extends Envelope {
  readonly payload: unknown
}

/** A stored text that is no envelope this khepri can run: the job fails at once. */
export class Poison extends Error {
  override readonly name = 'Poison'
}

/** Writes an envelope as one line of JSON. The payload text is put in as it is; it must be valid JSON by now. */
export function encodeEnvelope(envelope: Envelope): string {
  const { payloadText, job, tries, backoff, timeoutMs, maxCrashes, dispatchedAt, unique, context, trace, schedule } =
    envelope
  const header = JSON.stringify({
    v: envelopeVersion,
    job,
    dispatchedAt,
    maxCrashes,
    ...(tries !== null && { tries }),
    ...(backoff !== null && { backoff }),
    ...(timeoutMs !== null && { timeoutMs }),
    ...(unique !== null && { unique }),
    ...(context !== null && { context }),
    ...(trace !== null && { trace }),
    ...(schedule && { schedule }),
  })
  return `${header.slice(0, -1)},"payload":${payloadText}}`
}

/**
 * Reads a stored envelope strictly: what it does not know, it does not run.
 *
 * column: the job name that the store has beside the envelope; if the two differ the row was tampered with.
 * Throws Poison with the reason.
 */
export function decodeEnvelope(text: string, column: string): OpenEnvelope {
  const fields = parseFields(text)
  for (const key of Object.keys(fields))
    if (!Object.hasOwn(readers, key)) throw new Poison(`the envelope has an unknown key ${shown(key)}`)
  if (fields.v !== envelopeVersion)
    throw new Poison(`the envelope's version is ${shown(fields.v)}, this khepri reads ${envelopeVersion}`)
  if (fields.job !== column)
    throw new Poison(`the envelope says job ${shown(fields.job)}, its row says ${shown(column)}`)
  if (!Object.hasOwn(fields, 'payload')) throw new Poison('the envelope has no payload')
  return new Decoded(text, fields)
}

function parseFields(text: string): Record<string, unknown> {
  // Each level takes two characters, so short texts need no counting.
  if (text.length > 2 * defaults.maxDepth && isDeeperThan(text, defaults.maxDepth + 1))
    throw new Poison(`the envelope is nested more than ${defaults.maxDepth} levels deep`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Not with the cause: its message quotes the text, and payloads are never logged.
    throw new Poison('the envelope is not valid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Poison('the envelope is not a JSON object')
  return value as Record<string, unknown>
}

/** Finds the payload's text only when somebody asks: most handlers want the value. */
class Decoded implements OpenEnvelope {
  readonly job: string
  readonly payload: unknown
  readonly tries: number | null
  readonly backoff: Backoff | null
  readonly timeoutMs: number | null
  readonly maxCrashes: number
  readonly dispatchedAt: number
  readonly unique: string | null
  readonly context: Readonly<Record<string, unknown>> | null
  readonly trace: string | null
  readonly schedule: ScheduledRun | null
  readonly #text: string

  constructor(text: string, fields: Record<string, unknown>) {
    this.#text = text
    this.job = read(fields, 'job', isText)
    this.payload = fields.payload
    this.tries = optional(fields, 'tries', isCount)
    this.backoff = optional(fields, 'backoff', isBackoff)
    this.timeoutMs = optional(fields, 'timeoutMs', isCount)
    this.maxCrashes = read(fields, 'maxCrashes', isWhole)
    this.dispatchedAt = read(fields, 'dispatchedAt', isWhole)
    this.unique = optional(fields, 'unique', isText)
    this.context = optional(fields, 'context', isRecord)
    this.trace = optional(fields, 'trace', isText)
    this.schedule = optional(fields, 'schedule', isScheduledRun)
  }

  get payloadText(): string {
    return payloadTextOf(this.#text)
  }
}

/** The exact text of the payload inside an envelope's text; "null" where there is none. */
export function payloadTextOf(envelope: string): string {
  // The last one, as JSON.parse decides between doubled keys.
  const span = members(envelope).findLast(({ key }) => key === 'payload')
  return span === undefined ? 'null' : envelope.slice(span.start, span.end)
}

type Guard<T> = (value: unknown) => value is T

const isText: Guard<string> = (value): value is string => typeof value === 'string'
const isWhole: Guard<number> = (value): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isCount: Guard<number> = (value): value is number => isWhole(value) && value >= 1
const isFlag: Guard<boolean> = (value): value is boolean => typeof value === 'boolean'
const isRecord: Guard<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isScheduledRun(value: unknown): value is ScheduledRun {
  if (!isRecord(value)) return false
  const { name, scheduledFor, firedAt, missed } = value
  return isText(name) && isWhole(scheduledFor) && isWhole(firedAt) && isWhole(missed)
}

function isBackoff(value: unknown): value is Backoff {
  if (!isRecord(value)) return false
  const { kind, delayMs, delaysMs, baseMs, maxMs, jitter } = value
  if (kind === 'none') return true
  if (kind === 'fixed') return isWhole(delayMs)
  if (kind === 'list') return Array.isArray(delaysMs) && delaysMs.length > 0 && delaysMs.every(isWhole)
  return (kind === 'linear' || kind === 'exponential') && isWhole(baseMs) && isWhole(maxMs) && isFlag(jitter)
}

/** Every key an envelope of version 1 may have. */
const readers: Readonly<Record<string, true>> = {
  v: true,
  job: true,
  payload: true,
  tries: true,
  backoff: true,
  timeoutMs: true,
  maxCrashes: true,
  dispatchedAt: true,
  unique: true,
  context: true,
  trace: true,
  schedule: true,
}

function read<T>(fields: Record<string, unknown>, key: string, fits: Guard<T>): T {
  const value = fields[key]
  if (!fits(value)) throw new Poison(`the envelope's ${key} is ${shown(value)}`)
  return value
}

function optional<T>(fields: Record<string, unknown>, key: string, fits: Guard<T>): T | null {
  return Object.hasOwn(fields, key) ? read(fields, key, fits) : null
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

/** What a row says beside its envelope. */
type Place = Pick<NewJob, 'queue' | 'priority' | 'due' | 'onConflict' | 'after' | 'onParentFailure'>

/** The row a store writes for an envelope. */
export function newJob(envelope: Envelope, place: Place): NewJob {
  return {
    ...place,
    job: envelope.job,
    uniqueKey: envelope.unique,
    version: envelopeVersion,
    envelope: encodeEnvelope(envelope),
  }
}
