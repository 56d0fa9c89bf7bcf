import type { AttemptRecord, FailReason, Held, JobId, OnParentFailure, WorkerId } from './store.ts'

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
  /** Jobs in every state, the newest id first, streamed in pages; at most `limit` (null: all). Each is met at most once. */
  jobs(filter: JobFilter, limit: number | null): AsyncIterable<StoredJob>
  /** Everything that is kept of one job, wherever it is; null: there is none of that id. */
  stored(id: JobId): Promise<WholeJob | null>
  /** How many free jobs on its own queue come before a job that waits; 0 for one that does not wait. Counts, so never on a hot path. */
  ahead(id: JobId): Promise<number>
  /** What a live job waits for, the earliest first; nothing where it waits for nobody. */
  parents(id: JobId): Promise<readonly Parent[]>
  /** The states of many jobs; what is nowhere is left out. */
  states(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob['state']>>
  /** The jobs whose handlers have run for at least so many milliseconds, the longest first. */
  busy(leastMs: number): Promise<readonly BusyJob[]>
  /** How many jobs `prune` would delete. */
  countAged(aged: Aged): Promise<number>
  /** Deletes at most `limit` jobs, the oldest first, with their attempts, in one transaction; answers how many. 0: none is left. */
  prune(aged: Aged, limit: number): Promise<number>
  /** Rows by queue; scans, so never on a hot path. */
  counts(): Promise<readonly QueueCounts[]>
  workers(): Promise<readonly WorkerRow[]>
  /** Asks every living worker to drain and end; answers which. One that joins later is not asked. */
  restart(): Promise<readonly WorkerId[]>
  /** The queues that are paused at this moment, by name. */
  pauses(): Promise<readonly PausedQueue[]>
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

/** A job that failed for good, until it is retried or flushed. */
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

export type JobState = FoundJob['state']

/** All given parts must match; an empty filter matches every job. */
export interface JobFilter {
  readonly queue?: string
  readonly job?: string
  readonly state?: JobState
}

/** A job as listings show it, wherever it is. Moments are epoch ms; null: it does not apply to this state. */
export interface StoredJob extends Held {
  readonly job: string
  readonly queue: string
  readonly state: JobState
  readonly priority: number
  readonly failures: number
  /** 0 where its home does not keep them. */
  readonly crashes: number
  readonly isSuspect: boolean
  readonly uniqueKey: string | null
  readonly enqueuedAt: number
  /** Of a live job that does not wait for others. */
  readonly availableAt: number | null
  /** When its handler was started, as long as it runs. */
  readonly startedAt: number | null
  /** When somebody cancelled it, as long as it is alive. */
  readonly cancelledAt: number | null
  /** When it failed for good, was done or was cancelled. */
  readonly endedAt: number | null
  /** Who holds it, started or not, and until when that worker counts as alive; null: its row is gone. */
  readonly holder: (Holder & { readonly leaseUntil: number | null }) | null
  /** Of a job that failed for good. */
  readonly failure: { readonly reason: FailReason; readonly errorType: string; readonly error: string } | null
}

/** A job with what a listing has no room for. */
export interface WholeJob extends StoredJob {
  readonly version: number
  readonly envelope: string
}

/** Jobs that ended in one way at least so long ago, by the store's clock. */
export interface Aged {
  readonly state: 'done' | 'failed' | 'cancelled'
  readonly leastAgeMs: number
}

/** A job that another one waits for. */
export interface Parent {
  readonly id: JobId
  readonly onFailure: OnParentFailure
  /** null: nothing is kept of it; then it was done, unless it `isLost`, and whoever recovers next releases its child. */
  readonly state: JobState | null
  /** It is gone and was not done. */
  readonly isLost: boolean
}

/** A queue from which nothing is reserved. */
export interface PausedQueue {
  readonly queue: string
  readonly pausedAt: number
  /** Epoch ms; null: until it is resumed. */
  readonly until: number | null
  readonly reason: string | null
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
