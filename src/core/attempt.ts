import { AsyncLocalStorage } from 'node:async_hooks'
import { format } from 'node:util'
import type { Backoff } from './backoff.ts'
import type { Clock, Timer } from './clock.ts'
import { inContext, type JobContextValues } from './context.ts'
import { defaults } from './defaults.ts'
import { type DispatchArguments, type NextCall, requireFollowUp } from './dispatch-call.ts'
import { type DurationInput, formatDuration } from './duration.ts'
import { decodeEnvelope, type OpenEnvelope, Poison } from './envelope.ts'
import { isKhepriError, KhepriError } from './errors.ts'
import type { EventBus, JobFacts } from './events.ts'
import type { Checked, Handler, RunContext } from './handler.ts'
import { release, releaseOf } from './job.ts'
import type { Outcome } from './policy.ts'
import type { RegisteredJob, Registry } from './registry.ts'
import { disposeOf, type OpenScope } from './scope.ts'
import type { NewJob, Reservation, WorkerId } from './store/store.ts'
import { describeError } from './text.ts'

/** What every attempt of one worker shares. */
export interface AttemptSetting {
  readonly registry: Pick<Registry, 'get'>
  readonly clock: Clock
  readonly events: EventBus
  /** For envelopes that bring none of their own. */
  readonly tries: number
  readonly backoff: Backoff
  readonly timeoutMs: number | null
  /** What the largest payload may have; a row that was not dispatched may hold anything. */
  readonly maxPayloadBytes: number
  /** Aborts when the worker waits for nothing any more, failed() hooks included. */
  readonly gaveUp: AbortSignal
  /** It is clear how an attempt ends; its handler may still run. */
  readonly onDecided: (attempt: Attempt, outcome: Outcome) => void
  /** No code of its handler's own call runs any more; how it ended is clear by now, and may have been for long. */
  readonly onReturned: (attempt: Attempt) => void
  /** Under which id the worker holds what it has just reserved; a new one after it was declared dead. */
  readonly workerId: () => WorkerId
  /** The handler ignored its signal past the grace. */
  readonly onStuck: () => void
  /** Turns the arguments of a dispatch into a row; undefined where nothing can be dispatched with a completion. */
  readonly prepare?: Prepare | undefined
  /** Builds what each run needs for itself. */
  readonly openScope?: OpenScope | null
  /** An attempt that is bound in time begins; the result is called when it ends. */
  readonly onBound: (attempt: Attempt, timeoutMs: number) => () => void
}

/** Turns the arguments of a dispatch into the row to enqueue. Throws or rejects with why it is refused. */
export type Prepare = (...call: DispatchArguments) => NewJob | Promise<NewJob>

/** The reason of a signal that aborted at the job's timeout. */
export class AttemptTimeout extends Error {
  override readonly name = 'AttemptTimeout'
}

/** The error of an attempt that ran past its timeout. */
export function timeoutError(timeoutMs: number): AttemptTimeout {
  return new AttemptTimeout(`timed out after ${formatDuration(timeoutMs)}`)
}

/** The reason of a signal that aborted because the worker is stopping. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

/** The reason of a signal that aborted because somebody cancelled the job. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled'
}

/** The reason of a signal that aborted because another worker may hold the job by now. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

type MaybePromise<T> = T | Promise<T>

const current = new AsyncLocalStorage<Attempt>()
const done: Outcome = { kind: 'done' }

/**
 * One run of one job: reads the envelope, finds the handler, checks the payload, runs it under its timeout.
 *
 * Two moments are told apart: `onDecided`, when it is clear how the attempt ended, and the end of `run()`, when user code
 * has really come back. A handler that ignores its signal past the grace is stuck: its outcome is decided, its slot is
 * not free.
 */
export class Attempt {
  readonly reservation: Reservation
  readonly worker: WorkerId
  /** Wall clock, epoch milliseconds. */
  readonly startedAt: number
  readonly #setting: AttemptSetting
  /** Made when somebody asks for its signal: most handlers never do. */
  #controller: AbortController | null = null
  #aborted: { readonly reason: unknown } | null = null
  readonly #startedMonotonic: number
  #outcome: Outcome | null = null
  #hasReturned = false
  #isStuck = false
  #endedMonotonic: number | null = null
  #envelope: OpenEnvelope | null = null
  #handler: Handler | null = null
  #payload: unknown
  #timer: Timer | null = null
  #graceTimer: Timer | null = null
  #unbind: (() => void) | null = null
  #output: string | null = null
  /** What its handler dispatches with its completion, in that order. */
  readonly #next: Promise<NewJob>[] = []
  #followUps: readonly NewJob[] = []

