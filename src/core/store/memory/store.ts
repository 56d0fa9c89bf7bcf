import type { Admin } from '../admin.ts'
import type { StoreOptions } from '../options.ts'
import type {
  Beat,
  BeatAnswer,
  Enqueued,
  Exchanged,
  Filter,
  FollowUp,
  Held,
  JobId,
  NewJob,
  Recovery,
  Reservation,
  Round,
  Settlement,
  Store,
  Wish,
  WorkerId,
  WorkerProfile,
} from '../store.ts'
import { MemoryAdmin } from './admin.ts'
import { selectFor, takeable } from './selection.ts'
import { free, type LiveJob, MemoryState, reservationOf, type Verdict, type WorkerState } from './state.ts'

/** A dead worker's row stays so long: what a merely frozen one still commits is found and freed. */
const keepDeadMs = 86_400_000

/** What a memory store needs; with the `state` of another one it opens a second handle on the same jobs. */
export type MemoryOptions = Pick<StoreOptions, 'clock'> & { readonly state?: MemoryState }

/** Opens the reference store: obviously right rather than fast, and gone with the process. */
export function openMemoryStore(options: MemoryOptions): { store: Store; admin: Admin; state: MemoryState } {
  const state = options.state ?? new MemoryState(options.clock)
  return { store: new MemoryStore(state), admin: new MemoryAdmin(state), state }
}

class MemoryStore implements Store {
  readonly #state: MemoryState

  constructor(state: MemoryState) {
    this.#state = state
  }

  async enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    return jobs.map((job) => this.#state.insert(job))
  }

  async exchange(round: Round): Promise<Exchanged> {
    const refused = round.settle.filter((settlement) => !this.#settle(round.worker, settlement))
    const completed = completedOf(round.settle, refused)
    const ids = round.enqueue.map((job) => (completed.has(job.parent) ? this.#enqueueFollowUp(job) : null))
    this.#disown(round.worker, round.disown)
    const notStarted = round.start.filter((held) => !this.#start(round.worker, held))
    const reserved = round.reserve ? this.#reserve(round.worker, round.reserve) : []
    return { lost: [...refused, ...notStarted].map(({ id, fence }) => ({ id, fence })), ids, reserved }
  }

  /** The job, if this worker still holds it under this fence. */
  #held(worker: WorkerId, { id, fence }: Held): LiveJob | null {
    const job = this.#state.jobs.get(id)
    return job && job.worker === worker && job.fence === fence ? job : null
  }

  #settle(worker: WorkerId, settlement: Settlement): boolean {
    const job = this.#held(worker, settlement)
    if (!job) return false
    if (settlement.kind === 'complete') this.#complete(job, settlement.keep)
    if (settlement.kind === 'retry') this.#retry(job, settlement)
    if (settlement.kind === 'fail') this.#fail(job, settlement)
    if (settlement.kind === 'release') this.#release(job, settlement.delayMs)
    return true
  }

  #complete(job: LiveJob, keep: boolean): void {
    const { id, fence, queue, envelope } = job
    this.#state.jobs.delete(id)
    if (keep) this.#state.ended.set(id, { id, fence, job: job.job, queue, envelope, endedAt: this.#state.now() })
    else this.#state.attempts.delete(id)
  }

  #retry(job: LiveJob, { attempt, delayMs }: Settlement & { kind: 'retry' }): void {
    this.#state.record(job.id, attempt)
    job.failures += 1
    this.#release(job, delayMs)
  }

