import { Attempt, type AttemptSetting } from './attempt.ts'
import type { Backoff } from './backoff.ts'
import type { Beating, StartBeat } from './beat.ts'
import { type Clock, type Random, sleep, type Timer } from './clock.ts'
import { Contact } from './contact.ts'
import { defaults } from './defaults.ts'
import { envelopeVersion } from './envelope.ts'
import { isKhepriError } from './errors.ts'
import type { DrainReason, EventBus, WorkerReport } from './events.ts'
import { Pace } from './pace.ts'
import { callsFailedHook, decide, type Outcome } from './policy.ts'
import type { Registry } from './registry.ts'
import { announce, type Finished, settlementOf } from './settlement.ts'
import type {
  Exchanged,
  Filter,
  JobId,
  Reservation,
  Round,
  Store,
  Wish,
  WorkerId,
  WorkerProfile,
} from './store/store.ts'
import { describeError } from './text.ts'
import { Wake } from './wake.ts'

/** What one worker does; complete, nothing here has a default. */
export interface WorkOptions {
  readonly queues: Filter['queues']
  readonly concurrency: number
  /** The longest wait between two looks at an idle store. */
  readonly sleepMs: number
  /** Pause of a slot after each job. */
  readonly restMs: number
  readonly once: boolean
  readonly stopWhenEmpty: boolean
  readonly maxJobs: number | null
  readonly maxTimeMs: number | null
  /** How long a drain waits for running jobs before it gives them back; null: as long as they take. */
  readonly drainTimeoutMs: number | null
  /** For envelopes that bring none of their own. */
  readonly timeoutMs: number | null
  readonly tries: number
  readonly backoff: Backoff
  readonly retryAfterMs: number
  readonly unknownJobs: 'fail' | 'wait'
  readonly keepDoneMs: number | null
  readonly name: string
  readonly only: readonly string[] | null
  readonly except: readonly string[]
}

/** Everything a worker depends on, handed in so that the kernel runs under a simulator as it does in production. */
export interface WorkerParts {
  readonly store: Store
  readonly registry: Pick<Registry, 'get' | 'names'>
  readonly events: EventBus
  readonly clock: Clock
  readonly random: Random
  readonly startBeat: StartBeat
  readonly profile: Omit<WorkerProfile, 'leaseMs' | 'name' | 'concurrency' | 'queues'>
}

/** A running worker, as its owner sees it. */
export interface WorkHandle {
  readonly worker: string
  readonly options: WorkOptions
  /** Reserves nothing new, waits for what runs, settles, stops. Only the first reason counts. */
  drain(reason?: DrainReason): void
  /** Drains, and aborts what runs: after 5 s the jobs that are left are given back at no cost. */
  abort(): void
  /** Reserves nothing until `resume`; without effect during a drain. */
  quiet(): void
  resume(): void
  /** Charges an error of the process to the job whose timer or promise threw it. False: it belongs to no job. */
  attribute(error: unknown): boolean
  counts(): WorkCounts
  /** Rejects only where the worker cannot go on. */
  readonly finished: Promise<WorkerReport>
}

export interface WorkCounts {
  readonly running: number
  readonly done: number
  readonly retried: number
  readonly failed: number
  readonly released: number
  readonly lost: number
}

const none: readonly never[] = []

/**
 * Reserves jobs, runs them, settles them.
 *
 * One loop talks to the store: each round settles what has finished and reserves for the free slots, in one transaction.
 * Results that could not be written are kept and offered again; meanwhile nothing is reserved.
 */
