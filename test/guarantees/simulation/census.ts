import type { Beat, BeatAnswer, Observation, WorkerId } from '../../../src/core/store/store.ts'
import type { WorkerAccount } from './account.ts'
import type { Network } from './network.ts'
import type { Record } from './record.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { Timeline } from './timeline.ts'

export interface CensusParts {
  readonly timeline: Timeline
  readonly record: Record
  readonly network: Network
}

/** One call of recover, as it was sent. */
export interface Judgement {
  readonly observer: SimulatedProcess
  readonly observation: Observation
  readonly sentAt: number
}

/** A worker looks at its own clock and at others so often. */
const lookEveryMs = 1_000

/** Who lives, by the beats that were committed; accuses whoever declares a worker dead that is not. */
export class Census {
  readonly #parts: CensusParts
  readonly #workers = new Map<WorkerId, WorkerAccount>()

  constructor(parts: CensusParts) {
    this.#parts = parts
  }

  isAlive(id: WorkerId): boolean {
    const state = this.#workers.get(id)?.state
    return state === 'working' || state === 'draining'
  }

  get dead(): readonly WorkerId[] {
    return [...this.#workers.values()].filter(({ state }) => state === 'dead').map(({ id }) => id)
  }

  beaten(process: SimulatedProcess, beat: Beat, { known }: BeatAnswer): void {
    const { timeline, record } = this.#parts
    if (beat.kind === 'joining') return this.#joined(process, beat)
    const worker = this.#workers.get(beat.worker)
    const isAlive = this.isAlive(beat.worker)
    if (known !== isAlive)
      record.accuse(5, `a beat of ${process.name} was answered "known: ${known}", and it is not so`)
    if (beat.kind === 'leaving') record.note(`${process.name} leaves`)
    if (worker && beat.kind === 'leaving') worker.state = 'gone'
    else if (worker && isAlive) Object.assign(worker, { state: beat.kind, beatAt: timeline.now })
  }

  #joined(process: SimulatedProcess, { worker: id, profile }: Beat & { readonly kind: 'joining' }): void {
    const { timeline, record } = this.#parts
    this.#workers.set(id, { id, process, leaseMs: profile.leaseMs, state: 'working', beatAt: timeline.now })
    record.note(`${process.name} joins`)
  }

  /** Takes a death into account; answers whether what the worker had started pays for it. */
  declaredDead(judgement: Judgement, id: WorkerId): boolean {
    const { record, timeline } = this.#parts
    const { observer, observation } = judgement
    const worker = this.#workers.get(id)
    if (!worker || !this.isAlive(id)) {
      record.accuse(5, `${observer.name} declared a worker dead that was none`)
      return false
    }
    record.note(`${observer.name} declares ${worker.process.name} dead after ${timeline.now - worker.beatAt} ms`)
    if (observation.gone.includes(id)) this.#checkGone(observer, worker.process)
    else this.#checkSilence(judgement, worker)
    const pays = worker.state === 'working' && !observation.rebooted.includes(id)
    worker.state = 'dead'
    return pays
  }

  #checkGone(observer: SimulatedProcess, process: SimulatedProcess): void {
    if (!process.isGone) this.#parts.record.accuse(5, `${observer.name} took ${process.name} for gone`)
  }

  /** A worker that could have beaten, had the store been there for it, is not dead. */
  #checkSilence(judgement: Judgement, worker: WorkerAccount): void {
    const { record, timeline, network } = this.#parts
    const { id, process, beatAt, leaseMs } = worker
    const silentMs = timeline.now - beatAt
    const declared = `${judgement.observer.name} declared ${process.name} dead`
    if (!judgement.observation.silent) record.accuse(5, `${declared} and was not to judge by silence`)
    if (silentMs < leaseMs - 1 && !this.#isExcused(judgement, worker))
      record.accuse(5, `${declared} after ${silentMs} ms, its lease is ${leaseMs} ms`)
    const isLive =
      !process.isGone && process.workerId === id && process.worker !== null && process.disturbedUntil < beatAt
    if (isLive && network.wasAway(beatAt)) record.accuse(5, `${declared} because of an outage of the store`)
  }

  /**
   * What is not promised: a clock that was set ahead ages every beat until the next one is sent, so who is kept from
   * beating just then is taken for dead early. Nor can anybody see a clock that is set while a recovery is under way, or
   * there and back between two looks.
   */
  #isExcused({ sentAt }: Judgement, { id, process, beatAt }: WorkerAccount): boolean {
    const sets = this.#parts.network.clockSets.filter((at) => at > beatAt - lookEveryMs)
    if (sets.some((at) => at > sentAt) || sets.length > 1) return true
    const isHindered = process.isGone || process.worker === null || process.disturbedUntil > beatAt
    // A row that a lost answer left behind belongs to nobody.
    return sets.length > 0 && (isHindered || process.workerId !== id)
  }
}
