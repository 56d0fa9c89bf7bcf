import { type Dropped, EventStream } from './event-stream.ts'
import type { FailReason, JobId } from './store/store.ts'

/** What every event about one job carries. */
export interface JobFacts {
  readonly id: JobId
  readonly job: string
  readonly queue: string
  /** 1 on the first run. */
  readonly attempt: number
  readonly tries: number
}

/** What every event about a schedule carries. */
interface ScheduleFacts {
  readonly schedule: string
}

/** An error as events and records carry it: cleaned, cut, without anything that could throw when printed. */
export interface ErrorFacts {
  readonly type: string
  readonly message: string
  readonly stack: string | null
}

/** Lifecycle events of the kernel. Durations in milliseconds. Payloads are never part of an event. */
export interface Events {
  'worker.started': { readonly worker: string; readonly queues: string; readonly concurrency: number }
  'worker.draining': { readonly worker: string; readonly reason: DrainReason; readonly running: number }
  'worker.aborting': { readonly worker: string; readonly running: number }
  'worker.stopped': WorkerReport
  'store.lost': { readonly message: string }
  'store.back': { readonly outageMs: number }
  /**
   * Committed by a dispatch of this installation in this process; nobody hears it elsewhere. Not said of duplicates, nor
   * inside a transaction of the caller's, whose commit khepri does not see.
   */
  'job.enqueued': { readonly id: JobId; readonly job: string; readonly queue: string }
  'job.started': JobFacts & { readonly waitMs: number }
  'job.done': JobFacts & { readonly ms: number; readonly waitMs: number }
  'job.retry': JobFacts & { readonly ms: number; readonly delayMs: number; readonly error: ErrorFacts }
  'job.failed': JobFacts & { readonly ms: number; readonly reason: FailReason; readonly error: ErrorFacts }
  'job.released': JobFacts & {
    readonly ms: number
    readonly delayMs: number | null
    readonly why: 'asked' | 'interrupted' | 'module'
  }
  /** Somebody cancelled it while it ran; it is not tried again and its failed() hook does not run. */
  'job.cancelled': JobFacts & { readonly ms: number }
  /** The fence refused: somebody else holds the job by now. */
  'job.lost': JobFacts & { readonly ms: number }
  /** The handler ignored its signal past the grace; its slot stays busy until it returns. */
  'job.stuck': JobFacts & { readonly ms: number }
  'job.log': JobFacts & { readonly text: string }
  /** The failed() hook threw or ran out of time; the job's fate is not changed by it. */
  'hook.failed': JobFacts & { readonly error: ErrorFacts }
  /** A job module cannot be imported; its jobs go back and this process reserves that name no more. */
  'module.broken': { readonly job: string; readonly source: string; readonly message: string }
  /** An error was thrown after its job had ended. */
  'error.late': JobFacts & { readonly error: ErrorFacts }
  /** Jobs that have run for minutes without ending, every few minutes: nothing is wrong with that, but somebody may wonder. */
  'worker.busy': { readonly worker: string; readonly jobs: readonly (JobFacts & { readonly ms: number })[] }
  /** The event loop was blocked for so long that jobs passed their timeout and its grace; they were settled by the beat thread. */
  'worker.blocked': { readonly worker: string; readonly jobs: readonly JobId[] }
  /** Jobs wait whose envelopes only a newer khepri can read; said once. */
  'envelopes.newer': { readonly worker: string }
  /** Rows that the database refuses to change, or that never run for what stands in their columns; each is named once. */
  'rows.bad': { readonly jobs: readonly JobId[] }
  /** A slot of a schedule has led to a job. missed: slots before it that nobody ran. */
  'schedule.fired': ScheduleFacts & {
    readonly slot: number
    readonly id: JobId
    readonly job: string
    readonly queue: string
    readonly missed: number
  }
  /** Nobody looked in time at so many slots up to the one named; so many runs make up for them. */
  'schedule.misfired': ScheduleFacts & { readonly slot: number; readonly missed: number; readonly runs: number }
  /** The run before it waits or runs: this slot has none. */
  'schedule.skipped': ScheduleFacts & { readonly slot: number }
  /** The run before it waits or runs: this one begins when that has ended. */
  'schedule.waiting': ScheduleFacts & { readonly slot: number }
  /** Its slots cannot be taken; said once for each reason, and tried again. */
  'schedule.failed': ScheduleFacts & { readonly error: ErrorFacts }
  /** A process that began later defines it otherwise, or not at all: it is left to that one; said once. */
  'schedule.outdated': ScheduleFacts
  'workers.dead': { readonly count: number; readonly freed: number }
}

