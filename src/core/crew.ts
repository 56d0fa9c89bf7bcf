import { Attempt, type AttemptSetting } from './attempt.ts'
import type { EventBus } from './events.ts'
import type { Outcome } from './policy.ts'
import type { Held, JobId, Reservation } from './store/store.ts'
import { describeError } from './text.ts'

/** A job whose maxCrashes is 0. Text of the same look inside a payload only costs it a place among the prefetched. */
const isDeadly = /"maxCrashes"\s*:\s*0\b/

/** What a crew tells its worker. */
export interface CrewOwner {
  /** It is clear how an attempt ended. */
  judge(attempt: Attempt, outcome: Outcome): void
  /** A handler has come back: its slot is free. */
  freed(): void
  /** A failed() hook has ended. */
  hookEnded(): void
}

/** The attempts that one worker is running, and the failed() hooks it still waits for. */
export class Crew {
  readonly #setting: AttemptSetting
  readonly #events: EventBus
  readonly #owner: CrewOwner
  /** Jobs whose handlers have not returned; a stuck one stays here after it was settled. */
  readonly #running = new Map<JobId, Attempt>()
  #undecided = 0
  readonly #hooks = new Set<Promise<void>>()

  constructor(setting: Omit<AttemptSetting, 'onDecided' | 'onReturned'>, owner: CrewOwner) {
    this.#setting = {
      ...setting,
      onDecided: (attempt, outcome) => this.#onDecided(attempt, outcome),
      onReturned: (attempt) => this.#onReturned(attempt),
    }
    this.#events = setting.events
    this.#owner = owner
  }

  /** Slots that are taken. */
  get size(): number {
    return this.#running.size
  }

  /** Slots that are taken by jobs of one queue. */
  sizeOf(queue: string): number {
    return this.#count(({ reservation }) => reservation.queue === queue)
  }

  /** Jobs of which nobody knows yet how they end. */
  get undecided(): number {
    return this.#undecided
  }

  /** failed() hooks that have not returned. */
  get hooks(): number {
    return this.#hooks.size
  }

  /** Slots whose handlers ignore their signal. */
  get stuck(): number {
    return this.#count((attempt) => attempt.isStuck)
  }

  /** The same of one queue. */
  stuckIn(queue: string): number {
    return this.#count((attempt) => attempt.isStuck && attempt.reservation.queue === queue)
  }

  /** A job that may have killed its worker gets no company, so that nobody else pays for it. */
  get runsSuspect(): boolean {
    return this.#count(({ isDecided, reservation }) => reservation.suspect && !isDecided) > 0
  }

  /** Jobs that are settled while their handlers still run here: a retry must not run beside them. */
  get excluded(): readonly JobId[] {
    return this.#ids((attempt) => attempt.isDecided)
  }

  /** Jobs that this worker holds. */
  get held(): readonly JobId[] {
    return this.#ids((attempt) => !attempt.isDecided)
  }

  /** The attempts that have run for at least so long and are not settled. */
  runningFor(ms: number): readonly Attempt[] {
    return [...this.#running.values()].filter((attempt) => !attempt.isDecided && attempt.ms >= ms)
  }

  /**
   * Tells whether a job may be held before there is a slot for it: a death while it runs must find its start written, and
   * what runs as a process of its own takes its own time.
   */
  mayWait({ job, envelope }: Reservation): boolean {
    return !isDeadly.test(envelope) && this.#setting.registry.get(job)?.mayBePrefetched !== false
  }

  begin(reservation: Reservation): Attempt {
    const attempt = new Attempt(reservation, this.#setting)
    this.#running.set(reservation.id, attempt)
    this.#undecided++
    void attempt.run()
    return attempt
  }

  /** The store refused what it was told of these: those that run here and are not settled abort, and nothing is written. */
  lost(refused: readonly Held[]): void {
    for (const { id, fence } of refused) {
      const attempt = this.#running.get(id)
      if (attempt && !attempt.isDecided && attempt.reservation.fence === fence) attempt.lose()
    }
  }

  interrupt(): void {
    for (const attempt of this.#running.values()) attempt.interrupt()
  }

  /** What we held may run elsewhere: every job aborts, and nothing of it is written. */
  lose(): void {
    for (const attempt of this.#running.values()) if (!attempt.isDecided) attempt.lose()
  }

  /** Nobody waits for what still runs. */
  dismiss(): void {
    for (const attempt of this.#running.values()) attempt.dismiss()
  }

  cancel(ids: readonly JobId[]): void {
    for (const id of ids) this.#running.get(id)?.cancel()
  }

  runFailedHook(attempt: Attempt, error: unknown): void {
    const hook = attempt
      .runFailedHook(error)
      .catch((thrown: unknown) => this.#events.emit('hook.failed', { ...attempt.facts, error: describeError(thrown) }))
      .finally(() => {
        this.#hooks.delete(hook)
        this.#owner.hookEnded()
      })
    this.#hooks.add(hook)
  }

  #onDecided(attempt: Attempt, outcome: Outcome): void {
    this.#undecided--
    this.#owner.judge(attempt, outcome)
  }

  #onReturned({ reservation: { id } }: Attempt): void {
    this.#running.delete(id)
    this.#owner.freed()
  }

  #ids(wanted: (attempt: Attempt) => boolean): readonly JobId[] {
    return [...this.#running.values()].filter(wanted).map(({ reservation }) => reservation.id)
  }

  #count(wanted: (attempt: Attempt) => boolean): number {
    let count = 0
    for (const attempt of this.#running.values()) if (wanted(attempt)) count++
    return count
  }
}
