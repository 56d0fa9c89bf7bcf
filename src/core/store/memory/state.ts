import type { Clock } from '../../clock.ts'
import { systemClock } from '../../clock.ts'
import { defaults } from '../../defaults.ts'
import type { FailedJob, PausedQueue } from '../admin.ts'
import { never, requireGivenOut } from '../continuations.ts'
import type { ScheduleSight, StoredSchedule } from '../schedule-store.ts'
import type {
  AttemptRecord,
  Due,
  Enqueued,
  Held,
  JobId,
  NewJob,
  OnParentFailure,
  Reservation,
  WorkerId,
  WorkerProfile,
} from '../store.ts'

/** A job that has not ended: what the `jobs` table holds in the other stores. */
export interface LiveJob {
  readonly id: JobId
  readonly job: string
  readonly queue: string
  readonly priority: number
  readonly uniqueKey: string | null
  readonly version: number
  readonly enqueuedAt: number
  readonly envelope: string
  availableAt: number
  fence: number
  /** Who holds it, under which reservation; null: nobody. */
  worker: WorkerId | null
  batch: number | null
  /** When its handler was started, by the holder's word. */
  startedAt: number | null
  failures: number
  crashes: number
  suspect: boolean
  /** A worker died that held it unstarted: it is not held in advance again. */
  survivor: boolean
  /** When somebody cancelled it while it was held; null: nobody did. */
  cancelledAt: number | null
}

/** A failed job and the version that `failed` does not show but a retry needs. */
export interface FailedRow extends FailedJob {
  readonly version: number
}

/** A cancelled job, or a completed one that is kept. */
export interface EndedRow extends Held {
  readonly state: 'done' | 'cancelled'
  readonly failures: number
  readonly job: string
  readonly queue: string
  readonly priority: number
  readonly version: number
  readonly enqueuedAt: number
  readonly endedAt: number
  readonly envelope: string
}

/** How a worker died, judged once. */
export interface Death {
  readonly at: number
  readonly verdict: 'alone' | 'company' | 'unstarted' | 'free'
  /** What it held at that moment, and under which fences. */
  readonly blamed: ReadonlyMap<JobId, number>
}

export interface WorkerState {
  readonly id: WorkerId
  readonly profile: WorkerProfile
  readonly startedAt: number
  state: 'working' | 'draining'
  beatAt: number
  death: Death | null
  /** Somebody has asked it to make room for a new process. */
  restart: boolean
}

/** A schedule with its slots that were taken, and the job of each. */
export type ScheduleState = { -readonly [Key in keyof StoredSchedule]: StoredSchedule[Key] } & {
  readonly slots: Map<number, JobId | null>
}

/** What a job waits for, and when it may run once it waits no more. */
export interface Wait {
  readonly parents: readonly JobId[]
  readonly onFailure: OnParentFailure
  readonly availableAt: number
  /** Parents that are gone and were not done. */
  readonly lost: Set<JobId>
}

