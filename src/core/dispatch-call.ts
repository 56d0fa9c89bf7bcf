import { checkContext, checkTraceparent, type JobContextValues } from './context.ts'
import { defaults } from './defaults.ts'
import type { DispatchRequest } from './dispatch.ts'
import { type DurationInput, parseDuration } from './duration.ts'
import { KhepriError } from './errors.ts'
import { isJob } from './handler.ts'
import { type Job, type JobDefinition, type JobFunction, type JobTerms, jobBrand } from './job.ts'
import { jsonTextOf } from './json-value.ts'
import type { RegisteredJob, Registry } from './registry.ts'
import type { Due, JobId, NewJob, OnConflict, OnParentFailure } from './store/store.ts'
import { checkParentFailure, checkUnique, parseAfter, parseMoment, parseTerms, termKeys } from './terms.ts'
import { shown } from './text.ts'
import { refuseStrangers } from './unknown-keys.ts'

/** The keys of `DispatchOptions`. */
const dispatchKeys: readonly string[] = [
  ...termKeys,
  'delay',
  'at',
  'unique',
  'onConflict',
  'after',
  'onParentFailure',
  'context',
  'traceparent',
]

/** The options of one dispatch: terms that outrank the definition's, and when the job may run. */
export interface DispatchOptions extends JobTerms {
  readonly delay?: DurationInput
  /** A Date, ISO 8601 with an offset, or epoch milliseconds. */
  readonly at?: Date | string | number
  /** At most one live job may carry it; a second dispatch answers with the first one's id. */
  readonly unique?: string
  /**
   * What becomes of it where a live job has its key. keep (the default): that job stays. error: KEY_HELD is thrown. replace:
   * that job becomes this one, under its own id, if no run of it has begun; `replaced` in the answer says whether.
   */
  readonly onConflict?: OnConflict
  /** Ids of jobs: it waits until they are done. NOT_FOUND for an id that was never given out. */
  readonly after?: JobId | readonly JobId[]
  /**
   * What becomes of it where one of those is not done. wait (the default): it stays while that job is failed, since a retry
   * may lead on, and is cancelled once that one is cancelled or flushed. cancel: it is cancelled with the failure. run: it
   * runs all the same.
   */
  readonly onParentFailure?: OnParentFailure
  /** Laid over what is current where it is dispatched; current in its handler. null: nothing is handed on. */
  readonly context?: JobContextValues | null
  /** A W3C traceparent, instead of the current one. */
  readonly traceparent?: string
}

/** The payload that a registered value takes: from its definition, its class or its function. */
export type PayloadOf<Value> =
  Value extends JobDefinition<infer Payload>
    ? Payload
    : Value extends abstract new (
          ...parameters: never[]
        ) => infer Instance
      ? Omit<Instance, keyof Job>
      : Value extends (payload: infer Payload, ...rest: never[]) => unknown
        ? Payload
        : unknown

/** What follows a job in a dispatch; a payload that may be {} may be left out. */
export type PayloadAndOptions<Payload> =
  Record<never, never> extends Payload
    ? [payload?: Payload, options?: DispatchOptions]
    : [payload: Payload, options?: DispatchOptions]

/** Jobs by name, as far as the configuration says it in its types. */
export type JobMap = Readonly<Record<string, unknown>>

/** The values that may be dispatched themselves; any where the configuration does not say it in its types. */
export type ValueIn<Jobs extends JobMap> = unknown extends Jobs[keyof Jobs & string]
  ? object
  : Extract<Jobs[keyof Jobs & string], object>

/** Instances of the job classes among the values. */
export type InstanceIn<Jobs extends JobMap> = unknown extends Jobs[keyof Jobs & string]
  ? Job
  : InstanceOf<Jobs[keyof Jobs & string]>

/** A dispatch in its three forms, as `Khepri.dispatch` has them. */
export interface DispatchCall<Jobs extends JobMap, Answer> {
  (job: InstanceIn<Jobs>, options?: DispatchOptions): Answer
  <Value extends ValueIn<Jobs>>(job: Value, ...rest: PayloadAndOptions<PayloadOf<Value>>): Answer
  <Name extends keyof Jobs & string>(job: Name, ...rest: PayloadAndOptions<PayloadOf<Jobs[Name]>>): Answer
}

/** What a dispatch with the completion of a job may say besides its payload: it is after that job as it is. */
export type NextOptions = Omit<DispatchOptions, 'onConflict' | 'after' | 'onParentFailure'>

/** The dispatch of a job that follows another one: by its name, or by a value that `jobs` holds, or an instance of one. */
export interface NextCall {
  (job: Job, options?: NextOptions): Promise<void>
  <Value extends object>(job: Value, payload?: PayloadOf<Value>, options?: NextOptions): Promise<void>
  (job: string, payload?: unknown, options?: NextOptions): Promise<void>
}

type InstanceOf<Value> = Value extends abstract new (...parameters: never[]) => infer Instance ? Instance : never

/** What stands between the parentheses of a dispatch: a name or a value with its payload, or an instance alone. */
export type DispatchArguments = readonly [job: unknown, ...rest: readonly unknown[]]

/** Where values are looked up. `adopt` is not there where a job may be run by another process. */
type Names = Pick<Registry, 'get' | 'nameOf'> & Partial<Pick<Registry, 'adopt'>>

/**
 * Reads the arguments of a dispatch.
 *
 * A closure is adopted where the jobs end with the process anyway.
 * Throws JOB_UNKNOWN for a value that `jobs` does not hold, DATA_INVALID for its options, PAYLOAD_REFUSED where JSON
 * cannot hold the payload. A name is not looked up here.
 */
