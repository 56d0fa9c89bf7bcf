import { isKhepriError, KhepriError } from './errors.ts'
import {
  type Job,
  type JobContext,
  type JobDefinition,
  type JobFunction,
  jobBrand,
  type SchemaIssue,
  type SchemaResult,
  type StandardSchema,
} from './job.ts'
import type { WorkerId } from './store/store.ts'
import { parseTerms, type Terms } from './terms.ts'
import { describeError, oneLine } from './text.ts'

/** Marks what another layer offers as a handler: `{ [handlerBrand]: (root) => Handler, terms }`. */
export const handlerBrand = Symbol.for('khepri.handler')

/** A handler that another layer makes, once the folder is known that its paths start from. */
export interface HandlerSource {
  readonly [handlerBrand]: (root: string) => Handler
  /** Known without making the handler. */
  readonly terms: Terms
}

/** The verdict of a job's schema: what the handler gets, or what is wrong. */
export type Checked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly string[] }

/** What a handler is told about its attempt; users see the part that is a JobContext. */
export interface RunContext extends JobContext {
  /** The number of this reservation: grows with each one of the job. */
  readonly fence: number
  /** Who holds the job, as the store knows it. */
  readonly worker: WorkerId
  /** Keeps with the attempt what the job has written. */
  keepOutput(output: string): void
}

/** User code in the one form that a worker and a dispatcher call, whatever form it was written in. */
export interface Handler {
  readonly terms: Terms
  /** False where every payload passes the check, so that nothing needs to be parsed for it. */
  readonly hasSchema: boolean
  /** Checks a payload against the job's schema; without one every payload passes. Never throws. */
  check(payload: unknown): Checked | Promise<Checked>
  /** Runs the job once. payload: the value of a check that passed. */
  run(payload: unknown, context: RunContext): Promise<unknown>
  /** The hook for a job that has failed for good; null where there is none. */
  readonly failed: ((error: unknown, context: JobContext, payload: unknown) => Promise<unknown>) | null
  /** What is stored of an instance of a job class; null for the other forms, whose payload is given as it is. */
  readonly toPayload: ((instance: object) => unknown) | null
  /** How long its end may take after its signal, where that is not the kernel's own grace; milliseconds. */
  readonly graceMs?: number
  /** Rejects where it could not be run now; for people who ask, a worker just runs it. */
  readonly verify?: () => Promise<void>
}

type Class = (new (
  ...parameters: never[]
) => Job) &
  Pick<typeof Job, 'fromPayload'> & { readonly schema?: StandardSchema }

const isFunction = (value: unknown): value is (...parameters: never[]) => unknown => typeof value === 'function'
const isObject = (value: unknown): value is Record<PropertyKey, unknown> => typeof value === 'object' && value !== null
const isBranded = (value: unknown): boolean =>
  (isObject(value) || isFunction(value)) && (value as unknown as Record<symbol, unknown>)[jobBrand] === true
const isDefinition = (value: unknown): value is JobDefinition => isObject(value) && isBranded(value)
const isJobClass = (value: unknown): value is Class => isFunction(value) && isBranded(value)
const isAnyClass = (value: unknown): boolean =>
  isFunction(value) && /^class\b/.test(Function.prototype.toString.call(value))

const tagOf = (value: unknown): string => Object.prototype.toString.call(value)
/** Calling one runs nothing of its body. */
const isGeneratorFunction = (value: unknown): boolean =>
  isFunction(value) && /^\[object (?:Async)?GeneratorFunction\]$/.test(tagOf(value))
const isGenerator = (value: unknown): boolean =>
  isObject(value) && /^\[object (?:Async)?Generator\]$/.test(tagOf(value))

/** Tells whether a value was made by another layer as a handler. */
export const isHandlerSource = (value: unknown): value is HandlerSource =>
  isObject(value) && isFunction(value[handlerBrand])

/** Tells whether a value is a job in one of the forms that users write. */
export const isJob = (value: unknown): boolean =>
  isBranded(value) || isHandlerSource(value) || (isFunction(value) && !isAnyClass(value))