  constructor(reservation: Reservation, setting: AttemptSetting) {
    this.reservation = reservation
    this.worker = setting.workerId()
    this.#setting = setting
    this.startedAt = setting.clock.now()
    this.#startedMonotonic = setting.clock.monotonic()
  }

  /** The attempt whose asynchronous context is running now. */
  static current(): Attempt | undefined {
    return current.getStore()
  }

  get attempt(): number {
    return Math.max(0, this.reservation.failures) + 1
  }

  get tries(): number {
    return this.#envelope?.tries ?? this.#handler?.terms.tries ?? this.#setting.tries
  }

  get backoff(): Backoff {
    return this.#envelope?.backoff ?? this.#handler?.terms.backoff ?? this.#setting.backoff
  }

  get timeoutMs(): number | null {
    return this.#envelope?.timeoutMs ?? this.#handler?.terms.timeoutMs ?? this.#setting.timeoutMs
  }

  get facts(): JobFacts {
    const { id, job, queue } = this.reservation
    return { id, job, queue, attempt: this.attempt, tries: this.tries }
  }

  /** How long it has run, or ran, in milliseconds. */
  get ms(): number {
    return Math.round(this.elapsedMs)
  }

  /** The same, with its fractions. */
  get elapsedMs(): number {
    return (this.#endedMonotonic ?? this.#setting.clock.monotonic()) - this.#startedMonotonic
  }

  /** From the moment it was due to the start of this run. */
  get waitMs(): number {
    return Math.max(0, this.startedAt - this.reservation.availableAt)
  }

  /** Aborts when the handler should stop, with the reason. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  /** What the job wrote, where its handler has kept it. */
  get output(): string | null {
    return this.#output
  }

  /** It is clear how it ended, whether or not its handler has come back. */
  get isDecided(): boolean {
    return this.#outcome !== null
  }

  /** How it ended; null while that is not clear. */
  get outcome(): Outcome | null {
    return this.#outcome
  }

  /** No code of the handler's own call is running any more. */
  get hasReturned(): boolean {
    return this.#hasReturned
  }

  /** Its handler has ignored the signal past the grace and still runs. */
  get isStuck(): boolean {
    return this.#isStuck && !this.#hasReturned
  }

  keepOutput(output: string): void {
    this.#output = output
  }

  /** What commits together with its completion. */
  get followUps(): readonly NewJob[] {
    return this.#followUps
  }

  /** Checks a job that is to be dispatched with the completion. One that is refused fails the attempt. */
  dispatchNext(call: DispatchArguments): Promise<void> {
    const row = this.#prepareNext(call)
    this.#next.push(row)
    const checked = row.then(() => {})
    // Who does not wait for it hears of it by the attempt's failure.
    checked.catch(() => {})
    return checked
  }

  async #prepareNext(call: DispatchArguments): Promise<NewJob> {
    if (this.#hasReturned)
      throw new KhepriError('USAGE', `next() was called after ${this.reservation.job} had ended`, {
        fix: 'await what calls it, or use dispatch()',
      })
    const { prepare } = this.#setting
    if (!prepare) throw new KhepriError('USAGE', 'nothing can be dispatched with a completion here')
    const row = await prepare(...call)
    requireFollowUp(row)
    return row
  }

  /** Aborts the signal because the worker stops; after the grace the job is given back although its handler runs. */
  interrupt(): void {
    if (!this.isDecided) this.#abort(new Interrupted('the worker is stopping'), { kind: 'interrupted' })
  }

  /** Aborts the signal because somebody cancelled the job. A handler that returns all the same has done it. */
  cancel(): void {
    const error = new Cancelled('the job was cancelled')
    if (!this.isDecided) this.#abort(error, { kind: 'cancelled', error })
  }

  /** Aborts the signal because the job may run elsewhere; nothing of this attempt is written. */
  lose(): void {
    const outcome: Outcome = { kind: 'lost' }
    this.#end(outcome)
    this.#abort(new LeaseLost('another worker may hold this job by now'), outcome)
  }

  /** Its worker has stopped: whether its handler comes back in time is not told any more. */
  dismiss(): void {
    this.#graceTimer?.cancel()
  }

  /** Charges an error that a timer or promise of the handler's own threw. False: the attempt had ended before. */
  charge(error: unknown): boolean {
    if (this.isDecided) return false
    const outcome: Outcome = { kind: 'threw', error }
    this.#end(outcome)
    this.#abort(error, outcome)
    return true
  }

  /**
   * Does all of it, once; resolves when no code of the handler's own call is running any more. Never rejects.
   * Waits only for what takes time: most jobs have their module imported, and no schema.
   */
  async run(): Promise<void> {
    let outcome: Outcome
    try {
      const unreadable = this.#read()
      const prepared = this.#aborted ? this.#notStarted() : (unreadable ?? this.#prepare())
      const refusal = prepared instanceof Promise ? await prepared : prepared
      outcome = refusal ?? (this.#aborted ? this.#notStarted() : await this.#perform())
    } catch (error) {
      outcome = { kind: 'threw', error }
    }
    this.#finish(outcome)
  }

  /**
   * Calls the job's failed() hook, if it has one.
   * Bounded by the job's timeout or 30 s, through the signal and by not waiting longer. Rejects with what the hook throws.
   */
  async runFailedHook(error: unknown): Promise<void> {
    if (!this.#envelope || this.#handler?.failed === null) return
    const controller = new AbortController()
    const context = new Context(this, this.#envelope, () => controller.signal, this.#setting.events)
    const call = inContext(this.#envelope, () => current.run(this, () => this.#callFailedHook(error, context)))
    await this.#bounded(call, this.timeoutMs ?? defaults.hookMs, controller)
  }

  async #callFailedHook(error: unknown, context: Context): Promise<void> {
    // A job over its crash limit has failed without being loaded.
    const refusal = this.#handler ? null : await this.#load(this.#setting.registry.get(this.reservation.job))
    if (!refusal) await this.#handler?.failed?.(error, context, this.#payload)
  }

  /** Why its handler was never called. */
  #notStarted(): Outcome {
    const reason = this.#aborted?.reason
    return reason instanceof Cancelled ? { kind: 'cancelled', error: reason } : { kind: 'interrupted' }
  }

  /** Also of a job that goes back unstarted: the terms that people are told are its own. */
  #read(): Outcome | null {
    const { job, envelope } = this.reservation
    try {
      requireSize(envelope, this.#setting.maxPayloadBytes)
      this.#envelope = decodeEnvelope(envelope, job)
      return null
    } catch (error) {
      return { kind: 'refused', reason: 'poison', error }
    }
  }

  #prepare(): MaybePromise<Outcome | null> {
    // Before the module is imported: that may be what kills its workers.
    const killed = killedBy(this.reservation, (this.#envelope as OpenEnvelope).maxCrashes)
    const registered = this.#setting.registry.get(this.reservation.job)
    return registered && killed ? { kind: 'refused', reason: 'crashes', error: killed } : this.#load(registered)
  }

  /** Finds the handler and checks the payload. */
  #load(registered: RegisteredJob | undefined): MaybePromise<Outcome | null> {
    if (!registered)
      return {
        kind: 'refused',
        reason: 'unknown',
        error: new UnknownJob(`no handler is registered for ${JSON.stringify(this.reservation.job)}`),
      }
    return registered.ready ? this.#check(registered.ready) : this.#import(registered)
  }

  async #import(registered: RegisteredJob): Promise<Outcome | null> {
    let handler: Handler
    try {
      handler = await registered.handler()
    } catch (error) {
      return { kind: 'unloadable', source: registered.source, message: brokenMessage(registered.source, error) }
    }
    return this.#check(handler)
  }

  #check(handler: Handler): MaybePromise<Outcome | null> {
    const checked = handler.check(this.#envelope?.payload)
    return checked instanceof Promise
      ? checked.then((verdict) => this.#accept(handler, verdict))
      : this.#accept(handler, checked)
  }

  #accept(handler: Handler, checked: Checked): Outcome | null {
    if (!checked.ok)
      return {
        kind: 'refused',
        reason: 'poison',
        error: new Poison(`the payload is refused by the job's schema: ${checked.issues.join('; ')}`),
      }
    this.#handler = handler
    this.#payload = checked.value
    return null
  }

  async #perform(): Promise<Outcome> {
    const { timeoutMs } = this
    const { events } = this.#setting
    const envelope = this.#envelope as OpenEnvelope
    const context = new Context(this, envelope, () => this.signal, events)
    if (timeoutMs !== null) this.#bind(timeoutMs)
    if (events.isHeard) events.emit('job.started', { ...this.facts, waitMs: this.waitMs })
    try {
      await inContext(envelope, () => current.run(this, () => this.#runIn(context)))
      if (this.#next.length > 0) this.#followUps = await Promise.all(this.#next)
    } catch (error) {
      return this.#timeoutOutcome() ?? this.#outcomeOf(error)
    }
    return this.#timeoutOutcome() ?? done
  }

  #runIn(context: Context): Promise<unknown> {
    const { openScope = null } = this.#setting
    const handler = this.#handler as Handler
    return openScope === null ? handler.run(this.#payload, context) : this.#runScoped(openScope, handler, context)
  }

  /** What the scope hook builds lasts as long as the handler. */
  async #runScoped(openScope: OpenScope, handler: Handler, context: Context): Promise<void> {
    const scope = await openScope(context)
    context.scope = scope
    try {
      await handler.run(this.#payload, context)
    } finally {
      await disposeOf(scope)
    }
  }

  #outcomeOf(error: unknown): Outcome {
    if (this.#aborted?.reason instanceof Cancelled) return { kind: 'cancelled', error }
    const delay = releaseOf(error)
    if (delay !== undefined) return { kind: 'released', delay }
    if (this.#aborted?.reason instanceof Interrupted) return { kind: 'interrupted' }
    return { kind: 'threw', error }
  }

  /** An attempt that passed its timeout has failed, whatever its handler made of the signal. */
  #timeoutOutcome(): Outcome | null {
    const reason = this.#aborted?.reason
    return reason instanceof AttemptTimeout ? { kind: 'threw', error: reason } : null
  }

  #bind(timeoutMs: number): void {
    this.#timer = this.#setting.clock.after(timeoutMs, () => this.#timeOut(timeoutMs))
    this.#unbind = this.#setting.onBound(this, timeoutMs)
  }

  #timeOut(timeoutMs: number): void {
    const error = timeoutError(timeoutMs)
    this.#abort(error, { kind: 'threw', error })
  }

  /** Aborts the signal; a handler that has not come back by the end of the grace is given up on. */
  #abort(reason: unknown, outcome: Outcome): void {
    if (this.#hasReturned || this.#aborted) return
    this.#graceTimer = this.#setting.clock.after(this.#handler?.graceMs ?? defaults.graceMs, () =>
      this.#giveUp(outcome),
    )
    this.#aborted = { reason }
    this.#controller?.abort(reason)
  }

  #giveUp(outcome: Outcome): void {
    if (this.#hasReturned) return
    this.#isStuck = true
    this.#setting.events.emit('job.stuck', { ...this.facts, ms: this.ms })
    this.#end(outcome)
    this.#setting.onStuck()
  }

  /** No code of the handler's own call runs any more, and this is how it ended, unless that was clear before. */
  #finish(outcome: Outcome): void {
    this.#hasReturned = true
    this.#graceTimer?.cancel()
    this.#end(outcome)
    this.#setting.onReturned(this)
  }

