import type { Beating, HeardBeat, StartBeat } from './beat.ts'
import { type Clock, type Random, sleep } from './clock.ts'
import type { Contact } from './contact.ts'
import { defaults } from './defaults.ts'
import { isKhepriError } from './errors.ts'
import type { Store, WorkerId, WorkerProfile } from './store/store.ts'

/** What a membership needs, and whom it tells. */
export interface MembershipParts {
  readonly store: Pick<Store, 'beat'>
  readonly clock: Clock
  readonly random: Random
  readonly contact: Contact
  readonly startBeat: StartBeat
  readonly profile: WorkerProfile
  /** Told at each beat, so that dying while draining costs the jobs nothing. */
  readonly isDraining: () => boolean
  /** A neighbour has declared us dead: what we held may run elsewhere by now. Called before we join anew. */
  readonly onDeclaredDead: () => void
  /** A beat has ended, well or not. */
  readonly onBeat: () => void
  /** Something khepri does not expect: the worker cannot go on. */
  readonly onFatal: (error: unknown) => void
}

/** A worker's row in the store: written when it joins, kept alive by beats, removed when it leaves. */
export class Membership {
  readonly everyMs: number
  readonly #parts: MembershipParts
  #id: WorkerId = 0
  /** Until its row is written, what it held could never be found again; so nothing may be taken. */
  #isRegistered = false
  #lastBeat: number
  #beating: Beating | null = null
  #joining: Promise<void> | null = null

  constructor(parts: MembershipParts) {
    this.#parts = parts
    this.#lastBeat = parts.clock.monotonic()
    this.everyMs = Math.min(parts.profile.leaseMs / 3, defaults.longestBeatMs)
  }

  /** New at each joining: 48 random bits, so that nobody can be taken for somebody else. */
  get id(): WorkerId {
    return this.#id
  }

  /** Others may rely on this worker being alive. */
  get isGood(): boolean {
    return this.#isRegistered && !this.#isSilent
  }

  /** No beat has come through for a whole lease: others may hold our jobs by now. */
  get #isSilent(): boolean {
    return this.#parts.clock.monotonic() - this.#lastBeat > this.#parts.profile.leaseMs
  }

  /** Writes the worker's row, under an id that nobody has seen before. Who asks meanwhile waits for the same row. */
  join(): Promise<void> {
    this.#joining ??= this.#join().finally(() => {
      this.#joining = null
    })
    return this.#joining
  }

  async #join(): Promise<void> {
    const { store, clock, random, contact, profile } = this.#parts
    this.#id = 1 + Math.floor(random() * (2 ** 48 - 1))
    const sentAt = clock.monotonic()
    await store.beat({ kind: 'joining', worker: this.#id, profile })
    this.#isRegistered = true
    this.#lastBeat = sentAt
    contact.good('beat')
  }

  startBeating(): void {
    const { clock, startBeat } = this.#parts
    this.#beating = startBeat({
      clock,
      everyMs: this.everyMs,
      beat: () => this.#beat(),
      state: () => ({ worker: this.#id, kind: this.#kind }),
      heard: (answer) => this.#heard(answer),
    })
  }

  /** What a beat tells has changed. */
  beatNow(): void {
    this.#beating?.beatNow()
  }

  jobBegins(): void {
    this.#beating?.jobBegins()
  }

  /** Beats once from here, to learn whether our row still stands. */
  confirm(): Promise<void> {
    return this.#beat()
  }

  async stopBeating(): Promise<void> {
    await this.#beating?.stop()
  }

  async leave(): Promise<void> {
    const { clock, contact } = this.#parts
    // In an outage that has lasted, nobody who stops a worker wants to wait for its end.
    const until = clock.monotonic() + (contact.isLost ? 0 : defaults.leaveWithinMs)
    while (!(await this.#tryToLeave()) && clock.monotonic() < until) await sleep(clock, defaults.leaveAgainMs)
  }

  /** Where it fails for good the row stays and grows silent; neighbours will free what it may still hold. */
  async #tryToLeave(): Promise<boolean> {
    try {
      await this.#parts.store.beat({ kind: 'leaving', worker: this.#id })
      return true
    } catch (error) {
      if (!isKhepriError(error)) throw error
      return false
    }
  }

  /** The row of this id is gone or marked as dead. If it is still ours we tell, and join anew under another one. */
  async declaredDead(worker: WorkerId): Promise<void> {
    if (worker !== this.#id || !this.#isRegistered) return
    this.#isRegistered = false
    this.#parts.onDeclaredDead()
    await this.join()
  }

  get #kind(): 'working' | 'draining' {
    return this.#parts.isDraining() ? 'draining' : 'working'
  }

  async #beat(): Promise<void> {
    await this.#guarded(this.#parts.clock.monotonic(), async () => {
      if (!this.#isRegistered) return this.join()
      const worker = this.#id
      const sentAt = this.#parts.clock.monotonic()
      const { known } = await this.#parts.store.beat({ kind: this.#kind, worker })
      await this.#accept(worker, known, sentAt)
    })
  }

  async #heard(answer: HeardBeat): Promise<void> {
    await this.#guarded(answer.sentAt, async () => {
      if ('error' in answer) throw answer.error
      // Joining anew failed when it was tried.
      if (!this.#isRegistered) return this.join()
      await this.#accept(answer.worker, answer.known, answer.sentAt)
    })
  }

  async #accept(worker: WorkerId, known: boolean, sentAt: number): Promise<void> {
    // Heard late, of an id that is no longer ours.
    if (worker !== this.#id) return
    if (!known) return this.declaredDead(worker)
    this.#lastBeat = sentAt
    this.#parts.contact.good('beat')
  }

  async #guarded(sentAt: number, step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      if (isKhepriError(error)) this.#parts.contact.lost('beat', error, sentAt)
      else this.#parts.onFatal(error)
    }
    this.#parts.onBeat()
  }
}