export class Worker implements WorkHandle {
  readonly options: WorkOptions
  readonly finished: Promise<WorkerReport>
  readonly #parts: WorkerParts
  readonly #clock: Clock
  readonly #events: EventBus
  readonly #setting: AttemptSetting
  readonly #contact: Contact
  readonly #wake: Wake
  readonly #pace: Pace
  readonly #startedAt: number
  readonly #beatEveryMs: number
  /** Aborts when the drain begins, to cut a pause short. */
  readonly #draining = new AbortController()
  /** Aborts a grace after `abort()`: from then on nothing is waited for. */
  readonly #gaveUp = new AbortController()
  /** Jobs whose handlers have not returned; a stuck one stays here after it was settled. */
  readonly #running = new Map<JobId, Attempt>()
  /** Attempts whose outcome is not in the outbox yet: decided and judged are a microtask apart. */
  readonly #unjudged = new Set<Attempt>()
  readonly #hooks = new Set<Promise<void>>()
  /** Job names whose module this process cannot import. */
  readonly #broken = new Set<string>()
  /** Batches whose answer was lost, each until a lease has passed: the statement may still commit that late. */
  readonly #disowned = new Map<number, number>()
  readonly #timers = new Set<Timer>()
  /** Settlements whose first offer may have been committed without our hearing of it. */
  readonly #uncertain = new Set<Finished>()
  /** Given anew each time it joins. */
  #id: WorkerId = 0
  /** Its row is written: until then what it held could never be found again, so nothing is taken. */
  #isRegistered = false
  #beating: Beating | null = null
  #batch = 0
  #outbox: Finished[] = []
  #resting = 0
  #taken = 0
  #outages = 0
  /** The store is to be asked although there is nothing to write or to take: to see it back, or to disown. */
  #owesRound = false
  #counts = { done: 0, retried: 0, failed: 0, released: 0, lost: 0, abandoned: 0 }
  #isQuiet = false
  #isAborting = false
  #drainReason: DrainReason | null = null
  #fatal: unknown = null
  #lastBeat: number
  /** Since when a drain has had nothing to do but to write its last results. */
  #lastResultAt = 0

  private constructor(options: WorkOptions, parts: WorkerParts, finished: Promise<WorkerReport>) {
    this.options = options
    this.finished = finished
    this.#parts = parts
    this.#clock = parts.clock
    this.#events = parts.events
    this.#contact = new Contact(parts.clock, parts.events)
    this.#wake = new Wake(parts.clock)
    this.#pace = new Pace(parts.clock, options.sleepMs)
    this.#startedAt = this.#lastBeat = parts.clock.monotonic()
    this.#beatEveryMs = Math.min(options.retryAfterMs / 3, defaults.longestBeatMs)
    const { tries, backoff, timeoutMs } = options
    const { registry, clock, events } = parts
    const gaveUp = this.#gaveUp.signal
    this.#setting = { registry, clock, events, tries, backoff, timeoutMs, gaveUp, onStuck: () => this.#onStuck() }
  }

  /** Writes the worker's row and starts working. Rejects where the store cannot be reached or has no schema. */
  static async start(options: WorkOptions, parts: WorkerParts): Promise<Worker> {
    const { promise, resolve, reject } = Promise.withResolvers<WorkerReport>()
    const worker = new Worker(options, parts, promise)
    await worker.#join()
    worker.#run().then(resolve, reject)
    return worker
  }

  get worker(): string {
    return this.options.name
  }

