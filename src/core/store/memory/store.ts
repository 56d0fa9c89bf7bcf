import { defaults } from '../../defaults.ts'
import type { Admin } from '../admin.ts'
import { leavesQueue, never } from '../continuations.ts'
import type { StoreOptions } from '../options.ts'
import type {
  AttemptRecord,
  Beat,
  BeatAnswer,
  BeforeFreeing,
  Enqueued,
  Exchanged,
  Filter,
  FollowUp,
  Held,
  JobId,
  Look,
  Neighbour,
  NewJob,
  Observation,
  Recovery,
  Reservation,
  Round,
  Settlement,
  Sight,
  Store,
  Wish,
  WorkerId,
  WorkerProfile,
} from '../store.ts'
import { keyHeld } from '../unique-keys.ts'
import { MemoryAdmin } from './admin.ts'
import { selectFor, takeable, wantedOfAnyVersion } from './selection.ts'
import { type Death, free, type LiveJob, MemoryState, reservationOf, type WorkerState } from './state.ts'

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
    this.#state.requireGiven(jobs.flatMap(({ after = [] }) => after))
    this.#refuseConflicts(jobs)
    const enqueued = jobs.map((job) => this.#state.insert(job))
    // All of them are there before any is judged: one that is cancelled at once has held its key for the others.
    this.#state.release(enqueued.flatMap(({ id, duplicate }) => (duplicate ? [] : [id])))
    return enqueued
  }

  /** Before anything is written: all or none. An earlier job of the same call counts. */
  #refuseConflicts(jobs: readonly NewJob[]): void {
    for (const [index, job] of jobs.entries()) {
      if (job.onConflict !== 'error' || job.uniqueKey === null) continue
      const holder = this.#state.holderOf(job.uniqueKey)
      if (holder) throw keyHeld(job, holder.id)
      if (jobs.slice(0, index).some(({ uniqueKey }) => uniqueKey === job.uniqueKey)) throw keyHeld(job, null)
    }
  }

  async exchange(round: Round): Promise<Exchanged> {
    const fates = round.settle.map((settlement) => ({ settlement, fate: this.#settle(round.worker, settlement) }))
    const refused = fates.filter(({ fate }) => fate === null).map(({ settlement }) => settlement)
    const completed = new Set(fates.filter(({ fate }) => fate === 'complete').map(({ settlement }) => settlement.id))
    const ids = round.enqueue.map((job) => (completed.has(job.parent) ? this.#enqueueFollowUp(job) : null))
    this.#state.release(
      this.#state.childrenOf(fates.filter(({ fate }) => fate !== null && leavesQueue(fate)).map(idOf)),
    )
    this.#disown(round.worker, round.disown)
    const notStarted = round.start.filter((held) => !this.#start(round.worker, held))
    return {
      lost: [...refused, ...notStarted].map(({ id, fence }) => ({ id, fence })),
      ids,
      cancelled: fates.filter(({ settlement, fate }) => fate === 'cancel' && settlement.kind !== fate).map(idOf),
      reserved: round.reserve ? this.#reserve(round.worker, round.reserve) : [],
    }
  }

  /** The job, if this worker still holds it under this fence. */
  #held(worker: WorkerId, { id, fence }: Held): LiveJob | null {
    const job = this.#state.jobs.get(id)
    return job && job.worker === worker && job.fence === fence ? job : null
  }

  /** Answers how the attempt ended; null: it was not this worker's to end. */
  #settle(worker: WorkerId, asked: Settlement): Settlement['kind'] | null {
    const job = this.#held(worker, asked)
    if (!job) return null
    const settlement = job.cancelledAt === null ? asked : asCancelled(asked)
    if (settlement.kind === 'complete') this.#complete(job, settlement.keep)
    if (settlement.kind === 'retry') this.#retry(job, settlement)
    if (settlement.kind === 'fail') this.#fail(job, settlement)
    if (settlement.kind === 'cancel') this.#cancel(job, settlement.attempt)
    if (settlement.kind === 'release') this.#release(job, settlement.delayMs)
    return settlement.kind
  }

  #complete(job: LiveJob, keep: boolean): void {
    if (!keep) this.#state.attempts.delete(job.id)
    if (keep) this.#state.end(job, 'done')
    else this.#state.jobs.delete(job.id)
  }

  #retry(job: LiveJob, { attempt, delayMs }: Settlement & { kind: 'retry' }): void {
    this.#recordFailure(job, attempt)
    this.#release(job, delayMs)
  }

  #fail(job: LiveJob, { attempt, reason }: Settlement & { kind: 'fail' }): void {
    this.#recordFailure(job, attempt)
    const { id, fence, queue, priority, failures, crashes, uniqueKey, version, enqueuedAt, envelope } = job
    this.#state.jobs.delete(id)
    this.#state.failed.set(id, {
      ...{
        id,
        fence,
        job: job.job,
        queue,
        priority,
        failures,
        crashes,
        uniqueKey,
        version,
        enqueuedAt,
        envelope,
        reason,
      },
      failedAt: this.#state.now(),
      errorType: attempt.errorType,
      error: attempt.message,
    })
  }

  #cancel(job: LiveJob, attempt: AttemptRecord | null): void {
    if (attempt) this.#recordFailure(job, attempt)
    this.#state.end(job, 'cancelled')
  }

  #recordFailure(job: LiveJob, attempt: AttemptRecord): void {
    this.#state.record(job.id, attempt)
    job.failures += 1
  }

  /** Whoever comes back after its own run has not killed its worker. */
  #release(job: LiveJob, delayMs: number | null): void {
    free(job)
    if (delayMs === null) return
    job.suspect = job.survivor = false
    job.availableAt = this.#state.now() + delayMs
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
    this.#state.workers.set(id, {
      id,
      profile,
      startedAt: now,
      beatAt: now,
      state: 'working',
      death: null,
      restart: false,
    })
    return { known: true }
  }

  #leave(id: WorkerId): void {
    for (const job of this.#state.heldBy(id)) free(job)
    this.#state.workers.delete(id)
  }

  async look({ worker, host, held, filter }: Look): Promise<Sight> {
    const now = this.#state.now()
    const wanted = { ...filter, suspects: true }
    const waits = takeable(this.#state, wanted)
      .filter(({ suspect }) => suspect)
      .map((job) => now - job.availableAt)
    const longestMs = waits.reduce((longest, wait) => Math.max(longest, wait), Number.NEGATIVE_INFINITY)
    return {
      known: this.#state.workers.get(worker)?.death === null,
      restart: this.#state.workers.get(worker)?.restart === true,
      cancelled: held.filter((id) => typeof this.#state.jobs.get(id)?.cancelledAt === 'number'),
      neighbours: this.#neighbours(worker, host),
      suspectWaitMs: longestMs < 0 ? null : longestMs,
      newer: wantedOfAnyVersion(this.#state, wanted).some(
        ({ version, availableAt }) => version > filter.maxVersion && availableAt <= now,
      ),
      waiting: this.#state.waits.size > 0,
    }
  }

  #neighbours(observer: WorkerId, host: string): readonly Neighbour[] {
    return [...this.#state.workers.values()]
      .filter(({ id, death, profile }) => id !== observer && death === null && profile.host === host)
      .map(({ id, profile: { bootId, pidNamespace, pid, pidStart } }) => {
        return { worker: id, bootId, pidNamespace, pid, pidStart }
      })
  }

  async recover({ observer, gone, rebooted, silent }: Observation, beforeFreeing?: BeforeFreeing): Promise<Recovery> {
    const now = this.#state.now()
    const workers = [...this.#state.workers.values()]
    const isSilent = (worker: WorkerState | undefined): boolean =>
      worker !== undefined && worker.beatAt + worker.profile.leaseMs < now
    // Where the observer is silent too, it is the clock that has been set.
    const silenceCounts = silent && !isSilent(this.#state.workers.get(observer))
    const dead = workers.filter((worker) => {
      const isDead = gone.includes(worker.id) || (silenceCounts && isSilent(worker))
      return worker.death === null && worker.id !== observer && isDead
    })
    for (const worker of dead) worker.death = this.#judge(worker, rebooted.includes(worker.id))

    const buried = workers.filter(({ death }) => death !== null).map(({ id }) => id)
    if (beforeFreeing && buried.some((id) => this.#state.heldBy(id).length > 0)) await beforeFreeing(buried)
    // Earlier deaths too: a worker that was only frozen may have reserved after it was declared dead.
    const freed = workers.reduce((count, worker) => count + this.#bury(worker, now), 0)
    this.#adopt(observer)
    const cancelled = this.#endCancelled()
    const released = this.#state.release(this.#state.waits.keys())
    return { dead: dead.map(({ id }) => id), freed, cancelled, released, bad: [] }
  }

  /** Workers without a row get one that has beaten just now, so that silence frees what they hold, at no cost to it. */
  #adopt(observer: WorkerId): void {
    const leaseMs = this.#state.workers.get(observer)?.profile.leaseMs
    if (leaseMs === undefined) return
    for (const { worker } of this.#state.jobs.values())
      if (worker !== null && !this.#state.workers.has(worker))
        this.#state.workers.set(worker, this.#unknown(worker, leaseMs))
  }

  #unknown(id: WorkerId, leaseMs: number): WorkerState {
    const now = this.#state.now()
    const traces = { host: '', bootId: null, pidNamespace: null, pid: 0, pidStart: null }
    const profile = { name: 'unknown', version: '', queues: '', concurrency: 0, leaseMs, ...traces }
    return { id, profile, startedAt: now, beatAt: now, state: 'draining', death: null, restart: false }
  }

  #judge(worker: WorkerState, isRebooted: boolean): Death {
    const held = this.#state.heldBy(worker.id)
    const started = held.filter((job) => job.startedAt !== null)
    const at = this.#state.now()
    if (isRebooted || worker.state === 'draining') return { at, verdict: 'free', blamed: new Map() }
    const blamed = new Map(held.map(({ id, fence }) => [id, fence]))
    if (started.length === 0) return { at, verdict: 'unstarted', blamed }
    return { at, verdict: held.length === 1 ? 'alone' : 'company', blamed }
  }

  /** Frees what a dead worker holds, as it was judged, and in the end forgets the worker; answers how many jobs. */
  #bury({ id, death }: WorkerState, now: number): number {
    if (death === null) return 0
    const held = this.#state.heldBy(id)
    for (const job of held) {
      const wasThere = death.blamed.get(job.id) === job.fence
      const pays = wasThere && job.startedAt !== null
      if (pays && death.verdict === 'alone') job.crashes += 1
      if (pays && death.verdict === 'company') job.suspect = true
      // A suspect runs alone, and so is not held in advance either.
      job.survivor = !job.suspect && (job.survivor || (wasThere && !pays))
      job.fence += 1
      free(job)
    }
    if (death.at + defaults.keepDeadMs < now) this.#state.workers.delete(id)
    return held.length
  }

  #endCancelled(): number {
    const ended = [...this.#state.jobs.values()].filter((job) => job.cancelledAt !== null && job.worker === null)
    for (const job of ended) this.#state.end(job, 'cancelled')
    return ended.length
  }

  async nextDue(filter: Filter): Promise<number | null> {
    const waits = takeable(this.#state, filter)
      .filter(({ availableAt }) => availableAt !== never)
      .map(({ availableAt }) => availableAt - this.#state.now())
    return waits.length === 0 ? null : waits.reduce((least, wait) => Math.min(least, Math.max(0, wait)), Infinity)
  }

  async close(): Promise<void> {}
}

/** Nothing that was cancelled is tried again. */
function asCancelled(settlement: Settlement): Settlement {
  if (settlement.kind !== 'retry' && settlement.kind !== 'fail') return settlement
  const { id, fence, attempt } = settlement
  return { id, fence, kind: 'cancel', attempt }
}

function idOf({ settlement }: { readonly settlement: Held }): JobId {
  return settlement.id
}
