import type {
  AttemptRecord,
  BeatAnswer,
  Exchanged,
  FailReason,
  Filter,
  Held,
  JobId,
  Look,
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
} from '../../core/store/store.ts'
import { aProfile, aRecord, aWish } from './builders.ts'

/** Speaks to a store as one worker process does. Settling answers the ids that were refused. */
export class TestWorker {
  readonly id: WorkerId
  readonly store: Store
  readonly name: string
  #batch = 0

  constructor(id: WorkerId, store: Store, name: string) {
    this.id = id
    this.store = store
    this.name = name
  }

  /** Another worker on the same store. */
  as(id: WorkerId): TestWorker {
    return new TestWorker(id, this.store, `${this.name} ${id}`)
  }

  exchange(parts: Partial<Round>): Promise<Exchanged> {
    const nothing = { settle: [], enqueue: [], start: [], disown: [], reserve: null }
    return this.store.exchange({ worker: this.id, ...nothing, ...parts })
  }

  /** Reserves under a new batch number; unless the wish says otherwise every job is marked as started. */
  async reserve(wish: Partial<Wish> = {}): Promise<readonly Reservation[]> {
    this.#batch += 1
    const asked = aWish({ batch: this.#batch, ...wish })
    const { reserved, more = false } = await this.exchange({ reserve: asked })
    // The store has not looked everywhere: whoever wants to know looks again.
    if (!more) return reserved
    const left = { limit: asked.limit - reserved.length, started: Math.max(0, asked.started - reserved.length) }
    return [...reserved, ...(await this.reserve({ ...wish, ...left }))]
  }

  /** Reserves jobs that are not started yet. */
  prefetch(wish: Partial<Wish> = {}): Promise<readonly Reservation[]> {
    return this.reserve({ started: 0, ...wish })
  }

  /** Reserves one job and fails loudly if there is none. */
  async reserveOne(wish: Partial<Wish> = {}): Promise<Reservation> {
    const [reservation] = await this.reserve({ limit: 1, ...wish })
    if (!reservation) throw new Error(`the ${this.name} worker was given no job`)
    return reservation
  }

  /** When the next job on "default" is due. */
  dueMs(filter: Partial<Filter> = {}): Promise<number | null> {
    return this.store.nextDue(aWish(filter))
  }

  async settle(settle: readonly Settlement[]): Promise<readonly JobId[]> {
    return idsOf((await this.exchange({ settle })).lost)
  }

  async start(...start: readonly Held[]): Promise<readonly JobId[]> {
    return idsOf((await this.exchange({ start: start.map(holding) })).lost)
  }

  complete(...held: readonly Held[]): Promise<readonly JobId[]> {
    return this.settle(held.map((job) => ({ ...holding(job), kind: 'complete', keep: false })))
  }

  keep(...held: readonly Held[]): Promise<readonly JobId[]> {
    return this.settle(held.map((job) => ({ ...holding(job), kind: 'complete', keep: true })))
  }

  retry(held: Held, delayMs = 0, record: Partial<AttemptRecord> = {}): Promise<readonly JobId[]> {
    return this.settle([{ ...holding(held), kind: 'retry', delayMs, attempt: aRecord(record) }])
  }

  fail(held: Held, record: Partial<AttemptRecord> = {}, reason: FailReason = 'tries'): Promise<readonly JobId[]> {
    return this.settle([{ ...holding(held), kind: 'fail', reason, attempt: aRecord(record) }])
  }

  release(held: Held, delayMs: number | null = null): Promise<readonly JobId[]> {
    return this.settle([{ ...holding(held), kind: 'release', delayMs }])
  }

  join(profile: Partial<WorkerProfile> = {}): Promise<BeatAnswer> {
    return this.store.beat({ kind: 'joining', worker: this.id, profile: aProfile({ name: this.name, ...profile }) })
  }

  beat(kind: 'working' | 'draining' | 'leaving' = 'working'): Promise<BeatAnswer> {
    return this.store.beat({ kind, worker: this.id })
  }

  /** Judges by silence alone, unless the observation says otherwise. */
  recover(observation: Partial<Observation> = {}): Promise<Recovery> {
    return this.store.recover({ observer: this.id, gone: [], rebooted: [], silent: true, ...observation })
  }

  /** Looks around on the host of the suite's profiles, holding nothing and wanting whatever is on "default". */
  look(parts: Partial<Look> = {}): Promise<Sight> {
    const { host } = aProfile()
    return this.store.look({ worker: this.id, host, held: [], filter: aWish(), ...parts })
  }

  /** Cancels in the middle of a run: with an attempt, or without one where the handler had not been started. */
  cancel(held: Held, attempt: AttemptRecord | null = null): Promise<readonly JobId[]> {
    return this.settle([{ ...holding(held), kind: 'cancel', attempt }])
  }
}

/** Only what proves the holding, as a kernel passes it. */
export function holding({ id, fence }: Held): Held {
  return { id, fence }
}

export function idsOf(jobs: readonly { readonly id: JobId }[]): readonly JobId[] {
  return jobs.map(({ id }) => id)
}