  #fail(job: LiveJob, { attempt, reason }: Settlement & { kind: 'fail' }): void {
    const { id, fence, queue, priority, crashes, uniqueKey, version, enqueuedAt, envelope } = job
    this.#state.record(id, attempt)
    this.#state.jobs.delete(id)
    this.#state.failed.set(id, {
      ...{ id, fence, job: job.job, queue, priority, crashes, uniqueKey, version, enqueuedAt, envelope, reason },
      failures: job.failures + 1,
      failedAt: this.#state.now(),
      errorType: attempt.errorType,
      error: attempt.message,
    })
  }

  #release(job: LiveJob, delayMs: number | null): void {
    free(job)
    if (delayMs !== null) job.availableAt = this.#state.now() + delayMs
  }

  #enqueueFollowUp(job: FollowUp): JobId | null {
    const { id, duplicate } = this.#state.insert(job)
    return duplicate ? null : id
  }

  #disown(worker: WorkerId, batches: readonly number[]): void {
    for (const job of this.#state.heldBy(worker)) if (job.batch !== null && batches.includes(job.batch)) free(job)
  }

  #start(worker: WorkerId, held: Held): boolean {
    const job = this.#held(worker, held)
    if (job) job.startedAt ??= this.#state.now()
    return job !== null
  }

  #reserve(worker: WorkerId, wish: Wish): Reservation[] {
    return selectFor(this.#state, wish).map((job, index) => {
      job.worker = worker
      job.batch = wish.batch
      job.fence += 1
      job.startedAt = index < wish.started ? this.#state.now() : null
      return reservationOf(job)
    })
  }

  async beat(beat: Beat): Promise<BeatAnswer> {
    if (beat.kind === 'joining') return this.#join(beat.worker, beat.profile)
    const worker = this.#state.workers.get(beat.worker)
    const known = worker !== undefined && worker.death === null
    if (beat.kind === 'leaving') this.#leave(beat.worker)
    else if (known) Object.assign(worker, { state: beat.kind, beatAt: this.#state.now() })
    return { known }
  }

  #join(id: WorkerId, profile: WorkerProfile): BeatAnswer {
    const now = this.#state.now()
    this.#state.workers.set(id, { id, profile, startedAt: now, beatAt: now, state: 'working', death: null })
    return { known: true }
  }

  #leave(id: WorkerId): void {
    for (const job of this.#state.heldBy(id)) free(job)
    this.#state.workers.delete(id)
  }

  async recover(observer: WorkerId): Promise<Recovery> {
    const now = this.#state.now()
    const workers = [...this.#state.workers.values()]
    const silent = workers.filter(({ id, death, beatAt, profile }) => {
      return death === null && id !== observer && beatAt + profile.leaseMs < now
    })
    for (const worker of silent) worker.death = { at: now, verdict: this.#judge(worker) }

    // Earlier deaths too: a worker that was only frozen may have reserved after it was declared dead.
    const freed = workers.reduce((count, worker) => count + this.#bury(worker, now), 0)
    return { dead: silent.map(({ id }) => id), freed }
  }

  #judge(worker: WorkerState): Verdict {
    const held = this.#state.heldBy(worker.id)
    if (worker.state === 'draining' || held.every((job) => job.startedAt === null)) return 'free'
    return held.length === 1 ? 'alone' : 'company'
  }

  /** Frees what a dead worker holds, as it was judged, and in the end forgets the worker; answers how many jobs. */
  #bury({ id, death }: WorkerState, now: number): number {
    if (death === null) return 0
    const held = this.#state.heldBy(id)
    for (const job of held) {
      if (death.verdict === 'alone') job.crashes += 1
      if (death.verdict === 'company' && job.startedAt !== null) job.suspect = true
      job.fence += 1
      free(job)
    }
    if (death.at + keepDeadMs < now) this.#state.workers.delete(id)
    return held.length
  }

  async nextDue(filter: Filter): Promise<number | null> {
    const waits = takeable(this.#state, filter).map((job) => job.availableAt - this.#state.now())
    return waits.length === 0 ? null : waits.reduce((least, wait) => Math.min(least, Math.max(0, wait)), Infinity)
  }

  async close(): Promise<void> {}
}

function completedOf(settle: readonly Settlement[], refused: readonly Settlement[]): ReadonlySet<JobId> {
  const accepted = settle.filter((settlement) => settlement.kind === 'complete' && !refused.includes(settlement))
  return new Set(accepted.map(({ id }) => id))
}
