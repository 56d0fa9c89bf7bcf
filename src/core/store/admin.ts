import type { AttemptRecord, FailReason, Held, JobId, WorkerId } from './store.ts'

/** The cold side of a store: what operators ask and order. A worker never loads it. */
export interface Admin {
  /** Failed jobs, newest first, streamed in pages; at most `limit` (null: all). */
  failed(filter: FailedFilter, limit: number | null): AsyncIterable<FailedJob>
  /** How many failed jobs share an error message, a job name or a queue; most first. */
  failedGroups(filter: FailedFilter, by: 'error' | 'job' | 'queue'): Promise<readonly FailedGroup[]>
  findFailed(id: JobId): Promise<FailedJob | null>
  /** The recorded attempts of a job, oldest first, wherever the job is now. */
  attempts(id: JobId): Promise<readonly AttemptRecord[]>
  /** What the filter matches at this moment, oldest failure first. Acting on the answer never touches a later failure. */
  selectFailed(filter: FailedFilter): Promise<readonly Held[]>
  /** Puts failed jobs back on their queues in one transaction: attempt one, no crashes, same id and envelope, history kept. */
  retryFailed(jobs: readonly Held[], delayMs: number): Promise<Retried>
  /** Deletes failed jobs and their attempts in one transaction; answers which were still there. */
  deleteFailed(jobs: readonly Held[]): Promise<readonly JobId[]>
  /** The live jobs that the filter matches at this moment, by id. */
  selectLive(filter: LiveFilter): Promise<readonly JobId[]>
  /**
   * Cancels live jobs in one transaction: one that nobody holds ends at once, one that is held is marked for its worker.
   * A job that is named twice is answered once.
   */
  cancel(ids: readonly JobId[]): Promise<Cancelled>
  /** Where a job is now, alive or not; null: there is none of that id. */
  find(id: JobId): Promise<FoundJob | null>
  /** The states of many jobs; what is nowhere is left out. */
  states(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob['state']>>
  /** The jobs whose handlers have run for at least so many milliseconds, the longest first. */
  busy(leastMs: number): Promise<readonly BusyJob[]>
  /** Rows by queue; scans, so never on a hot path. */
  counts(): Promise<readonly QueueCounts[]>
  workers(): Promise<readonly WorkerRow[]>
  /** No worker reserves from the queue until it is resumed, or until `until` (epoch ms) has passed. */
  pause(queues: readonly string[], until: number | null, reason: string | null): Promise<void>
  resume(queues: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** All given parts must match; an empty filter matches every failed job. */
export interface FailedFilter {
  readonly ids?: readonly JobId[]
  readonly queue?: string
  readonly job?: string
  /** A part of the error message, upper and lower case alike. */
  readonly error?: string
  /** Failed at or after; epoch ms. */
  readonly since?: number
  /** Failed before; epoch ms. */
  readonly until?: number
}

export interface FailedJob extends Held {
  readonly job: string
  readonly queue: string
  readonly priority: number
  readonly failures: number
  readonly crashes: number
  readonly enqueuedAt: number
  readonly failedAt: number
  readonly reason: FailReason
  readonly errorType: string
  readonly error: string
  readonly uniqueKey: string | null
  readonly envelope: string
}

export interface FailedGroup {
  readonly key: string
  readonly count: number
  readonly latestAt: number
}

export interface Retried {
  readonly retried: readonly JobId[]
  /** Not failed (any more), or failed anew since it was selected. */
  readonly missing: readonly JobId[]
  /** Still failed: a live job holds its unique key. */
  readonly blocked: readonly { readonly id: JobId; readonly holder: JobId }[]
}

export type LiveState = 'scheduled' | 'ready' | 'running'

/** All given parts must match; an empty filter matches every live job. */
export interface LiveFilter {
  readonly ids?: readonly JobId[]
  readonly queue?: string
  readonly job?: string
  readonly state?: LiveState
}

/** Each in the order asked. */
export interface Cancelled {
  readonly cancelled: readonly JobId[]
  /** Their worker is told within a second; whatever it does then, they do not run again. */
  readonly marked: readonly JobId[]
  /** Not alive: `find` says what has become of them. */
  readonly missing: readonly JobId[]
}

export interface FoundJob {
  readonly id: JobId
  readonly job: string
  readonly queue: string
  readonly home: 'live' | 'failed' | 'ended'
  readonly state: LiveState | 'failed' | 'done' | 'cancelled'
  /** Who holds it, started or not. */
  readonly holder: Holder | null
  /** Marked as cancelled while it is still alive: its worker has yet to obey. */
  readonly isMarked: boolean
}

/** A worker that holds a job; the name is null where the worker's row is gone. */
export interface Holder {
  readonly worker: WorkerId
  readonly name: string | null
}

/** A job whose handler has been started and has not ended. */
export interface BusyJob {
  readonly id: JobId
  readonly job: string
  readonly queue: string
  readonly holder: Holder
  /** Since its handler was started, by the store's clock. */
  readonly runningMs: number
}

export interface QueueCounts {
  readonly queue: string
  readonly ready: number
  /** Their handlers have been started. */
  readonly running: number
  readonly scheduled: number
  readonly failed: number
  /** availableAt of the longest waiting ready job, epoch ms. */
  readonly oldestReadyAt: number | null
  readonly paused: boolean
}

export interface WorkerRow {
  readonly id: number
  readonly name: string
  readonly version: string
  readonly host: string
  readonly pid: number
  readonly queues: string
  readonly concurrency: number
  readonly state: 'working' | 'draining' | 'dead'
  readonly startedAt: number
  readonly beatAt: number
  readonly leaseMs: number
  readonly held: number
  /** Of these, the ones whose handlers have been started. */
  readonly running: number
}
