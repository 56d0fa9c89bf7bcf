import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import { currentContext, laidOver } from './context.ts'
import { defaults } from './defaults.ts'
import { decodeEnvelope, type Envelope, newJob, Poison, type ScheduledRun } from './envelope.ts'
import { KhepriError } from './errors.ts'
import type { Handler } from './handler.ts'
import { isDeeperThan } from './json-text.ts'
import type { RegisteredJob, Registry } from './registry.ts'
import type { Due, JobId, NewJob, OnConflict, OnParentFailure } from './store/store.ts'
import { checkName, type Terms } from './terms.ts'

/** One job as its dispatcher wants it. */
export interface DispatchRequest {
  readonly job: string
  /** Valid JSON; stored byte for byte. */
  readonly payloadText: string
  /** What the dispatcher says itself; outranks the definition's terms. */
  readonly terms: Terms
  /** null: now. */
  readonly due: Due | null
  readonly unique: string | null
  /** What becomes of it where a live job holds its unique key; that job is kept where it is not said. */
  readonly onConflict?: OnConflict
  /** The slot that it is for, where a schedule dispatches it. */
  readonly schedule?: ScheduledRun
  /** What it waits for, and what becomes of it where one of those is not done. */
  readonly after?: readonly JobId[]
  readonly onParentFailure?: OnParentFailure
  /** Laid over the current context; null: nothing is handed on. */
  readonly context?: Envelope['context']
  /** Instead of the current one. */
  readonly trace?: Envelope['trace']
}

export interface DispatcherParts {
  readonly registry: Pick<Registry, 'get' | 'unknown'>
  readonly config: Pick<Config, 'queue' | 'maxCrashes' | 'maxPayloadBytes'>
  readonly clock: Clock
  /** Accepts names that the registry does not know. */
  readonly allowUnknown: boolean
}

/** What a job's definition contributes to each dispatch. */
interface Definition {
  readonly terms: Terms
  /** null where the job has no schema, so that nothing needs to be parsed. */
  readonly check: Handler['check'] | null
}

