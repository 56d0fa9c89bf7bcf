import { KhepriError } from '../../../src/core/errors.ts'
import type {
  Beat,
  BeatAnswer,
  Exchanged,
  Filter,
  Look,
  NewJob,
  Observation,
  Recovery,
  Round,
  Sight,
  Store,
} from '../../../src/core/store/store.ts'

/** What befalls one call: nothing, or an error before it has done anything, or after it has done everything. */
export type Fault = 'none' | 'unreachable' | 'unknown, not done' | 'unknown, done'

/** A store in front of another one that breaks when the test says so, and remembers what it was asked. */
export class FaultyStore implements Store {
  readonly rounds: Round[] = []
  readonly beats: Beat[] = []
  /** The fault of an exchange, by its number from 1. */
  exchangeFault: (number: number, round: Round) => Fault = () => 'none'
  beatFault: (beat: Beat) => Fault = () => 'none'
  lookFault: () => Fault = () => 'none'
  /** Whether an exchange, by its number from 1, looks nowhere for jobs, and says that there may be more. */
  looksAway: (number: number) => boolean = () => false
  /** What an exchange or a beat waits for after it was done and before it answers. */
  holdAnswer: () => Promise<void> = async () => {}
  readonly #inner: Store

  constructor(inner: Store) {
    this.#inner = inner
  }

  /** Nothing gets through, in either direction. */
  cut(): void {
    this.exchangeFault = this.beatFault = this.lookFault = () => 'unreachable'
  }

  mend(): void {
    this.exchangeFault = this.beatFault = this.lookFault = () => 'none'
  }

  enqueue(jobs: readonly NewJob[]) {
    return this.#inner.enqueue(jobs)
  }

  async exchange(round: Round): Promise<Exchanged> {
    const number = this.rounds.push(round)
    return this.#through(this.exchangeFault(number, round), async () => {
      if (!this.looksAway(number)) return this.#inner.exchange(round)
      return { ...(await this.#inner.exchange({ ...round, reserve: null })), more: true }
    })
  }

  async beat(beat: Beat): Promise<BeatAnswer> {
    this.beats.push(beat)
    return this.#through(this.beatFault(beat), () => this.#inner.beat(beat))
  }

  look(look: Look): Promise<Sight> {
    return this.#through(this.lookFault(), () => this.#inner.look(look))
  }

  recover(observation: Observation): Promise<Recovery> {
    return this.#inner.recover(observation)
  }

  nextDue(filter: Filter): Promise<number | null> {
    return this.#through(this.lookFault(), () => this.#inner.nextDue(filter))
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  async #through<T>(fault: Fault, call: () => Promise<T>): Promise<T> {
    if (fault === 'unreachable') throw new KhepriError('STORE_UNREACHABLE', 'cannot reach the store')
    const answer = fault === 'unknown, not done' ? undefined : await call()
    await this.holdAnswer()
    if (fault !== 'none') throw new KhepriError('OUTCOME_UNKNOWN', 'the connection broke during a commit')
    return answer as T
  }
}