  #end(outcome: Outcome): void {
    if (this.#outcome !== null) return
    this.#outcome = outcome
    this.#endedMonotonic = this.#setting.clock.monotonic()
    this.#timer?.cancel()
    this.#unbind?.()
    this.#setting.onDecided(this, outcome)
  }

  async #bounded(call: Promise<void>, boundMs: number, controller: AbortController): Promise<void> {
    const { clock, gaveUp } = this.#setting
    const { promise: limit, reject } = Promise.withResolvers<never>()
    const expire = (reason: Error): void => {
      controller.abort(reason)
      reject(reason)
    }
    const timer = clock.after(boundMs, () =>
      expire(new AttemptTimeout(`failed() did not return within ${formatDuration(boundMs)}`)),
    )
    const interrupt = (): void => expire(new Interrupted('the worker stopped before failed() returned'))
    gaveUp.addEventListener('abort', interrupt)
    if (gaveUp.aborted) interrupt()
    try {
      await Promise.race([call, limit])
    } finally {
      timer.cancel()
      gaveUp.removeEventListener('abort', interrupt)
    }
  }
}

/** Refuses an envelope, before anybody parses it, that no dispatch under this limit can have written. */
function requireSize(envelope: string, maxPayloadBytes: number): void {
  const most = maxPayloadBytes + defaults.envelopeRoomBytes
  // A character is at most three bytes of UTF-8, so short texts need no counting.
  const bytes = envelope.length * 3 > most ? Buffer.byteLength(envelope) : 0
  if (bytes > most)
    throw new Poison(
      `the envelope has ${bytes.toLocaleString('en')} bytes, maxPayload allows ${maxPayloadBytes.toLocaleString('en')} for its payload`,
    )
}

