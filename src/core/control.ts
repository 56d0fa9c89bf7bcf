import type { Clock } from './clock.ts'
import { sleep } from './clock.ts'
import type { Contact } from './contact.ts'
import { defaults } from './defaults.ts'
import { isKhepriError } from './errors.ts'
import type { Fate, ProcessTrace } from './process-identity.ts'
import type { BeforeFreeing, Look, Recovery, Sight, Store } from './store/store.ts'

/** What a control loop needs, and whom it tells. */
export interface ControlParts {
  readonly store: Pick<Store, 'look' | 'recover'>
  readonly clock: Clock
  readonly contact: Contact
  readonly fateOf: (neighbour: ProcessTrace) => Fate
  readonly beforeFreeing: BeforeFreeing | undefined
  /** How often neighbours' silence is judged: the interval of their beats. */
  readonly judgeEveryMs: number
  readonly look: () => Look
  /** Each sight, before anybody is judged by it. Its rejections count as the control loop's. */
  readonly onSight: (sight: Sight, asked: Look) => Promise<void>
  readonly onRecovery: (recovery: Recovery) => void
  readonly onFatal: (error: unknown) => void
}

/**
 * Looks around once a second: what was cancelled, whether we are still known, which neighbours have died.
 *
 * A neighbour whose process is gone from this machine is dead at once; one that is merely silent is judged only by a
 * worker whose own contact with the store has been unbroken. Recovery decides nothing about jobs: it frees them.
 */
export class Control {
  readonly #parts: ControlParts
  readonly #stopped = new AbortController()
  #loop: Promise<void> = Promise.resolve()
  #judgedAt = Number.NEGATIVE_INFINITY

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Resolves when no look is under way and none will follow. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#loop
  }

  /** One look, and what follows from it. Never rejects. */
  async look(): Promise<void> {
    const { store, clock, look, onSight, contact, onFatal } = this.#parts
    const sentAt = clock.monotonic()
    try {
      const asked = look()
      const sight = await store.look(asked)
      contact.good('control')
      await onSight(sight, asked)
      await this.#recover(sight)
    } catch (error) {
      if (isKhepriError(error)) contact.lost('control', error, sentAt)
      else onFatal(error)
    }
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts
    const { signal } = this.#stopped
    while (!signal.aborted) {
      await sleep(clock, defaults.lookEveryMs, signal)
      if (!signal.aborted) await this.look()
    }
  }

  async #recover({ neighbours, waiting }: Sight): Promise<void> {
    const { store, fateOf, look, beforeFreeing, onRecovery } = this.#parts
    const fates = neighbours.map((neighbour) => ({ worker: neighbour.worker, fate: fateOf(neighbour) }))
    const those = (wanted: Fate): readonly number[] =>
      fates.flatMap(({ worker, fate }) => (fate === wanted ? [worker] : []))
    const gone = those('gone')
    const silent = this.#isTimeToJudge()
    if (gone.length === 0 && !silent && !waiting) return
    const observation = { observer: look().worker, gone, rebooted: those('rebooted'), silent }
    onRecovery(await store.recover(observation, beforeFreeing))
  }

  #isTimeToJudge(): boolean {
    const { clock, contact, judgeEveryMs } = this.#parts
    // A beat that hung when an outage ended breaks at its deadline, and the next one comes an interval after that.
    if (!contact.hasBeenGoodFor(2 * judgeEveryMs)) return false
    if (clock.monotonic() - this.#judgedAt < judgeEveryMs) return false
    this.#judgedAt = clock.monotonic()
    return true
  }
}