/** Why a worker stops. */
export type DrainReason =
  | 'signal'
  | 'asked'
  | 'restart'
  | 'once'
  | 'empty'
  | 'max-jobs'
  | 'max-time'
  | 'max-memory'
  | 'output'
  | 'parent'
  | 'uncaught'
  | 'stuck'
  | 'modules'

/** What a worker did between start and stop. */
export interface WorkerReport {
  readonly worker: string
  readonly reason: DrainReason
  readonly done: number
  readonly retried: number
  readonly failed: number
  readonly released: number
  readonly cancelled: number
  readonly lost: number
  /** Jobs given back although their handlers were still running. */
  readonly abandoned: number
  /** Results that could not be written before the drain gave up. */
  readonly unwritten: readonly JobId[]
  readonly ms: number
}

/** Any event, as a stream hands it out: its name beside its facts, as a line of `khepri work --json` has them. */
export type AnyEvent = { readonly [Name in keyof Events]: { readonly event: Name } & Events[Name] }[keyof Events]

/** When a stream of events ends by itself. */
export interface StreamOptions {
  /** Ends the stream when it aborts. */
  readonly signal?: AbortSignal
}

type Listener<Name extends keyof Events> = (event: Events[Name]) => void
type AnyListener = <Name extends keyof Events>(name: Name, event: Events[Name]) => void

const ignore = (): void => {}

/** Hands events to listeners in the order they were added. A listener that throws, or rejects, disturbs nobody. */
export class EventBus {
  readonly #any = new Set<AnyListener>()
  readonly #streams = new Set<EventStream<AnyEvent>>()
  #isOver = false

  /** Tells whether anybody listens: to put together what nobody hears would be in vain. */
  get isHeard(): boolean {
    return this.#any.size > 0
  }

  /** Everything from now on, for `for await`. A slow reader slows nothing down: see `EventStream`. */
  stream({ signal }: StreamOptions = {}): AsyncIterableIterator<AnyEvent | Dropped, undefined> & AsyncDisposable {
    const stop = this.onAny((name, event) => stream.push({ event: name, ...event } as unknown as AnyEvent))
    const end = (): void => stream.end()
    const stream = new EventStream<AnyEvent>(() => {
      stop()
      signal?.removeEventListener('abort', end)
      this.#streams.delete(stream)
    })
    this.#streams.add(stream)
    signal?.addEventListener('abort', end)
    if (this.#isOver || signal?.aborted) stream.end()
    return stream
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<AnyEvent | Dropped, undefined> {
    return this.stream()
  }

  /** Ends every stream, those that are opened later too; listeners stay. */
  end(): void {
    this.#isOver = true
    for (const stream of this.#streams) stream.end()
  }

  /** Hears everything; the result stops it. */
  onAny(listener: AnyListener): () => void {
    this.#any.add(listener)
    return () => this.#any.delete(listener)
  }

  /** Hears one kind of event; the result stops it. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Name>): () => void {
    return this.onAny((heard, event) =>
      heard === (name as string) ? listener(event as unknown as Events[Name]) : undefined,
    )
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of this.#any) {
      try {
        const answer: unknown = listener(name, event)
        if (answer instanceof Promise) answer.catch(ignore)
      } catch {
        // A broken listener is its owner's problem; a job must not suffer from it.
      }
    }
  }
}