function brokenMessage(source: string, error: unknown): string {
  if (isKhepriError(error) && error.code === 'MODULE_BROKEN') return error.message
  return `${source} cannot be loaded: ${describeError(error).message}`
}

/** Why a job may not run again: it killed too many workers, or any at all where none is allowed. */
function killedBy({ crashes, suspect }: Reservation, maxCrashes: number): WorkerKilled | null {
  if (crashes > 0 && crashes >= maxCrashes)
    return new WorkerKilled(`killed its worker ${crashes} ${crashes === 1 ? 'time' : 'times'}`)
  return suspect && maxCrashes === 0
    ? new WorkerKilled('was running when its worker died, and its maxCrashes is 0')
    : null
}

/** A job whose name no handler is registered under. */
class UnknownJob extends Error {
  override readonly name = 'UnknownJob'
}

/** A job that took its workers down too often. */
class WorkerKilled extends Error {
  override readonly name = 'WorkerKilled'
}

/** What the handler sees. `log` and `release` can be taken apart from it. */
class Context implements RunContext {
  readonly id: number
  readonly job: string
  readonly queue: string
  readonly attempt: number
  readonly tries: number
  readonly crashes: number
  readonly dispatchedAt: number
  readonly availableAt: number
  readonly unique: string | null
  readonly release: (delay?: DurationInput) => never = release
  scope: unknown
  readonly #attempt: Attempt
  readonly #envelope: OpenEnvelope
  readonly #signal: () => AbortSignal
  readonly #events: EventBus