  drain(reason: DrainReason = 'asked'): void {
    if (this.#drainReason !== null) return
    this.#drainReason = reason
    this.#lastResultAt = this.#clock.monotonic()
    this.#events.emit('worker.draining', { worker: this.worker, reason, running: this.#undecided })
    if (this.options.drainTimeoutMs !== null) this.#later(this.options.drainTimeoutMs, () => this.abort())
    this.#draining.abort()
    // A worker that dies while draining costs its jobs nothing: the store should know soon.
    this.#beating?.beatNow()
    this.#wake.ring()
  }

  abort(): void {
    this.drain()
    if (this.#isAborting) return
    this.#isAborting = true
    this.#events.emit('worker.aborting', { worker: this.worker, running: this.#undecided })
    this.#later(defaults.graceMs, () => this.#gaveUp.abort())
    for (const attempt of this.#running.values()) attempt.interrupt()
  }

  quiet(): void {
    if (this.#drainReason === null) this.#isQuiet = true
  }

  resume(): void {
    this.#isQuiet = false
    this.#lookNow()
  }

  attribute(error: unknown): boolean {
    const attempt = Attempt.current()
    if (!attempt) return false
    if (!attempt.charge(error)) this.#events.emit('error.late', { ...attempt.facts, error: describeError(error) })
    return true
  }

  counts(): WorkCounts {
    const { done, retried, failed, released, lost } = this.#counts
    return { running: this.#undecided, done, retried, failed, released, lost }
  }

  async #run(): Promise<WorkerReport> {
    const { worker } = this
    const { concurrency, maxTimeMs } = this.options
    this.#events.emit('worker.started', { worker, queues: this.#queuesText, concurrency })
    this.#beating = this.#parts.startBeat({
      clock: this.#clock,
      everyMs: this.#beatEveryMs,
      beat: () => this.#keepAlive(),
    })
    if (maxTimeMs !== null) this.#later(maxTimeMs, () => this.drain('max-time'))
    try {
      while (!this.#isFinished) await this.#step()
    } catch (error) {
      this.#loseRunning()
      throw error
    } finally {
      for (const timer of this.#timers) timer.cancel()
      await this.#beating.stop()
    }
    await this.#leave()
    return this.#report()
  }

  async #step(): Promise<void> {
    if (this.#fatal !== null) throw this.#fatal
    const round = this.#nextRound()
    if (round) await this.#exchange(round)
    else await this.#wake.wait(this.#idleMs)
  }

  /** What to ask of the store now; null where there is nothing to settle and no slot to fill. */
  #nextRound(): Round | null {
    const reserve = this.#nextWish()
    if (!reserve && this.#outbox.length === 0 && !this.#owesRound) return null
    const settle = this.#outbox.map(({ settlement }) => settlement)
    return { worker: this.#id, settle, enqueue: none, disown: [...this.#disowned.keys()], start: none, reserve }
  }

  #nextWish(): Wish | null {
    const limit = this.#free
    if (limit <= 0) return null
    // With a result to write the look costs nothing more; otherwise it waits for its time.
    if (this.#outbox.length === 0 && this.#pace.waitMs > 0) return null
    return { ...this.#filter, limit, started: limit, maxBytes: defaults.maxReservedBytes, batch: ++this.#batch }
  }

  /** Slots to fill now. */
  get #free(): number {
    if (this.#isStopping || this.#isSilent || !this.#isRegistered || this.#runsSuspect) return 0
    if (this.#outages > 0 && this.#outbox.length > 0) return 0
    const slots = this.options.concurrency - this.#running.size - this.#resting
    const allowed = this.options.once ? 1 : (this.options.maxJobs ?? Number.POSITIVE_INFINITY)
    return Math.min(slots, allowed - this.#taken)
  }

  get #isStopping(): boolean {
    return this.#drainReason !== null || this.#isQuiet
  }

  /** A job that may have killed its worker gets no company, so that nobody else pays for it. */
  get #runsSuspect(): boolean {
    for (const { isDecided, reservation } of this.#running.values()) if (reservation.suspect && !isDecided) return true
    return false
  }

  /** No beat has come through for a whole lease: others may hold our jobs by now, so nothing more is taken. */
  get #isSilent(): boolean {
    return this.#clock.monotonic() - this.#lastBeat > this.options.retryAfterMs
  }

  get #filter(): Filter {
    const { queues, only, except, unknownJobs } = this.options
    const known = unknownJobs === 'wait' ? this.#parts.registry.names() : null
    return {
      queues,
      only: known && only ? known.filter((name) => only.includes(name)) : (known ?? only),
      except: this.#broken.size === 0 ? except : [...except, ...this.#broken],
      // Their handlers still run here: a retry must not run beside them.
      exclude: [...this.#running.values()]
        .filter((attempt) => attempt.isDecided)
        .map(({ reservation }) => reservation.id),
      maxVersion: envelopeVersion,
      suspects: this.#running.size === 0,
    }
  }

  get #idleMs(): number | null {
    if (this.#free > 0) return this.#pace.waitMs
    // Silence ends with a beat, which rings; a drain is watched over so that its patience can end.
    return this.#drainReason === null && !this.#isSilent ? null : this.#beatEveryMs
  }

  async #exchange(round: Round): Promise<void> {
    const offered = this.#outbox
    this.#outbox = []
    let answer: Exchanged
    try {
      answer = await this.#parts.store.exchange(round)
    } catch (error) {
      this.#outbox = [...offered, ...this.#outbox]
      this.#keepDoubts(error, round, offered)
      return this.#outage(error)
    }
    this.#outages = 0
    this.#owesRound = false
    this.#contact.good('exchange')
    this.#forgetDisowned(round.disown)
    this.#conclude(offered, answer.lost)
    // Declared dead meanwhile: what came under the old id is swept up by the next recovery.
    if (round.worker !== this.#id) return
    for (const reservation of answer.reserved) this.#begin(reservation)
    if (round.reserve) await this.#afterLook(round.reserve, answer.reserved.length)
  }

  /** The round may have been written: its results may be refused as settled already, its reservation is disowned. */
  #keepDoubts(error: unknown, round: Round, offered: readonly Finished[]): void {
    if (!isKhepriError(error) || error.code !== 'OUTCOME_UNKNOWN') return
    // Declared dead meanwhile: a refusal then means that the job is somebody else's.
    if (round.worker !== this.#id) return
    for (const finished of offered) this.#uncertain.add(finished)
    if (round.reserve) this.#disowned.set(round.reserve.batch, this.#clock.monotonic() + this.options.retryAfterMs)
  }

  async #outage(error: unknown): Promise<void> {
    if (!isKhepriError(error)) throw error
    this.#owesRound = true
    this.#contact.lost('exchange', error)
    await this.#pauseAfterOutage()
  }

  /** Waits ever longer up to 5 s, with jitter; the start of a drain cuts it short, once. */
  async #pauseAfterOutage(): Promise<void> {
    const longestMs = Math.min(5_000, 100 * 2 ** Math.min(this.#outages++, 6))
    const signal = this.#draining.signal.aborted ? undefined : this.#draining.signal
    await sleep(this.#clock, longestMs * (0.5 + this.#parts.random() / 2), signal)
  }

  #conclude(offered: readonly Finished[], lost: Exchanged['lost']): void {
    const refused = new Set(lost.map(({ id }) => id))
    for (const finished of offered) {
      const mayBeWritten = this.#uncertain.delete(finished)
      if (refused.has(finished.settlement.id) && !mayBeWritten) this.#reportLost(finished.attempt)
      else this.#settled(finished)
    }
  }

  #settled(finished: Finished): void {
    const { attempt, verdict } = finished
    if (verdict.kind === 'complete') this.#counts.done++
    else if (verdict.kind === 'retry') this.#counts.retried++
    else if (verdict.kind === 'fail') this.#counts.failed++
    else this.#counts.released++
    if (verdict.kind === 'release' && attempt.isStuck) this.#counts.abandoned++
    announce(finished, this.#events)
    if (callsFailedHook(verdict)) this.#runFailedHook(attempt, verdict.error)
  }

  #reportLost(attempt: Attempt): void {
    this.#counts.lost++
    this.#events.emit('job.lost', { ...attempt.facts, ms: attempt.ms })
  }

  #runFailedHook(attempt: Attempt, error: unknown): void {
    const hook = attempt
      .runFailedHook(error)
      .catch((thrown: unknown) => this.#events.emit('hook.failed', { ...attempt.facts, error: describeError(thrown) }))
      .finally(() => {
        this.#hooks.delete(hook)
        this.#wake.ring()
      })
    this.#hooks.add(hook)
  }

  #begin(reservation: Reservation): void {
    const attempt = new Attempt(reservation, this.#setting)
    this.#running.set(reservation.id, attempt)
    this.#unjudged.add(attempt)
    void attempt.outcome.then((outcome) => this.#judge(attempt, outcome))
    // Told to stop while the answer was under way: what has not started goes back.
    if (this.#isStopping) attempt.interrupt()
    else this.#countTaken()
    void attempt.run().then(() => this.#freeSlot(attempt))
  }

  #countTaken(): void {
    this.#taken++
    if (this.options.once) this.drain('once')
    else if (this.#taken === this.options.maxJobs) this.drain('max-jobs')
  }

  #judge(attempt: Attempt, outcome: Outcome): void {
    this.#unjudged.delete(attempt)
    if (outcome.kind === 'unloadable') this.#stopServing(attempt.reservation.job, outcome)
    this.#lastResultAt = this.#clock.monotonic()
    const verdict = decide(outcome, attempt, this.#parts.random())
    if (verdict.kind === 'drop') this.#reportLost(attempt)
    else this.#outbox.push({ attempt, verdict, settlement: settlementOf(attempt, verdict, this.worker, this.options) })
    this.#wake.ring()
  }

  #freeSlot(attempt: Attempt): void {
    this.#running.delete(attempt.reservation.id)
    if (this.options.restMs > 0) this.#rest()
    this.#wake.ring()
  }

  #rest(): void {
    this.#resting++
    this.#later(this.options.restMs, () => {
      this.#resting--
      this.#wake.ring()
    })
  }

  /** With every slot taken by a handler that ignores its signal, only a new process helps. */
  #onStuck(): void {
    const stuck = [...this.#running.values()].filter((attempt) => attempt.isStuck)
    if (stuck.length >= this.options.concurrency) this.drain('stuck')
  }

  #stopServing(job: string, { source, message }: Outcome & { readonly kind: 'unloadable' }): void {
    if (this.#broken.has(job)) return
    this.#broken.add(job)
    this.#events.emit('module.broken', { job, source, message })
    const { only, except } = this.options
    const served = this.#parts.registry
      .names()
      .filter((name) => (only?.includes(name) ?? true) && !except.includes(name))
    if (served.every((name) => this.#broken.has(name))) this.drain('modules')
  }

  async #afterLook(wish: Wish, found: number): Promise<void> {
    if (found > 0) return this.#pace.found(found >= wish.limit)
    const dueMs = await this.#nextDue(wish)
    if (dueMs === undefined) return
    this.#pace.foundNothing(dueMs)
    // Ready, though it was not reserved: a neighbour had it locked just then. It may yet be ours.
    if (dueMs !== 0) this.#stopIfEmpty()
  }

  /** undefined: the store could not be asked. */
  async #nextDue(filter: Filter): Promise<number | null | undefined> {
    try {
      return await this.#parts.store.nextDue(filter)
    } catch (error) {
      await this.#outage(error)
      return undefined
    }
  }

  #stopIfEmpty(): void {
    if (this.#undecided > 0 || this.#outbox.length > 0) return
    if (this.options.once) this.drain('once')
    else if (this.options.stopWhenEmpty) this.drain('empty')
  }

  /** Jobs of which nobody knows yet how they end. */
  get #undecided(): number {
    return this.#unjudged.size
  }

  get #isFinished(): boolean {
    if (this.#drainReason === null || this.#undecided > 0 || this.#hooks.size > 0) return false
    return this.#outbox.length === 0 || this.#hasGivenUpWriting
  }

  /** A drain offers its last results for at least one lease; after that others may run these jobs anyway. */
  get #hasGivenUpWriting(): boolean {
    const patienceMs = Math.max(this.options.retryAfterMs, this.options.drainTimeoutMs ?? 0)
    return this.#clock.monotonic() - this.#lastResultAt > patienceMs
  }

  #forgetDisowned(batches: readonly number[]): void {
    const now = this.#clock.monotonic()
    for (const batch of batches) if ((this.#disowned.get(batch) ?? now) <= now) this.#disowned.delete(batch)
  }

  /** One beat, and then the judgement over silent neighbours. */
  async #keepAlive(): Promise<void> {
    try {
      await this.#beat(this.#drainReason === null ? 'working' : 'draining')
      if (this.#contact.hasBeenGoodFor(this.#beatEveryMs)) await this.#recover()
    } catch (error) {
      if (isKhepriError(error)) this.#contact.lost('beat', error)
      else this.#fatal = error
    }
    this.#owesRound ||= this.#disowned.size > 0
    this.#wake.ring()
  }

  async #beat(kind: 'working' | 'draining'): Promise<void> {
    if (!this.#isRegistered) return this.#join()
    const sentAt = this.#clock.monotonic()
    const { known } = await this.#parts.store.beat({ kind, worker: this.#id })
    if (!known) return this.#registerAnew()
    this.#lastBeat = sentAt
    this.#contact.good('beat')
  }

  /** Writes the worker's row, under an id that nobody has seen before. */
  async #join(): Promise<void> {
    this.#id = this.#newId()
    const sentAt = this.#clock.monotonic()
    await this.#parts.store.beat({ kind: 'joining', worker: this.#id, profile: this.#profile })
    this.#isRegistered = true
    this.#lastBeat = sentAt
    this.#contact.good('beat')
  }

  /** Declared dead by a neighbour: what we held may run elsewhere. Our jobs abort, and we go on under a new id. */
  async #registerAnew(): Promise<void> {
    this.#isRegistered = false
    this.#loseRunning()
    for (const { attempt } of this.#outbox.splice(0)) this.#reportLost(attempt)
    this.#uncertain.clear()
    this.#disowned.clear()
    await this.#join()
  }

  #loseRunning(): void {
    for (const attempt of this.#running.values()) if (!attempt.isDecided) attempt.lose()
  }

  async #recover(): Promise<void> {
    const { dead, freed } = await this.#parts.store.recover(this.#id)
    if (dead.length > 0 || freed > 0) this.#events.emit('workers.dead', { count: dead.length, freed })
    if (freed > 0) this.#lookNow()
  }

  #lookNow(): void {
    this.#pace.lookNow()
    this.#wake.ring()
  }