/** Finds the job that a module exports: its default export, or its only export made by defineJob or extending Job. */
export function jobIn(module: Readonly<Record<string, unknown>>, source: string): unknown {
  const main = unwrap(module.default)
  if (isJob(main)) return main
  const named = Object.entries(module).filter(([, value]) => isBranded(value))
  if (main === undefined && named.length === 1) return named[0]?.[1]
  throw broken(
    `${source} exports no job: ${found(
      main,
      named.map(([name]) => name),
      Object.keys(module),
    )}`,
  )
}

/** What a compiler to CommonJS exports as default arrives inside another one. */
function unwrap(value: unknown): unknown {
  return isObject(value) && value.__esModule === true && 'default' in value ? value.default : value
}

function found(main: unknown, branded: readonly string[], names: readonly string[]): string {
  if (isAnyClass(main)) return 'its default export is a class that does not extend Job'
  if (main !== undefined) return `its default export is ${main === null ? 'null' : `a value of type ${typeof main}`}`
  if (branded.length > 1) return `it has several (${branded.join(', ')}) and none of them is the default export`
  return names.length === 0 ? 'it exports nothing' : `it exports only ${names.slice(0, 10).join(', ')}`
}

/**
 * Makes a handler of a job in any form.
 *
 * source: how messages name it. root: the folder that paths of another layer's handler start from.
 * Throws MODULE_BROKEN where the job is incomplete or its terms are wrong.
 */
export function handlerOf(job: unknown, source: string, root: string): Handler {
  if (isHandlerSource(job)) return job[handlerBrand](root)
  if (isDefinition(job)) return ofDefinition(job, source)
  if (isJobClass(job)) return ofClass(job, source)
  if (isJob(job)) return ofFunction(job as JobFunction, source)
  throw broken(`${source} is no job: a job is made by defineJob, extends Job, or is a function`)
}

function ofDefinition(job: JobDefinition, source: string): Handler {
  if (!isFunction(job.handle)) throw broken(`${source} has no handle()`)
  refuseGenerators(job, source)
  return {
    terms: termsIn(job, source),
    hasSchema: job.schema !== undefined,
    check: checker(job.schema, source),
    run: async (payload, context) => ended(await job.handle(payload, context)),
    failed: isFunction(job.failed) ? async (error, context, payload) => job.failed?.(error, context, payload) : null,
    toPayload: null,
  }
}

function ofFunction(job: JobFunction, source: string): Handler {
  refuseGenerators({ 'the handler': job }, source)
  return {
    terms: termsIn(job, source),
    hasSchema: false,
    check: checker(undefined, source),
    run: async (payload, context) => ended(await job(payload as never, context)),
    failed: null,
    toPayload: null,
  }
}

function ofClass(job: Class, source: string): Handler {
  const { handle, failed } = job.prototype as Partial<Job>
  if (!isFunction(handle)) throw broken(`${source} has no method handle()`)
  refuseGenerators({ handle, failed }, source)
  const rebuild = (payload: unknown, context: JobContext): Job =>
    withContext(job.fromPayload?.(payload) ?? instanceOf(job, payload), context)
  // Members of a payload become properties, and one with the name of a method must not stand in for it.
  const methodsOf = (instance: Job): Pick<Job, 'handle' | 'failed'> =>
    job.fromPayload === undefined ? (job.prototype as Job) : instance
  return {
    terms: termsIn(job, source),
    hasSchema: job.schema !== undefined || job.fromPayload === undefined,
    check: job.fromPayload === undefined ? objectChecker(job.schema, source) : checker(job.schema, source),
    run: async (payload, context) => {
      const instance = rebuild(payload, context)
      return ended(await methodsOf(instance).handle.call(instance))
    },
    failed: isFunction(failed)
      ? async (error, context, payload) => {
          const instance = rebuild(payload, context)
          return methodsOf(instance).failed?.call(instance, error)
        }
      : null,
    toPayload: (instance) => {
      const { toPayload } = instance as Partial<Job>
      return isFunction(toPayload) ? toPayload.call(instance as Job) : ownProperties(instance)
    },
  }
}