  constructor(attempt: Attempt, envelope: OpenEnvelope, signal: () => AbortSignal, events: EventBus) {
    const { id, job, queue, crashes, availableAt } = attempt.reservation
    this.id = id
    this.job = job
    this.queue = queue
    this.attempt = attempt.attempt
    this.tries = attempt.tries
    this.crashes = crashes
    this.dispatchedAt = envelope.dispatchedAt
    this.availableAt = availableAt
    this.unique = envelope.unique
    this.#signal = signal
    this.#attempt = attempt
    this.#envelope = envelope
    this.#events = events
  }

  get next(): NextCall {
    return (...call: DispatchArguments) => this.#attempt.dispatchNext(call)
  }

  get log(): (...values: readonly unknown[]) => void {
    return (...values) => this.#events.emit('job.log', { ...this.#attempt.facts, text: format(...values) })
  }

  get signal(): AbortSignal {
    return this.#signal()
  }

  get payloadText(): string {
    return this.#envelope.payloadText
  }

  get schedule(): string | null {
    return this.#envelope.schedule?.name ?? null
  }

  get scheduledFor(): number | null {
    return this.#envelope.schedule?.scheduledFor ?? null
  }

  get firedAt(): number | null {
    return this.#envelope.schedule?.firedAt ?? null
  }

  get missed(): number {
    return this.#envelope.schedule?.missed ?? 0
  }

  get context(): JobContextValues {
    return (this.#envelope.context ?? {}) as JobContextValues
  }

  get traceparent(): string | null {
    return this.#envelope.trace
  }

  get fence(): number {
    return this.#attempt.reservation.fence
  }

  get worker(): WorkerId {
    return this.#attempt.worker
  }

  keepOutput(output: string): void {
    this.#attempt.keepOutput(output)
  }
}
