import { AsyncLocalStorage } from 'node:async_hooks'
import { defaults } from './defaults.ts'
import { KhepriError } from './errors.ts'
import type { Json } from './job.ts'
import { jsonTextOf } from './json-value.ts'
import { shown } from './text.ts'

/** What an application hands on to its jobs: a tenant, a user, a request. JSON. */
export type JobContextValues = Readonly<Record<string, Json>>

/** What is current where a job is dispatched, and again where its handler runs. */
export interface Current {
  readonly context: Readonly<Record<string, unknown>> | null
  /** A W3C traceparent. */
  readonly trace: string | null
}

const nothing: Current = Object.freeze({ context: null, trace: null })

/** One for the process, whichever copies of khepri are in it: a global one may run jobs that import a local one. */
const storage = sharedStorage()

function sharedStorage(): AsyncLocalStorage<Current> {
  const shared = globalThis as Record<symbol, unknown>
  const brand = Symbol.for('khepri.context')
  shared[brand] ??= new AsyncLocalStorage<Current>()
  return shared[brand] as AsyncLocalStorage<Current>
}

/** What is current here; both parts are null where nobody gave any. */
export function currentContext(): Current {
  return storage.getStore() ?? nothing
}

/**
 * Calls a function in which this is current: jobs that it dispatches, however deep, carry it and so do theirs.
 *
 * context is laid over what is current here, member by member; traceparent replaces it.
 * Throws DATA_INVALID, or PAYLOAD_REFUSED for what JSON cannot hold.
 */
export function withContext<T>(given: { context?: JobContextValues; traceparent?: string }, run: () => T): T {
  const { context, trace } = currentContext()
  return storage.run(
    {
      context: laidOver(context, given.context === undefined ? undefined : checkContext(given.context)),
      trace: given.traceparent === undefined ? trace : checkTraceparent(given.traceparent),
    },
    run,
  )
}

/** Calls a function in which exactly this is current, and nothing of what is current here. */
export function inContext<T>(current: Current, run: () => T): T {
  const isSame = current.context === null && current.trace === null && storage.getStore() === undefined
  return isSame ? run() : storage.run(current, run)
}

/** The members of one context over those of another; null: nobody gave any. */
export function laidOver(
  inherited: Current['context'],
  given: Current['context'] | undefined,
): Readonly<Record<string, unknown>> | null {
  if (given === undefined) return inherited
  return given === null || inherited === null ? given : { ...inherited, ...given }
}

/** Checks what is to be handed on: an object that JSON holds, of at most 16 KiB; null: nothing, whatever is current. */
export function checkContext(value: unknown): Readonly<Record<string, unknown>> | null {
  if (value === null) return null
  if (typeof value !== 'object' || Array.isArray(value))
    throw new KhepriError('DATA_INVALID', `context must be an object, got ${shown(value)}`)
  const text = jsonTextOf(value)
  const bytes = Buffer.byteLength(text)
  if (bytes > defaults.maxContextBytes)
    throw new KhepriError(
      'DATA_INVALID',
      `context has ${bytes.toLocaleString('en')} bytes, at most ${defaults.maxContextBytes.toLocaleString('en')} may be handed on`,
      { fix: 'hand on an id, and look the rest up in the job' },
    )
  return JSON.parse(text) as Readonly<Record<string, unknown>>
}

const traceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** Checks a W3C traceparent. Throws DATA_INVALID. */
export function checkTraceparent(value: unknown): string {
  if (typeof value === 'string' && traceparent.test(value)) return value
  throw new KhepriError(
    'DATA_INVALID',
    `traceparent must look like "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", got ${shown(value)}`,
  )
}