  async #leave(): Promise<void> {
    try {
      await this.#parts.store.beat({ kind: 'leaving', worker: this.#id })
    } catch (error) {
      // The row stays and grows silent; neighbours will free what it may still hold.
      if (!isKhepriError(error)) throw error
    }
  }

  #report(): WorkerReport {
    const report: WorkerReport = {
      worker: this.worker,
      reason: this.#drainReason ?? 'asked',
      ...this.#counts,
      unwritten: this.#outbox.map(({ settlement }) => settlement.id),
      ms: Math.round(this.#clock.monotonic() - this.#startedAt),
    }
    this.#events.emit('worker.stopped', report)
    return report
  }

  get #profile(): WorkerProfile {
    const { name, concurrency, retryAfterMs } = this.options
    return { ...this.#parts.profile, name, concurrency, queues: this.#queuesText, leaseMs: retryAfterMs }
  }

  get #queuesText(): string {
    const { queues } = this.options
    return queues === 'all' ? '*' : queues.flat().join(',')
  }

  #later(ms: number, run: () => void): void {
    const timer = this.#clock.after(ms, () => {
      this.#timers.delete(timer)
      run()
    })
    this.#timers.add(timer)
  }

  /** 48 random bits, new at each start: no later process can be taken for this one. */
  #newId(): WorkerId {
    return 1 + Math.floor(this.#parts.random() * (2 ** 48 - 1))
  }
}
