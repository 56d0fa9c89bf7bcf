import type { AttemptRecord, FailReason, Held, JobId } from './store.ts'

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
}
