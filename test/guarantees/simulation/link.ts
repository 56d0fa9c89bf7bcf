import type { Admin, Cancelled, Retried } from '../../../src/core/store/admin.ts'
import type {
  Beat,
  BeatAnswer,
  Enqueued,
  Exchanged,
  Filter,
  Held,
  Look,
  NewJob,
  Observation,
  Recovery,
  Round,
  Sight,
  Store,
} from '../../../src/core/store/store.ts'
import type { Network } from './network.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { Timeline } from './timeline.ts'
import type { Witness } from './witness.ts'

/** The far end of every link. */
export interface StoreEnd {
  readonly store: Store
  readonly admin: Admin
  readonly witness: Witness
  readonly network: Network
  readonly timeline: Timeline
}

interface Call<T> {
  /** Done at the store, in one step: a transaction. */
  readonly work: () => Promise<T>
  /** Sees what was committed, at that moment. isTold: the answer is on its way; otherwise nobody will ever hear it. */
  readonly committed?: (answer: T, isTold: boolean) => void
  /** Sees the answer when it has reached the process. */
  readonly delivered?: (answer: T) => void
  /** Its outcome can be unknown; a call that only reads can simply be repeated. */
  readonly mayWrite: boolean
}

interface LinkOptions {
  readonly of?: 'main' | 'thread'
  readonly flights?: number
}

/** A process's way to the store: calls take time, break in every way, and reach a process that may be frozen or gone. */
export class Link implements Store {
  readonly #process: SimulatedProcess
  readonly #end: StoreEnd
  readonly #deliver: (run: () => void) => void

  readonly flights: number

  /** of: the thread that waits for the answers. flights: rounds of its worker that may be under way at once. */
  constructor(process: SimulatedProcess, end: StoreEnd, { of = 'main', flights = 1 }: LinkOptions = {}) {
    this.flights = flights
    this.#process = process
    this.#end = end
    this.#deliver = (run) => (of === 'main' ? process.deliver(run) : process.deliverToThread(run))
  }

  enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    const { store, witness } = this.#end
    const committed = (answer: readonly Enqueued[]): void => witness.enqueued(jobs, answer)
    return this.#call({ work: () => store.enqueue(jobs), committed, mayWrite: true })
  }

  exchange(round: Round): Promise<Exchanged> {
    const { store, witness } = this.#end
    return this.#call({
      work: () => store.exchange(round),
      committed: (answer, isTold) => witness.exchanged({ process: this.#process, round, answer, isTold }),
      delivered: (answer) => witness.handed(this.#process, round, answer),
      mayWrite: true,
    })
  }

  beat(beat: Beat): Promise<BeatAnswer> {
    const { store, witness } = this.#end
    if (beat.kind === 'joining') this.#process.workerId = beat.worker
    const committed = (answer: BeatAnswer): void => witness.beaten(this.#process, beat, answer)
    return this.#call({ work: () => store.beat(beat), committed, mayWrite: true })
  }

  look(look: Look): Promise<Sight> {
    const { store, witness } = this.#end
    const committed = (answer: Sight): void => witness.looked(look, answer)
    return this.#call({ work: () => store.look(look), committed, mayWrite: false })
  }

  recover(observation: Observation): Promise<Recovery> {
    const { store, witness } = this.#end
    const call = { observer: this.#process, observation, sentAt: this.#end.timeline.now }
    const committed = (answer: Recovery): void => witness.recovered(call, answer)
    return this.#call({ work: () => store.recover(observation), committed, mayWrite: true })
  }

  nextDue(filter: Filter): Promise<number | null> {
    return this.#call({ work: () => this.#end.store.nextDue(filter), mayWrite: false })
  }

  selectFailed(): Promise<readonly Held[]> {
    return this.#call({ work: () => this.#end.admin.selectFailed({}), mayWrite: false })
  }

  retryFailed(jobs: readonly Held[]): Promise<Retried> {
    const { admin, witness } = this.#end
    const committed = (answer: Retried): void => witness.retried(answer)
    return this.#call({ work: () => admin.retryFailed(jobs, 0), committed, mayWrite: true })
  }

  /** Cancels every live job of a queue. */
  async cancel(queue: string): Promise<Cancelled> {
    const { admin, witness } = this.#end
    const ids = await this.#call({ work: () => admin.selectLive({ queue }), mayWrite: false })
    const committed = (answer: Cancelled): void => witness.cancelled(answer)
    return this.#call({ work: () => admin.cancel(ids), committed, mayWrite: true })
  }

  setPaused(queue: string, isPaused: boolean): Promise<void> {
    const { admin, witness } = this.#end
    const work = (): Promise<void> => (isPaused ? admin.pause([queue], null, null) : admin.resume([queue]))
    return this.#call({ work, committed: () => witness.setPaused(queue, isPaused), mayWrite: true })
  }

  async close(): Promise<void> {}

  #call<T>(call: Call<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const { timeline, network } = this.#end
    if (this.#process.isGone) return promise
    const fate = network.fate(this.#process, call.mayWrite)
    if (fate.kind === 'answered') {
      const answered = (answer: T): void => {
        timeline.after(fate.backMs, () => this.#deliver(() => this.#arrive(call, answer, resolve)))
      }
      timeline.after(fate.thereMs, () => void this.#commit(call, true).then(answered, reject))
      return promise
    }
    if (fate.doneAfterMs !== null) timeline.after(fate.doneAfterMs, () => void this.#commit(call, false))
    const broken = (): void => {
      this.#process.announcements?.missed()
      reject(fate.error)
    }
    timeline.after(fate.afterMs, () => this.#deliver(broken))
    return promise
  }

  async #commit<T>({ work, committed }: Call<T>, isTold: boolean): Promise<T> {
    const answer = await work()
    committed?.(answer, isTold)
    return answer
  }

  #arrive<T>({ delivered }: Call<T>, answer: T, resolve: (answer: T) => void): void {
    this.#process.announcements?.reached()
    delivered?.(answer)
    resolve(answer)
  }
}