/** What a memory store holds: one Map for each table of the other stores. Several stores may share it. */
export class MemoryState {
  readonly jobs = new Map<JobId, LiveJob>()
  readonly failed = new Map<JobId, FailedRow>()
  readonly ended = new Map<JobId, EndedRow>()
  readonly attempts = new Map<JobId, readonly AttemptRecord[]>()
  readonly workers = new Map<WorkerId, WorkerState>()
  /** By child; a child without an entry waits for nobody. */
  readonly waits = new Map<JobId, Wait>()
  /** Pauses by queue, those that are over among them. */
  readonly pauses = new Map<string, PausedQueue>()
  readonly schedules = new Map<string, ScheduleState>()
  lastTick: ScheduleSight['lastTick'] = null
  readonly #clock: Clock
  #lastId = 0

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  /** Adds a new job, unless a live one holds its unique key. */
  insert(job: NewJob): Enqueued {
    const holder = this.holderOf(job.uniqueKey)
    if (holder) return this.#meet(holder, job)
    const id = ++this.#lastId
    this.jobs.set(id, { ...untouched, ...this.#columnsOf(job), id, enqueuedAt: this.now(), fence: 0 })
    this.#wait(id, job)
    return { id, duplicate: false }
  }

  #wait(id: JobId, { after = [], onParentFailure = 'wait' }: NewJob): void {
    const job = this.jobs.get(id)
    if (!job || after.length === 0) return
    const { availableAt } = job
    this.waits.set(id, { parents: [...new Set(after)], onFailure: onParentFailure, availableAt, lost: new Set() })
    job.availableAt = never
  }

  /** Judges jobs by their parents: those that wait for nothing any more are due, or cancelled. Answers how many. */
  release(ids: Iterable<JobId>): number {
    const asked = [...ids]
    for (const id of asked) if (this.jobs.get(id)?.availableAt !== never) this.waits.delete(id)
    const judged = asked.map((id) => ({ id, verdict: this.#judge(id) })).filter(({ verdict }) => verdict !== 'wait')
    for (const { id, verdict } of judged) this.#stopWaiting(id, verdict)
    const cancelled = judged.filter(({ verdict }) => verdict === 'cancel').map(({ id }) => id)
    return judged.length + (cancelled.length === 0 ? 0 : this.release(this.childrenOf(cancelled)))
  }

  #judge(id: JobId): 'wait' | 'run' | 'cancel' {
    const wait = this.waits.get(id)
    if (!wait) return 'wait'
    const { parents, onFailure } = wait
    if (onFailure !== 'run' && parents.some((parent) => this.#isLost(parent, wait))) return 'cancel'
    const mayBeDone = (parent: JobId): boolean =>
      this.jobs.has(parent) || (onFailure === 'wait' && this.failed.has(parent))
    return parents.some(mayBeDone) ? 'wait' : 'run'
  }

  #isLost(parent: JobId, { onFailure, lost }: Wait): boolean {
    if (lost.has(parent) || this.ended.get(parent)?.state === 'cancelled') return true
    return onFailure === 'cancel' && this.failed.has(parent)
  }

  #stopWaiting(id: JobId, verdict: 'run' | 'cancel' | 'wait'): void {
    const job = this.jobs.get(id)
    const { availableAt = 0 } = this.waits.get(id) ?? {}
    this.waits.delete(id)
    if (!job) return
    if (verdict === 'cancel') this.end(job, 'cancelled')
    else job.availableAt = availableAt
  }

  /** Those that wait for any of these. */
  childrenOf(ids: readonly JobId[]): readonly JobId[] {
    return [...this.waits].filter(([, { parents }]) => ids.some((id) => parents.includes(id))).map(([child]) => child)
  }

  /** Remembers of jobs whose last trace goes away that they were not done. */
  lose(ids: readonly JobId[]): void {
    for (const { parents, lost } of this.waits.values()) for (const id of ids) if (parents.includes(id)) lost.add(id)
  }

  /** Throws NOT_FOUND for an id that was never given out. */
  requireGiven(ids: readonly JobId[]): void {
    requireGivenOut(ids, this.#lastId)
  }

  #meet(holder: LiveJob, job: NewJob): Enqueued {
    const kept: Enqueued = { id: holder.id, duplicate: true }
    if (job.onConflict !== 'replace') return kept
    const replaced = isReplaceable(holder)
    if (replaced) this.jobs.set(holder.id, { ...holder, ...this.#columnsOf(job) })
    return { ...kept, replaced }
  }

  #columnsOf({ job, queue, priority, uniqueKey, version, envelope, due }: NewJob) {
    return { job, queue, priority, uniqueKey, version, envelope, availableAt: this.#momentOf(due) }
  }

  #momentOf(due: Due): number {
    return 'at' in due ? due.at : this.now() + due.delayMs
  }

  /** The live job that carries the unique key, if any. */
  holderOf(uniqueKey: string | null): LiveJob | undefined {
    if (uniqueKey === null) return undefined
    return [...this.jobs.values()].find((job) => job.uniqueKey === uniqueKey)
  }

  heldBy(worker: WorkerId): LiveJob[] {
    return [...this.jobs.values()].filter((job) => job.worker === worker)
  }

  isPaused(queue: string): boolean {
    const pause = this.pauses.get(queue)
    return pause !== undefined && (pause.until === null || pause.until > this.now())
  }

  /** Ends a live job otherwise than by failing: its unique key is free. */
  end(job: LiveJob, state: EndedRow['state']): void {
    const { id, fence, queue, priority, failures, version, enqueuedAt, envelope } = job
    const facts = { id, fence, job: job.job, queue, priority, failures, version, enqueuedAt, envelope }
    this.jobs.delete(id)
    this.ended.set(id, { ...facts, state, endedAt: this.now() })
  }

  /** Adds a record to a job's history, of which the first and the last ones are kept. */
  record(id: JobId, attempt: AttemptRecord): void {
    const all = [...(this.attempts.get(id) ?? []), { ...attempt }]
    const first = all.slice(0, defaults.keptFirstAttempts)
    const last = all.slice(defaults.keptFirstAttempts).slice(-defaults.keptLastAttempts)
    this.attempts.set(id, [...first, ...last])
  }
}

/** Nobody runs it, and no run of it has counted. */
function isReplaceable({ worker, failures, crashes, suspect, cancelledAt }: LiveJob): boolean {
  return worker === null && failures === 0 && crashes === 0 && !suspect && cancelledAt === null
}

/** A job nobody holds and nothing has happened to. */
export const untouched = Object.freeze({
  worker: null,
  batch: null,
  startedAt: null,
  failures: 0,
  crashes: 0,
  suspect: false,
  survivor: false,
  cancelledAt: null,
})

/** Gives a job back, at no cost. */
export function free(job: LiveJob): void {
  job.worker = null
  job.batch = null
  job.startedAt = null
}

/** What a worker is told about a job that it now holds. */
export function reservationOf(job: LiveJob): Reservation {
  const { id, fence, queue, priority, availableAt, enqueuedAt, failures, crashes, suspect, envelope } = job
  return { id, fence, job: job.job, queue, priority, availableAt, enqueuedAt, failures, crashes, suspect, envelope }
}
