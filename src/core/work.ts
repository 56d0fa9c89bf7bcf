import type { Prepare } from './attempt.ts'
import type { Backoff } from './backoff.ts'
import type { StartBeat, Watch } from './beat.ts'
import type { Clock, Random } from './clock.ts'
import type { DrainReason, EventBus, JobFacts, WorkerReport } from './events.ts'
import type { Fate, ProcessTrace } from './process-identity.ts'
import type { QueueLimits } from './queue-limits.ts'
import type { Registry } from './registry.ts'
import type { OpenScope } from './scope.ts'
import type { BeforeFreeing, Filter, Store, WorkerProfile } from './store/store.ts'

/** What one worker does; complete, nothing here has a default. */
export interface WorkOptions {
  readonly queues: Filter['queues']
  readonly concurrency: number
  /** Jobs at once, by queue, where a queue has a limit of its own. */
  readonly queueLimits: QueueLimits
  /** The longest wait between two looks at an idle store. */
  readonly sleepMs: number
  /** Pause of a slot after each job. */
  readonly restMs: number
  readonly once: boolean
  readonly stopWhenEmpty: boolean
  readonly maxJobs: number | null
  readonly maxTimeMs: number | null
  /** How long a drain waits for running jobs before it gives them back; null: as long as they take. */
  readonly drainTimeoutMs: number | null
  /** For envelopes that bring none of their own. */
  readonly timeoutMs: number | null
  readonly tries: number
  readonly backoff: Backoff
  readonly retryAfterMs: number
  readonly unknownJobs: 'fail' | 'wait'
  /** What the largest payload may have: a row that was not dispatched may hold anything. */
  readonly maxPayloadBytes: number
  readonly keepDoneMs: number | null
  /** Ends the process when a job has passed its timeout and grace while the event loop was blocked; else there is an event. */
  readonly endsWhenBlocked: boolean
  readonly name: string
  readonly only: readonly string[] | null
  readonly except: readonly string[]
}

/** Everything a worker depends on, handed in so that the kernel runs under a simulator as it does in production. */
export interface WorkerParts {
  readonly store: Store
  readonly registry: Pick<Registry, 'get' | 'names'>
  readonly events: EventBus
  readonly clock: Clock
  readonly random: Random
  readonly startBeat: StartBeat
  readonly watch: Watch
  /** What is known of the process of a worker with our host name. */
  readonly fateOf: (neighbour: ProcessTrace) => Fate
  /** Where handlers may dispatch jobs with their completion. */
  readonly prepare?: Prepare
  /** Builds what each run of a job needs for itself. */
  readonly openScope?: OpenScope | null
  /** Where jobs may outlive their worker's process. */
  readonly beforeFreeing?: BeforeFreeing
  readonly profile: Omit<WorkerProfile, 'leaseMs' | 'name' | 'concurrency' | 'queues'>
}

/** A running worker, as its owner sees it. */
export interface WorkHandle {
  readonly worker: string
  readonly options: WorkOptions
  /** Reserves nothing new, waits for what runs, settles, stops. Only the first reason counts. */
  drain(reason?: DrainReason): void
  /** Drains, and aborts what runs: after 5 s the jobs that are left are given back at no cost. */
  abort(): void
  /** Reserves nothing until `resume`; without effect during a drain. */
  quiet(): void
  resume(): void
  /** Charges an error of the process to the job whose timer or promise threw it. False: it belongs to no job. */
  attribute(error: unknown): boolean
  counts(): WorkCounts
  /** The jobs whose handlers run now. */
  running(): readonly JobFacts[]
  /** Resolves when the store has answered the first reservation; never where the worker ends before. */
  readonly ready: Promise<void>
  /** Resolves when the loop that reserves has turned once more: soon, unless it hangs, or a question to the store does. */
  turned(): Promise<void>
  /** Rejects only where the worker cannot go on. */
  readonly finished: Promise<WorkerReport>
}

export interface WorkCounts {
  readonly running: number
  readonly done: number
  readonly retried: number
  readonly failed: number
  readonly released: number
  readonly cancelled: number
  readonly lost: number
}
