import type {
  Admin,
  Aged,
  BusyJob,
  Cancelled,
  FailedFilter,
  FailedGroup,
  FailedJob,
  FoundJob,
  Holder,
  JobFilter,
  LiveFilter,
  LiveState,
  Parent,
  PausedQueue,
  QueueCounts,
  Retried,
  StoredJob,
  WholeJob,
  WorkerRow,
} from '../admin.ts'
import { never } from '../continuations.ts'
import type { AttemptRecord, Held, JobId, WorkerId } from '../store.ts'
import { type EndedRow, type FailedRow, type LiveJob, type MemoryState, untouched } from './state.ts'

/** The cold side of the memory store. */
export class MemoryAdmin implements Admin {
  readonly #state: MemoryState

  constructor(state: MemoryState) {
    this.#state = state
  }

  async *failed(filter: FailedFilter, limit: number | null): AsyncGenerator<FailedJob> {
    const newestFirst = this.#matching(filter).reverse()
    for (const row of newestFirst.slice(0, limit ?? newestFirst.length)) yield shown(row)
  }

  async failedGroups(filter: FailedFilter, by: 'error' | 'job' | 'queue'): Promise<readonly FailedGroup[]> {
    const groups = Map.groupBy(this.#matching(filter), (row) => row[by])
    return [...groups]
      .map(([key, rows]) => ({ key, count: rows.length, latestAt: Math.max(...rows.map((row) => row.failedAt)) }))
      .sort((a, b) => b.count - a.count || compare(a.key, b.key))
  }

  async findFailed(id: JobId): Promise<FailedJob | null> {
    const row = this.#state.failed.get(id)
    return row ? shown(row) : null
  }

  async attempts(id: JobId): Promise<readonly AttemptRecord[]> {
    return (this.#state.attempts.get(id) ?? []).map((attempt) => ({ ...attempt }))
  }

  async selectFailed(filter: FailedFilter): Promise<readonly Held[]> {
    return this.#matching(filter).map(({ id, fence }) => ({ id, fence }))
  }

  /** Oldest failure first. */
  #matching(filter: FailedFilter): FailedRow[] {
    return [...this.#state.failed.values()]
      .filter((row) => matches(row, filter))
      .sort((a, b) => a.failedAt - b.failedAt || a.id - b.id)
  }

  async retryFailed(jobs: readonly Held[], delayMs: number): Promise<Retried> {
    const retried: JobId[] = []
    const missing: JobId[] = []
    const blocked: { id: JobId; holder: JobId }[] = []
    for (const held of jobs) {
      const row = this.#stillFailed(held)
      const holder = row && this.#state.holderOf(row.uniqueKey)
      if (!row) missing.push(held.id)
      else if (holder) blocked.push({ id: held.id, holder: holder.id })
      else retried.push(this.#revive(row, delayMs))
    }
    return { retried, missing, blocked }
  }

  #stillFailed({ id, fence }: Held): FailedRow | null {
    const row = this.#state.failed.get(id)
    return row?.fence === fence ? row : null
  }

  #revive(row: FailedRow, delayMs: number): JobId {
    const { id, fence, job, queue, priority, uniqueKey, version, enqueuedAt, envelope } = row
    const facts = { id, fence, job, queue, priority, uniqueKey, version, enqueuedAt, envelope }
    this.#state.failed.delete(id)
    this.#state.jobs.set(id, { ...untouched, ...facts, availableAt: this.#state.now() + delayMs })
    return id
  }

  async deleteFailed(jobs: readonly Held[]): Promise<readonly JobId[]> {
    const found = jobs.filter((held) => this.#stillFailed(held)).map(({ id }) => id)
    this.#state.lose(found)
    for (const id of found) {
      this.#state.failed.delete(id)
      this.#state.attempts.delete(id)
    }
    return found
  }

  async selectLive({ ids, queue, job, state }: LiveFilter): Promise<readonly JobId[]> {
    return [...this.#state.jobs.values()]
      .filter(
        (live) =>
          (ids === undefined || ids.includes(live.id)) &&
          (queue === undefined || live.queue === queue) &&
          (job === undefined || live.job === job) &&
          (state === undefined || this.#stateOf(live) === state),
      )
      .map(({ id }) => id)
      .sort((a, b) => a - b)
  }

  #stateOf({ startedAt, availableAt }: LiveJob): LiveState {
    if (startedAt !== null) return 'running'
    return availableAt <= this.#state.now() ? 'ready' : 'scheduled'
  }

  async cancel(ids: readonly JobId[]): Promise<Cancelled> {
    const cancelled: JobId[] = []
    const marked: JobId[] = []
    const missing: JobId[] = []
    for (const id of new Set(ids)) {
      const job = this.#state.jobs.get(id)
      if (!job) missing.push(id)
      else if (job.worker === null) cancelled.push(id)
      else marked.push(id)
      if (job) this.#cancel(job)
    }
    return { cancelled, marked, missing }
  }

  #cancel(job: LiveJob): void {
    if (job.worker === null) this.#state.end(job, 'cancelled')
    else job.cancelledAt ??= this.#state.now()
  }

  async find(id: JobId): Promise<FoundJob | null> {
    const live = this.#state.jobs.get(id)
    if (live) return this.#foundLive(live)
    const failed = this.#state.failed.get(id)
    if (failed) return found(failed, 'failed', 'failed')
    const ended = this.#state.ended.get(id)
    return ended ? found(ended, 'ended', ended.state) : null
  }

  async states(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, FoundJob['state']>> {
    const jobs = await Promise.all(ids.map((id) => this.find(id)))
    return new Map(jobs.flatMap((job) => (job === null ? [] : [[job.id, job.state]])))
  }

  #foundLive(live: LiveJob): FoundJob {
    const { worker, cancelledAt } = live
    const holder = worker === null ? null : this.#holderOf(worker)
    return { ...found(live, 'live', this.#stateOf(live)), holder, isMarked: cancelledAt !== null }
  }

  #holderOf(worker: WorkerId): Holder {
    return { worker, name: this.#state.workers.get(worker)?.profile.name ?? null }
  }

  async *jobs({ queue, job, state }: JobFilter, limit: number | null): AsyncGenerator<StoredJob> {
    const matching = this.#all().filter(
      (each) =>
        (queue === undefined || each.queue === queue) &&
        (job === undefined || each.job === job) &&
        (state === undefined || each.state === state),
    )
    for (const { version: _, envelope: __, ...shown } of matching.slice(0, limit ?? matching.length)) yield shown
  }

  async stored(id: JobId): Promise<WholeJob | null> {
    return this.#all().find((job) => job.id === id) ?? null
  }

  /** Every job, the newest first. */
  #all(): WholeJob[] {
    const { jobs, failed, ended } = this.#state
    return [
      ...[...jobs.values()].map((job) => this.#storedLive(job)),
      ...[...failed.values()].map(storedFailed),
      ...[...ended.values()].map(storedEnded),
    ].sort((a, b) => b.id - a.id)
  }

  #storedLive(live: LiveJob): WholeJob {
    const { worker, batch: _, suspect, survivor: __, ...job } = live
    const profile = worker === null ? undefined : this.#state.workers.get(worker)
    const leaseUntil = profile === undefined ? null : profile.beatAt + profile.profile.leaseMs
    const holder = worker === null ? null : { ...this.#holderOf(worker), leaseUntil }
    const availableAt = job.availableAt === never ? null : job.availableAt
    return { ...job, availableAt, state: this.#stateOf(live), isSuspect: suspect, endedAt: null, holder, failure: null }
  }

  async ahead(id: JobId): Promise<number> {
    const job = this.#state.jobs.get(id)
    if (!job || job.worker !== null) return 0
    const now = this.#state.now()
    return [...this.#state.jobs.values()].filter(
      (other) =>
        other.queue === job.queue &&
        other.worker === null &&
        other.cancelledAt === null &&
        other.availableAt <= now &&
        (other.priority - job.priority || other.availableAt - job.availableAt || other.id - job.id) < 0,
    ).length
  }

  async busy(leastMs: number): Promise<readonly BusyJob[]> {
    return [...this.#state.jobs.values()]
      .flatMap(({ id, job, queue, worker, startedAt }) => {
        if (worker === null || startedAt === null) return []
        return { id, job, queue, holder: this.#holderOf(worker), runningMs: this.#state.now() - startedAt }
      })
      .filter(({ runningMs }) => runningMs >= leastMs)
      .sort((a, b) => b.runningMs - a.runningMs || a.id - b.id)
  }

  async parents(id: JobId): Promise<readonly Parent[]> {
    const wait = this.#state.waits.get(id)
    if (!wait || this.#state.jobs.get(id)?.availableAt !== never) return []
    const { parents, onFailure, lost } = wait
    const states = await this.states(parents)
    return parents
      .toSorted((a, b) => a - b)
      .map((parent) => ({ id: parent, onFailure, state: states.get(parent) ?? null, isLost: lost.has(parent) }))
  }

  async countAged(aged: Aged): Promise<number> {
    return this.#aged(aged).length
  }

  async prune(aged: Aged, limit: number): Promise<number> {
    const oldest = this.#aged(aged).slice(0, limit)
    if (aged.state !== 'done') this.#state.lose(oldest.map(({ id }) => id))
    for (const { id } of oldest) {
      this.#state.failed.delete(id)
      this.#state.ended.delete(id)
      this.#state.attempts.delete(id)
    }
    return oldest.length
  }

  /** The oldest first. */
  #aged({ state, leastAgeMs }: Aged): WholeJob[] {
    const before = this.#state.now() - leastAgeMs
    const endOf = ({ endedAt }: WholeJob): number => endedAt ?? Number.POSITIVE_INFINITY
    return this.#all()
      .filter((job) => job.state === state && endOf(job) <= before)
      .sort((a, b) => endOf(a) - endOf(b) || a.id - b.id)
  }

  async counts(): Promise<readonly QueueCounts[]> {
    const live = Map.groupBy(this.#state.jobs.values(), (job) => job.queue)
    const failed = Map.groupBy(this.#state.failed.values(), (row) => row.queue)
    const paused = [...this.#state.pauses.keys()].filter((queue) => this.#state.isPaused(queue))
    const queues = new Set([...live.keys(), ...failed.keys(), ...paused])
    return [...queues]
      .sort(compare)
      .map((queue) => this.#countsOf(queue, live.get(queue) ?? [], failed.get(queue)?.length ?? 0))
  }

  #countsOf(queue: string, live: readonly LiveJob[], failed: number): QueueCounts {
    const waiting = live.filter((job) => job.startedAt === null)
    const ready = waiting.filter((job) => job.availableAt <= this.#state.now())
    return {
      queue,
      ready: ready.length,
      running: live.length - waiting.length,
      scheduled: waiting.length - ready.length,
      failed,
      oldestReadyAt: ready.length === 0 ? null : Math.min(...ready.map((job) => job.availableAt)),
      paused: this.#state.isPaused(queue),
    }
  }

  async workers(): Promise<readonly WorkerRow[]> {
    return [...this.#state.workers.values()].map(({ id, profile, startedAt, beatAt, state, death }) => {
      const { name, version, host, pid, queues, concurrency, leaseMs } = profile
      const jobs = this.#state.heldBy(id)
      const running = jobs.filter((job) => job.startedAt !== null).length
      const facts = { id, name, version, host, pid, queues, concurrency, leaseMs, startedAt, beatAt }
      return { ...facts, held: jobs.length, running, state: death === null ? state : 'dead' }
    })
  }

  async restart(): Promise<readonly WorkerId[]> {
    const living = [...this.#state.workers.values()].filter(({ death }) => death === null)
    for (const worker of living) worker.restart = true
    return living.sort((a, b) => a.startedAt - b.startedAt || a.id - b.id).map(({ id }) => id)
  }

  async pauses(): Promise<readonly PausedQueue[]> {
    return [...this.#state.pauses.values()]
      .filter(({ queue }) => this.#state.isPaused(queue))
      .sort((a, b) => compare(a.queue, b.queue))
  }

  async pause(queues: readonly string[], until: number | null, reason: string | null): Promise<void> {
    const pausedAt = this.#state.now()
    for (const queue of queues) this.#state.pauses.set(queue, { queue, pausedAt, until, reason })
  }

  async resume(queues: readonly string[]): Promise<void> {
    for (const queue of queues) this.#state.pauses.delete(queue)
  }

  async close(): Promise<void> {}
}

function matches(row: FailedRow, { ids, queue, job, error, since, until }: FailedFilter): boolean {
  return (
    (ids === undefined || ids.includes(row.id)) &&
    (queue === undefined || row.queue === queue) &&
    (job === undefined || row.job === job) &&
    (error === undefined || row.error.toLowerCase().includes(error.toLowerCase())) &&
    (since === undefined || row.failedAt >= since) &&
    (until === undefined || row.failedAt < until)
  )
}

function shown({ version: _, ...job }: FailedRow): FailedJob {
  return job
}

/** What only a live job has. */
const notAlive = { isSuspect: false, availableAt: null, startedAt: null, cancelledAt: null, holder: null } as const

function storedFailed({ failedAt, reason, errorType, error, ...job }: FailedRow): WholeJob {
  return { ...job, ...notAlive, state: 'failed', endedAt: failedAt, failure: { reason, errorType, error } }
}

function storedEnded(row: EndedRow): WholeJob {
  return { ...row, ...notAlive, crashes: 0, uniqueKey: null, failure: null }
}

function found(
  { id, job, queue }: LiveJob | FailedRow | EndedRow,
  home: FoundJob['home'],
  state: FoundJob['state'],
): FoundJob {
  return { id, job, queue, home, state, holder: null, isMarked: false }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
