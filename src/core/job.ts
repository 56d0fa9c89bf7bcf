import type { BackoffInput } from './backoff.ts'
import type { JobContextValues } from './context.ts'
import type { NextCall } from './dispatch-call.ts'
import type { DurationInput } from './duration.ts'
import { termKeys } from './terms.ts'
import { refuseStrangers } from './unknown-keys.ts'

/** What a payload is: whatever JSON holds. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** The part of the Standard Schema interface that khepri calls; zod, valibot and arktype schemas have it. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** What a handler is told about its attempt, and what it may ask for. */
export interface JobContext {
  readonly id: number
  readonly job: string
  readonly queue: string
  /** 1 on the first run. */
  readonly attempt: number
  readonly tries: number
  /** How often a worker died while it ran this job alone. */
  readonly crashes: number
  /** Epoch milliseconds. */
  readonly dispatchedAt: number
  readonly availableAt: number
  /** The unique key it was dispatched with. */
  readonly unique: string | null
  /** The schedule that dispatched it; null: none did. */
  readonly schedule: string | null
  /** The slot of the schedule that it is for, and when it was enqueued; epoch milliseconds. */
  readonly scheduledFor: number | null
  readonly firedAt: number | null
  /** How many slots before this one went by without a run, because nobody looked in time. */
  readonly missed: number
  /** The payload's JSON text, byte for byte as it was dispatched. */
  readonly payloadText: string
  /** What was current where the job was dispatched, and is current here; {} where nobody gave any. */
  readonly context: JobContextValues
  /** A W3C traceparent, as it was current there. */
  readonly traceparent: string | null
  /** What the scope hook of the configuration has built for this run; undefined where there is none. */
  readonly scope: unknown
  /** Aborts at the timeout, when the lease is lost, and when a drain gives up waiting. */
  readonly signal: AbortSignal
  /** Writes a line to the worker's log. */
  readonly log: (...values: readonly unknown[]) => void
  /** Ends the attempt at no cost: the job runs again after the delay (1 s where none is given). */
  readonly release: (delay?: DurationInput) => never
  /**
   * Dispatches a job that commits together with the completion of this one, or not at all. Resolves when it has been
   * checked; one that is refused fails the attempt. Where a live job holds its unique key that one is kept.
   */
  readonly next: NextCall
}

/** The terms of a job: how it is queued, tried again and bounded. All captured at dispatch. */
export interface JobTerms {
  readonly queue?: string
  /** Lower runs first; 0 where none is given. */
  readonly priority?: number
  /** How often it may run, the first run included. */
  readonly tries?: number
  readonly backoff?: BackoffInput
  /** Bounds one attempt, through its signal. */
  readonly timeout?: DurationInput
  /** Deaths of a worker that ran only this job, after which it is failed. */
  readonly maxCrashes?: number
}

/** A job as `defineJob` takes it. */
export interface JobOptions<Payload> extends JobTerms {
  /** Checked at dispatch and again when the payload is read; the handler gets its output. */
  readonly schema?: StandardSchema<Payload>
  handle(payload: Payload, context: JobContext): unknown
  /** Runs at most once, after the job has failed for good and this is committed. */
  failed?(error: unknown, context: JobContext, payload: Payload): unknown
}

export const jobBrand = Symbol.for('khepri.job')

/** A job definition; `defineJob` makes it. */
export interface JobDefinition<Payload = unknown> extends JobOptions<Payload> {
  readonly [jobBrand]: true
}

const definitionKeys: readonly string[] = [...termKeys, 'schema', 'handle', 'failed']

/**
 * Declares a job: its terms, its payload's schema, and its handler. The default export of a job module.
 *
 * Throws CONFIG_INVALID at a key that it does not know: a misspelled `tries` would otherwise never be noticed.
 */
export function defineJob<Payload = unknown>(options: JobOptions<Payload>): JobDefinition<Payload> {
  refuseStrangers(options, definitionKeys, { what: 'defineJob', code: 'CONFIG_INVALID' })
  return Object.freeze({ ...options, [jobBrand]: true as const })
}

/**
 * A job as a class: the payload is the instance's own enumerable properties.
 *
 * Terms are static properties. A worker rebuilds the instance without calling the constructor, unless the class has a
 * static `fromPayload`; `toPayload` may say what is stored instead of the own properties.
 */
export abstract class Job {
  static readonly [jobBrand] = true
  static readonly queue?: string
  static readonly priority?: number
  static readonly tries?: number
  static readonly backoff?: BackoffInput
  static readonly timeout?: DurationInput
  static readonly maxCrashes?: number
  static readonly schema?: StandardSchema
  /** Rebuilds a job from its stored payload. */
  static fromPayload?(payload: unknown): Job
  /** What is stored; by default the own enumerable properties. */
  toPayload?(): Json

  /** Set before `handle` and `failed` run; not part of the payload. */
  declare readonly context: JobContext
  abstract handle(): unknown
  /** Runs at most once, after the job has failed for good and this is committed. */
  failed?(error: unknown): unknown
}

/** A class that extends Job, as a value. */
export type JobClass = (new (
  ...parameters: never[]
) => Job) &
  Pick<typeof Job, 'fromPayload' | 'schema' | 'queue' | 'priority' | 'tries' | 'backoff' | 'timeout' | 'maxCrashes'>

/** A plain function as a handler. */
export type JobFunction = (payload: never, context: JobContext) => unknown

const finalBrand = Symbol.for('khepri.nonRetryable')
const retryAfterBrand = Symbol.for('khepri.retryAfter')
const releaseBrand = Symbol.for('khepri.release')

/** Thrown by a handler: this will never succeed, fail at once whatever the tries. */
export class NonRetryable extends Error {
  readonly [finalBrand] = true
  override readonly name = 'NonRetryable'
}

/** Marks an error of any class as never to be retried; the result is the same error. */
export function nonRetryable<E extends object>(error: E): E {
  Object.defineProperty(error, finalBrand, { value: true })
  return error
}

/** Thrown by a handler: this attempt failed, try again after this delay instead of the backoff. */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter'
  readonly [retryAfterBrand]: DurationInput

  constructor(delay: DurationInput, message = 'asked to be tried again later', options?: ErrorOptions) {
    super(message, options)
    this[retryAfterBrand] = delay
  }
}

/** Thrown by `release`; handlers need not know it. */
export class Release extends Error {
  override readonly name = 'Release'
  readonly [releaseBrand]: DurationInput | null

  constructor(delay: DurationInput | null) {
    super('released')
    this[releaseBrand] = delay
  }
}

/** Ends the attempt at no cost: the job runs again after the delay (1 s where none is given). */
export function release(delay?: DurationInput): never {
  throw new Release(delay ?? null)
}

/** What was thrown may be anything, also a proxy that throws when it is looked at. */
function branded(value: unknown, brand: symbol): unknown {
  try {
    return typeof value === 'object' && value !== null ? (value as Record<symbol, unknown>)[brand] : undefined
  } catch {
    return undefined
  }
}

export const isNonRetryable = (error: unknown): boolean => branded(error, finalBrand) === true

/** The delay a RetryAfter carries; undefined where the error is none. */
export const retryAfterOf = (error: unknown): unknown => branded(error, retryAfterBrand)

/** The delay a Release carries, null for none given; undefined where the error is none. */
export const releaseOf = (error: unknown): unknown => branded(error, releaseBrand)