/** Throws MODULE_BROKEN for a handler whose body would never run. */
function refuseGenerators(
  job: { readonly handle?: unknown; readonly failed?: unknown; readonly 'the handler'?: unknown },
  source: string,
): void {
  for (const name of ['handle', 'failed', 'the handler'] as const)
    if (isGeneratorFunction(job[name]))
      throw broken(
        `${name === 'the handler' ? name : `${name}()`} of ${source} is a generator: calling it runs nothing`,
        'write it without the *, as a plain or an async function',
      )
}

/** What a handler returned, where that can be its end: a generator has run nothing yet, and nobody would go on with it. */
function ended(result: unknown): unknown {
  if (isGenerator(result)) throw new TypeError('the handler returned a generator, of which nothing has run')
  return result
}

/** Defined, never assigned: assigning a member named __proto__ would change the prototype. */
function instanceOf(job: Class, payload: unknown): Job {
  return Object.create(job.prototype as object, Object.getOwnPropertyDescriptors(payload as object)) as Job
}

function withContext(instance: Job, context: JobContext): Job {
  return Object.defineProperty(instance, 'context', {
    value: context,
    enumerable: false,
    configurable: true,
    writable: true,
  })
}

const ownProperties = (instance: object): unknown =>
  Object.fromEntries(Object.entries(instance).filter(([key]) => key !== 'context'))

function checker(schema: StandardSchema | undefined, source: string): Handler['check'] {
  if (schema === undefined) return (payload) => ({ ok: true, value: payload })
  if (!isFunction(schema['~standard']?.validate))
    throw broken(
      `the schema of ${source} is not a Standard Schema`,
      'use zod, valibot, arktype or another library that implements it',
    )
  return (payload) => validate(schema, payload)
}

/** Waits only for a schema that answers with a promise. */
function validate(schema: StandardSchema, payload: unknown): Checked | Promise<Checked> {
  try {
    const result = schema['~standard'].validate(payload)
    return isThenable(result) ? Promise.resolve(result).then(verdictOf).catch(threw) : verdictOf(result)
  } catch (error) {
    return threw(error)
  }
}

const isThenable = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  isObject(value) && isFunction((value as Record<PropertyKey, unknown>).then)

function verdictOf(result: SchemaResult<unknown>): Checked {
  return result.issues === undefined
    ? { ok: true, value: result.value }
    : { ok: false, issues: result.issues.slice(0, mostIssues).map(issueText) }
}

const threw = (error: unknown): Checked => ({
  ok: false,
  issues: [`the schema threw ${oneLine(describeError(error).message)}`],
})

/** The properties of an instance come from an object and from nothing else. */
function objectChecker(schema: StandardSchema | undefined, source: string): Handler['check'] {
  if (schema === undefined) return requireObject
  const check = checker(schema, source)
  const narrow = (checked: Checked): Checked => (checked.ok ? requireObject(checked.value) : checked)
  return (payload) => {
    const checked = check(payload)
    return checked instanceof Promise ? checked.then(narrow) : narrow(checked)
  }
}

const requireObject = (value: unknown): Checked =>
  isObject(value) && !Array.isArray(value)
    ? { ok: true, value }
    : { ok: false, issues: ['must be an object: its members are the properties of a job class'] }

const mostIssues = 10

function issueText({ message, path = [] }: SchemaIssue): string {
  const steps = path.map((step) => String(typeof step === 'object' ? step.key : step))
  return oneLine(steps.length === 0 ? message : `${steps.join('.')}: ${message}`)
}

function termsIn(job: object, source: string): Terms {
  try {
    return parseTerms(job, '')
  } catch (error) {
    throw isKhepriError(error) ? broken(`${source}: ${error.message}`, 'correct it, then: khepri jobs') : error
  }
}

const broken = (message: string, fix = 'export default defineJob({ … })'): KhepriError =>
  new KhepriError('MODULE_BROKEN', message, { fix })