export function requestOf(call: DispatchArguments, registry: Names): DispatchRequest {
  const { job, payload, options } = readCall(call, registry)
  return {
    job,
    payloadText: payload === undefined ? '{}' : jsonTextOf(payload),
    ...readOptions(options),
  }
}

/** Throws DATA_INVALID for a row that could not follow a completion. */
export function requireFollowUp({ job, onConflict, after, onParentFailure }: NewJob): void {
  if (onConflict === undefined && after === undefined && onParentFailure === undefined) return
  throw new KhepriError('DATA_INVALID', `next(${shown(job)}) takes no onConflict, after or onParentFailure`, {
    fix: 'it is after this job as it is; dispatch() takes them',
  })
}

/** Reads the options of a dispatch. Throws DATA_INVALID. */
function readOptions(options: DispatchOptions): Omit<DispatchRequest, 'job' | 'payloadText'> {
  refuseStrangers(options, dispatchKeys, { what: 'the options of dispatch', code: 'DATA_INVALID' })
  return {
    terms: parseTerms(options, ''),
    due: dueOf(options),
    unique: options.unique === undefined ? null : checkUnique(options.unique, 'unique'),
    ...(options.onConflict !== undefined && { onConflict: checkConflict(options) }),
    ...parentsOf(options),
    ...(options.context !== undefined && { context: checkContext(options.context) }),
    ...(options.traceparent !== undefined && { trace: checkTraceparent(options.traceparent) }),
  }
}

/** Reads what a job waits for. Throws DATA_INVALID. */
export function parentsOf({
  after,
  onParentFailure,
  onConflict,
}: Pick<DispatchOptions, 'after' | 'onParentFailure' | 'onConflict'>): Pick<
  DispatchRequest,
  'after' | 'onParentFailure'
> {
  if (after === undefined && onParentFailure !== undefined)
    throw new KhepriError('DATA_INVALID', 'onParentFailure is given without after', { fix: 'add after: id' })
  if (after !== undefined && onConflict === 'replace')
    throw new KhepriError('DATA_INVALID', 'after and onConflict: "replace" exclude each other')
  return {
    ...(after !== undefined && { after: parseAfter(after, 'after') }),
    ...(onParentFailure !== undefined && { onParentFailure: checkParentFailure(onParentFailure, 'onParentFailure') }),
  }
}

const conflicts: readonly OnConflict[] = ['keep', 'error', 'replace']

function checkConflict({ onConflict, unique }: DispatchOptions): OnConflict {
  const known = conflicts.find((one) => one === onConflict)
  if (known === undefined)
    throw new KhepriError('DATA_INVALID', `onConflict must be "keep", "error" or "replace", got ${shown(onConflict)}`)
  if (unique === undefined)
    throw new KhepriError('DATA_INVALID', 'onConflict is given without a unique key', { fix: "add unique: 'its-key'" })
  return known
}

/** When a job may first run; null where the options do not say. Throws DATA_INVALID, also where they say it twice. */
export function dueOf({ delay, at }: Pick<DispatchOptions, 'delay' | 'at'>): Due | null {
  if (delay !== undefined && at !== undefined) throw new KhepriError('DATA_INVALID', 'delay and at exclude each other')
  if (delay !== undefined) return { delayMs: parseDuration(delay, 'delay', defaults.maxDelayMs) }
  if (at !== undefined) return { at: parseMoment(at instanceof Date ? at.getTime() : at, 'at') }
  return null
}

interface Call {
  readonly job: string
  readonly payload: unknown
  readonly options: DispatchOptions
}

function readCall([job, first, second]: DispatchArguments, registry: Names): Call {
  const name = typeof job === 'string' ? job : (registry.nameOf(job) ?? adopted(job, registry))
  if (name !== undefined) return { job: name, payload: first, options: optionsIn(second) }
  const ofClass = isObject(job) ? registry.nameOf(job.constructor) : undefined
  if (ofClass === undefined) throw notInJobs(job)
  return { job: ofClass, payload: payloadOf(job as object, registry.get(ofClass)), options: optionsIn(first) }
}

function adopted(job: unknown, registry: Names): string | undefined {
  return isClosure(job) ? registry.adopt?.(job) : undefined
}

/** Written where it is dispatched: whatever has a name is the job of a configuration, which may have forgotten it. */
const isClosure = (job: unknown): job is JobFunction =>
  typeof job === 'function' && job.name === '' && isJob(job) && !(jobBrand in job)

function optionsIn(value: unknown): DispatchOptions {
  if (value === undefined) return {}
  if (isObject(value)) return value
  throw new KhepriError('DATA_INVALID', `the options of dispatch must be an object, got a ${typeof value}`)
}

/** An instance is dispatched by its class, which is a value and so needs no import. */
function payloadOf(instance: object, registered: RegisteredJob | undefined): unknown {
  return registered?.handlerNow()?.toPayload?.(instance)
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

function notInJobs(job: unknown): KhepriError {
  if (isClosure(job))
    return new KhepriError('JOB_UNKNOWN', 'a closure cannot be dispatched: its code would be lost with this process', {
      fix: 'put it into jobs under a name; database: "memory:" and "sync:" take closures',
    })
  return new KhepriError('JOB_UNKNOWN', `${describe(job)} is not one of the values in jobs`, {
    fix: 'put the value itself into jobs; a job that is registered by its path is dispatched by its name',
  })
}

function describe(job: unknown): string {
  if (typeof job === 'function') return job.name === '' ? 'a function without a name' : job.name
  if (!isObject(job)) return job === undefined ? 'undefined' : `a ${typeof job}`
  const { name } = job.constructor ?? {}
  return name === undefined || name === 'Object' ? 'a job definition' : `an instance of ${name}`
}