/**
 * Turns requests into rows: looks the job up, checks payload and schema, and captures the terms the job will keep.
 *
 * Terms that neither the request nor the definition states are left open, for the worker's own defaults.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #definitions = new Map<string, Definition>()

  constructor(parts: DispatcherParts) {
    this.#parts = parts
  }

  /**
   * The row to enqueue. A promise where a module has to be imported first, and where the schema answers with one.
   * Throws or rejects with JOB_UNKNOWN, PAYLOAD_REFUSED, DATA_INVALID, or MODULE_BROKEN.
   */
  prepare(request: DispatchRequest): NewJob | Promise<NewJob> {
    this.#checkSize(request)
    const definition = this.#defineNow(request.job)
    return definition
      ? this.#row(request, definition)
      : this.#define(request.job).then((loaded) => this.#row(request, loaded))
  }

  /**
   * The row to enqueue, for a caller that cannot wait.
   *
   * Throws as `prepare` does, and USAGE for a job whose module was not imported yet or whose schema answers with a promise.
   */
  prepareNow(request: DispatchRequest): NewJob {
    this.#checkSize(request)
    const definition = this.#defineNow(request.job)
    if (!definition) throw this.#notReady(request.job)
    const row = this.#row(request, definition)
    if (!(row instanceof Promise)) return row
    row.catch(() => {})
    throw new KhepriError(
      'USAGE',
      `the schema of ${request.job} answers with a promise, and dispatchSync cannot wait`,
      {
        fix: 'give the job a schema that answers at once',
      },
    )
  }

  #notReady(job: string): KhepriError {
    if (!this.#parts.registry.get(job)) return this.#parts.registry.unknown(job)
    return new KhepriError('USAGE', `the module of ${job} was not imported yet, and dispatchSync cannot wait for it`, {
      fix: 'put the job itself into jobs instead of its path',
    })
  }

  /** The definition of a job for which nothing has to be imported; null for others. */
  #defineNow(job: string): Definition | null {
    const known = this.#definitions.get(job)
    if (known) return known
    const registered = this.#parts.registry.get(job)
    const definition = registered ? definitionNow(registered) : null
    if (definition) this.#definitions.set(checkName(job, 'job'), definition)
    return definition
  }

  async #define(job: string): Promise<Definition> {
    const registered = this.#parts.registry.get(job)
    if (!registered && !this.#parts.allowUnknown) throw this.#parts.registry.unknown(job)
    const definition = registered ? await definitionOf(registered) : { terms: {}, check: null }
    checkName(job, 'job')
    this.#definitions.set(job, definition)
    return definition
  }

  #checkSize({ job, payloadText }: DispatchRequest): void {
    const { maxPayloadBytes } = this.#parts.config
    // A character is at most three bytes of UTF-8, so short texts need no counting.
    const bytes = payloadText.length * 3 > maxPayloadBytes ? Buffer.byteLength(payloadText) : 0
    if (bytes > maxPayloadBytes)
      throw new KhepriError(
        'PAYLOAD_REFUSED',
        `the payload of ${job} is ${bytes.toLocaleString('en')} bytes, maxPayload allows ${maxPayloadBytes.toLocaleString('en')}`,
        {
          fix: 'store the data elsewhere and dispatch a reference, or raise maxPayload in the config',
        },
      )
    if (isDeeperThan(payloadText, defaults.maxDepth))
      throw new KhepriError(
        'PAYLOAD_REFUSED',
        `the payload of ${job} is nested more than ${defaults.maxDepth} levels deep`,
      )
    if (!payloadText.isWellFormed())
      throw new KhepriError('PAYLOAD_REFUSED', `the payload of ${job} is not valid Unicode`)
  }

  #row(request: DispatchRequest, definition: Definition): NewJob | Promise<NewJob> {
    const verdict = definition.check?.(JSON.parse(request.payloadText))
    if (verdict instanceof Promise) return verdict.then((checked) => this.#accept(request, definition, checked))
    return this.#accept(request, definition, verdict)
  }

  #accept(
    request: DispatchRequest,
    definition: Definition,
    checked: Awaited<ReturnType<Handler['check']>> | undefined,
  ): NewJob {
    const { job, payloadText, unique } = request
    if (checked && !checked.ok)
      throw new KhepriError(
        'PAYLOAD_REFUSED',
        `the payload of ${job} is refused by its schema: ${checked.issues.join('; ')}`,
      )
    const { queue, priority, tries, backoff, timeoutMs, maxCrashes } = { ...definition.terms, ...request.terms }
    const current = currentContext()
    const envelope = {
      job,
      payloadText,
      tries: tries ?? null,
      backoff: backoff ?? null,
      timeoutMs: timeoutMs ?? null,
      maxCrashes: maxCrashes ?? this.#parts.config.maxCrashes,
      dispatchedAt: this.#parts.clock.now(),
      unique,
      schedule: request.schedule ?? null,
      context: laidOver(current.context, request.context),
      trace: request.trace === undefined ? current.trace : request.trace,
    }
    return newJob(envelope, {
      queue: queue ?? this.#parts.config.queue,
      priority: priority ?? defaults.priority,
      due: request.due ?? { delayMs: 0 },
      ...(request.onConflict && { onConflict: request.onConflict }),
      ...(request.after && { after: request.after }),
      ...(request.onParentFailure && { onParentFailure: request.onParentFailure }),
    })
  }
}

function definitionNow(registered: RegisteredJob): Definition | null {
  const terms = registered.termsNow()
  if (terms === null || !registered.mayHaveSchema) return terms && { terms, check: null }
  const handler = registered.handlerNow()
  return handler && { terms, check: checkOf(handler) }
}

async function definitionOf(registered: RegisteredJob): Promise<Definition> {
  const terms = await registered.terms()
  if (!registered.mayHaveSchema) return { terms, check: null }
  const handler = await registered.handler()
  return { terms, check: checkOf(handler) }
}

function checkOf(handler: Handler): Definition['check'] {
  return handler.hasSchema ? (payload) => handler.check(payload) : null
}

/**
 * The row for an envelope that is complete already, as `show --envelope` prints it.
 * Throws DATA_INVALID where the text is no envelope of a version this khepri writes.
 */
export function rawJob(envelope: string, place: Pick<NewJob, 'queue' | 'priority' | 'due'>): NewJob {
  try {
    const { job } = JSON.parse(envelope) as { job: string }
    return newJob(decodeEnvelope(envelope, job), place)
  } catch (error) {
    const reason = error instanceof Poison ? error.message : 'the envelope is not a JSON object'
    throw new KhepriError('DATA_INVALID', reason, { cause: error })
  }
}
