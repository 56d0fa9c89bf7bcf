import { Attempt, timeoutError } from './attempt.ts'
import { Batches } from './batches.ts'
import { type Clock, sleep, type Timer } from './clock.ts'
import { Contact } from './contact.ts'
import { Control } from './control.ts'
import { Crew } from './crew.ts'
import { defaults } from './defaults.ts'
import { envelopeVersion } from './envelope.ts'
import { isKhepriError } from './errors.ts'
import type { DrainReason, EventBus, JobFacts, WorkerReport } from './events.ts'
import { Membership } from './membership.ts'
import { Outbox } from './outbox.ts'
import { Pace } from './pace.ts'
import { callsFailedHook, decide, type Outcome } from './policy.ts'
import { Prefetch } from './prefetch.ts'
import { type QueueRoom, queueRoom } from './queue-limits.ts'
import { announce, announceFollowUps, type Finished, followUpsOf, settlementOf } from './settlement.ts'
import type {
  Exchanged,
  Filter,
  Look,
  Recovery,
  Reservation,
  Round,
  Sight,
  Wish,
  WorkerId,
  WorkerProfile,
} from './store/store.ts'
import { SuspectRoom } from './suspect-room.ts'
import { describeError } from './text.ts'
import { Wake } from './wake.ts'
import type { WorkCounts, WorkerParts, WorkHandle, WorkOptions } from './work.ts'

/** What a round tells the store. */
interface Told {
  readonly offered: readonly Finished[]
  readonly started: readonly Attempt[]
  readonly returns: ReturnType<Prefetch['takeReturns']>
}

/**
 * Reserves jobs, runs them, settles them.
 *
 * One loop talks to the store: each round settles what has finished and reserves for the free slots, in one transaction.
 * What runs is the crew's business, what waits to be written the outbox's, being alive the membership's.
 */
export class Worker implements WorkHandle {
  readonly options: WorkOptions
  readonly finished: Promise<WorkerReport>
  readonly #ready = Promise.withResolvers<void>()
  /** Whoever waits for the loop to turn. */
  #onTurn: (() => void)[] = []
  readonly #parts: WorkerParts
  readonly #clock: Clock
  readonly #events: EventBus
  readonly #contact: Contact
  readonly #membership: Membership
  readonly #control: Control
  readonly #crew: Crew
  readonly #outbox = new Outbox()
  readonly #batches: Batches
  readonly #pace: Pace
  readonly #wake: Wake
  readonly #prefetch: Prefetch
  readonly #suspectRoom: SuspectRoom
  /** Attempts that began out of the prefetched ones: the store has not been told yet. */
  readonly #unmarked = new Set<Attempt>()
  /** Rounds under way, and how many jobs they ask for. */
  #flights = 0
  #asked = 0
  /** When a round last ended, or the first one after none began; by the monotonic clock. */
  #flownAt = 0
  /** Ends what the store's wake-ups call; null: there are none. */
  #unlisten: (() => Promise<void>) | null = null
  /** Until when others know that this worker sleeps; by the monotonic clock. */
  #asleepUntil = 0
  /** The oldest result, or start, that waits to be told; by the monotonic clock. */
  #untoldSince: number | null = null
  readonly #startedAt: number
  /** Aborts when the drain begins, to cut a pause short. */
  readonly #draining = new AbortController()
  /** Aborts a grace after `abort()`: from then on nothing is waited for. */
  readonly #gaveUp = new AbortController()
  /** Job names whose module this process cannot import. */
  readonly #broken = new Set<string>()
  readonly #timers = new Set<Timer>()
  readonly #counts = { done: 0, retried: 0, failed: 0, released: 0, cancelled: 0, lost: 0, abandoned: 0 }
  #resting = 0
  #taken = 0
  #outages = 0
  /** The store is to be asked although there is nothing to write or to take: to see it back, or to disown. */
  #owesRound = false
  #hasSeenNewer = false
  #isQuiet = false
  #isAborting = false
  #drainReason: DrainReason | null = null
  #fatal: { readonly error: unknown } | null = null
  /** Since when a drain has had nothing to do but to write its last results. */
  #lastResultAt = 0

  private constructor(options: WorkOptions, parts: WorkerParts, finished: Promise<WorkerReport>) {
    const { clock, events, registry } = parts
    this.options = options
    this.finished = finished
    this.#parts = parts
    this.#clock = clock
    this.#events = events
    this.#startedAt = clock.monotonic()
    this.#contact = new Contact(clock, events, options.retryAfterMs / 2)
    this.#wake = new Wake(clock)
    this.#pace = new Pace(clock, options.sleepMs)
    this.#batches = new Batches(clock, options.retryAfterMs)
    this.#prefetch = new Prefetch(clock, options.concurrency, this.#mostPrefetched)
    this.#membership = this.#newMembership()
    this.#control = this.#newControl()
    this.#suspectRoom = new SuspectRoom(clock, parts.random)
    const { tries, backoff, timeoutMs, maxPayloadBytes } = options
    const gaveUp = this.#gaveUp.signal
    this.#crew = new Crew(
      {
        ...{ registry, clock, events, tries, backoff, timeoutMs, maxPayloadBytes, gaveUp },
        ...{ prepare: parts.prepare, openScope: parts.openScope ?? null },
        workerId: () => this.#membership.id,
        onStuck: () => this.#onStuck(),
        onBound: (attempt, boundMs) => this.#watch(attempt, boundMs),
      },
      {
        judge: (attempt, outcome) => this.#judge(attempt, outcome),
        freed: () => this.#onFreed(),
        hookEnded: () => this.#wake.ring(),
      },
    )
  }

  /** Writes the worker's row and starts working. Rejects where the store cannot be reached or has no schema. */
  static async start(options: WorkOptions, parts: WorkerParts): Promise<Worker> {
    const { promise, resolve, reject } = Promise.withResolvers<WorkerReport>()
    const worker = new Worker(options, parts, promise)
    await worker.#membership.join()
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
    this.#events.emit('worker.draining', { worker: this.worker, reason, running: this.#crew.undecided })
    if (this.options.drainTimeoutMs !== null) this.#later(this.options.drainTimeoutMs, () => this.abort())
    this.#draining.abort()
    // A worker that dies while draining costs its jobs nothing: the store should know soon.
    this.#membership.beatNow()
    this.#wake.ring()
  }

  abort(): void {
    this.drain()
    if (this.#isAborting) return
    this.#isAborting = true
    this.#events.emit('worker.aborting', { worker: this.worker, running: this.#crew.undecided })
    this.#later(defaults.graceMs, () => this.#gaveUp.abort())
    this.#crew.interrupt()
  }

  quiet(): void {
    if (this.#drainReason === null) this.#isQuiet = true
    this.#wake.ring()
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

  get ready(): Promise<void> {
    return this.#ready.promise
  }

  turned(): Promise<void> {
    this.#wake.ring()
    return new Promise((resolve) => this.#onTurn.push(resolve))
  }

  counts(): WorkCounts {
    const { done, retried, failed, released, cancelled, lost } = this.#counts
    return { running: this.#crew.undecided, done, retried, failed, released, cancelled, lost }
  }

  running(): readonly JobFacts[] {
    return this.#crew.runningFor(0).map(({ facts }) => facts)
  }

  async #run(): Promise<WorkerReport> {
    const { worker } = this
    const { concurrency, maxTimeMs } = this.options
    this.#events.emit('worker.started', { worker, queues: this.#queuesText, concurrency })
    this.#membership.startBeating()
    // Before the first reservation: what a neighbour held that has just died may be all there is to do.
    await this.#control.look()
    this.#control.start()
    this.#unlisten = (await this.#parts.store.listen?.(() => this.#onWake())) ?? null
    this.#reportBusyLater()
    if (maxTimeMs !== null) this.#later(maxTimeMs, () => this.drain('max-time'))
    try {
      await this.#workUntilFinished()
      // What hung may yet commit a reservation: a row that is left to grow silent is how others will find it.
      if (this.#batches.disowned.length === 0) await this.#membership.leave()
    } finally {
      for (const timer of this.#timers) timer.cancel()
      this.#crew.dismiss()
      await this.#unlisten?.()
    }
    return this.#report()
  }

  async #workUntilFinished(): Promise<void> {
    try {
      while (!this.#isFinished) await this.#step()
    } catch (error) {
      this.#crew.lose()
      throw error
    } finally {
      await this.#control.stop()
      await this.#membership.stopBeating()
    }
  }

  async #step(): Promise<void> {
    if (this.#fatal) throw this.#fatal.error
    if (!this.#hangs) for (const turned of this.#onTurn.splice(0)) turned()
    this.#tidy()
    if (this.#isTimeToSend) this.#send()
    else await this.#wake.wait(this.#idleMs)
  }

  /** Starts what waits for a free slot, and gives back what has waited for too long or may not start any more. */
  #tidy(): void {
    if (this.#mayStart) this.#startPrefetched()
    if (this.#mayStart) this.#prefetch.giveBackStale()
    else this.#prefetch.giveBackAll()
  }

  get #mayStart(): boolean {
    return !this.#isStopping && !this.#suspectRoom.isOpen && this.#membership.isGood && this.#outages === 0
  }

  #startPrefetched(): void {
    while (this.#slots > 0) {
      const next = this.#prefetch.next()
      if (next === undefined) return
      this.#unmarked.add(this.#begin(next))
      this.#hasToTell()
    }
  }

  /** One round, begun now and not waited for. */
  #send(): void {
    const reserve = this.#nextWish()
    if (this.#flights++ === 0) this.#flownAt = this.#clock.monotonic()
    this.#asked += reserve?.limit ?? 0
    void this.#exchange(reserve)
      .catch((error: unknown) => this.#stopWith(error))
      .finally(() => {
        this.#flights--
        this.#flownAt = this.#clock.monotonic()
        this.#asked -= reserve?.limit ?? 0
        this.#wake.ring()
      })
  }

  /** Stores answer, or give up, long before a lease is over. */
  get #hangs(): boolean {
    return this.#flights > 0 && this.#clock.monotonic() - this.#flownAt > this.options.retryAfterMs
  }

  get #isTimeToSend(): boolean {
    if (!this.#maySend) return false
    if (this.#owesRound && this.#flights === 0) return true
    return this.#canReserve || this.#untoldForMs >= this.#patienceMs
  }

  /** In an outage one round at a time finds out whether it is over. */
  get #maySend(): boolean {
    return this.#flights < (this.#outages > 0 ? 1 : (this.#parts.store.flights ?? 1))
  }

  /** A slot idles, or soon will, and it is time to look. */
  get #canReserve(): boolean {
    if (this.#free > 0) return this.#pace.waitMs <= 0 || !this.#outbox.isEmpty
    return this.#prefetchRoom > 0 && this.#prefetch.isLow && this.#pace.waitMs <= 0
  }

  /** What to reserve now; null where no slot is free, or it is not time to look again. */
  #nextWish(): Wish | null {
    if (!this.#canReserve) return null
    const started = this.#free
    const limit = Math.max(started, this.#prefetchRoom)
    const batch = this.#batches.next()
    return { ...this.#filter, limit, started, maxBytes: defaults.maxReservedBytes, batch, sleepMs: this.#sleepMs }
  }

  /** How long this worker may sleep if it finds nothing; null: it does not sleep, or has said so and it still holds. */
  get #sleepMs(): number | null {
    const { once, stopWhenEmpty, sleepMs } = this.options
    if (this.#unlisten === null || once || stopWhenEmpty) return null
    return this.#asleepUntil - this.#clock.monotonic() > sleepMs ? null : 3 * sleepMs
  }

  /** Slots to fill now. */
  get #free(): number {
    if (!this.#mayReserve) return 0
    if (this.#suspectRoom.isOpen && (this.#crew.undecided > 0 || this.#asked > 0)) return 0
    return Math.max(0, Math.min(this.#slots - this.#asked, this.#allowed, this.#room.most))
  }

  /** How many jobs may be reserved for slots that are not free yet. */
  get #prefetchRoom(): number {
    if (!this.#mayReserve || this.#suspectRoom.isOpen || this.#outages > 0) return 0
    return Math.max(0, this.#prefetch.room - this.#asked)
  }

  get #mayReserve(): boolean {
    if (this.#isStopping || !this.#membership.isGood || this.#crew.runsSuspect) return false
    return this.#outages === 0 || this.#outbox.isEmpty
  }

  /** Slots in which nothing runs. */
  get #slots(): number {
    return this.options.concurrency - this.#crew.size - this.#resting
  }

  get #room(): QueueRoom {
    const { queueLimits, queues } = this.options
    return queueRoom(queueLimits, queues, (queue) => this.#crew.sizeOf(queue))
  }

  /** Jobs that this worker may still take in its life. */
  get #allowed(): number {
    const allowed = this.options.once ? 1 : (this.options.maxJobs ?? Number.POSITIVE_INFINITY)
    return allowed - this.#taken - this.#asked
  }

  /** Who counts its jobs, rests between them, or has queues with limits of their own takes none in advance. */
  get #mostPrefetched(): number {
    const { once, maxJobs, restMs, queueLimits, concurrency } = this.options
    const isCounted = once || maxJobs !== null || restMs > 0 || queueLimits.size > 0
    return isCounted ? concurrency : defaults.mostPrefetched * (this.#parts.store.flights ?? 1)
  }

  get #untoldForMs(): number {
    if (this.#outbox.isEmpty && this.#unmarked.size === 0 && !this.#prefetch.hasReturns) return Number.NEGATIVE_INFINITY
    return this.#untoldSince === null ? Number.POSITIVE_INFINITY : this.#clock.monotonic() - this.#untoldSince
  }

  /** Results wait for company while other jobs run here; nobody waits at the end, and nothing that goes back does. */
  get #patienceMs(): number {
    if (this.#prefetch.hasReturns || this.#isStopping || this.#outbox.size >= defaults.mostSettled) return 0
    return this.#prefetch.size > 0 || this.#unmarked.size > 0 ? defaults.settleWithinMs : 0
  }

  get #isStopping(): boolean {
    return this.#drainReason !== null || this.#isQuiet
  }

  get #filter(): Filter {
    const { queues, only, except, unknownJobs } = this.options
    const known = unknownJobs === 'wait' ? this.#parts.registry.names() : null
    return {
      queues,
      exceptQueues: this.#room.full,
      only: known && only ? known.filter((name) => only.includes(name)) : (known ?? only),
      except: this.#broken.size === 0 ? except : [...except, ...this.#broken],
      exclude: this.#crew.excluded,
      maxVersion: envelopeVersion,
      suspects: this.#crew.undecided === 0 && this.#prefetch.size === 0 && this.#asked === 0,
    }
  }

  /** How long nothing needs to be done, unless somebody rings; null: until somebody does. */
  get #idleMs(): number | null {
    const waits = [this.#lookInMs, this.#prefetch.staleInMs, this.#tellInMs].filter((ms) => ms !== null)
    return waits.length === 0 ? null : Math.max(0, Math.min(...waits))
  }

  get #lookInMs(): number | null {
    // Its end rings.
    if (!this.#maySend) return null
    if (this.#free > 0 || (this.#prefetchRoom > 0 && this.#prefetch.isLow)) return this.#pace.waitMs
    // Silence ends with a beat, which rings; a drain is watched over so that its patience can end.
    return this.#drainReason === null && this.#membership.isGood ? null : this.#membership.everyMs
  }

  get #tellInMs(): number | null {
    if (!this.#maySend || this.#untoldForMs < 0) return null
    return this.#patienceMs - this.#untoldForMs
  }

  async #exchange(reserve: Wish | null): Promise<void> {
    const offered = this.#outbox.take()
    const started = this.#takeUnmarked()
    const returns = this.#prefetch.takeReturns()
    const settle = [...offered.map(({ settlement }) => settlement), ...returns]
    this.#untoldSince = null
    const worker = this.#membership.id
    const start = started.map(({ reservation: { id, fence } }) => ({ id, fence }))
    const round: Round = {
      worker,
      settle,
      enqueue: followUpsOf(offered),
      disown: this.#batches.disowned,
      start,
      reserve,
    }
    const sentAt = this.#clock.monotonic()
    let answer: Exchanged
    try {
      answer = await this.#parts.store.exchange(round)
    } catch (error) {
      this.#takeBack({ offered, started, returns }, round, error)
      return this.#outage(error, sentAt)
    }
    this.#outages = 0
    this.#owesRound = false
    this.#contact.good('exchange')
    this.#batches.freed(round.disown, sentAt)
    this.#conclude(offered, answer)
    announceFollowUps(round.enqueue, answer.ids, this.#events)
    // Declared dead meanwhile: what came under the old id is swept up by the next recovery.
    if (worker !== this.#membership.id) return
    this.#crew.lost(answer.lost)
    if (!reserve) return
    this.#ready.resolve()
    // The answer took longer than the lease. Only the store knows whether anybody has taken us for dead meanwhile.
    if (!this.#membership.isGood) await this.#membership.confirm()
    if (worker !== this.#membership.id || !this.#membership.isGood) return this.#leaveToOthers(reserve)
    if (answer.reserved[0]?.suspect) this.#suspectRoom.used()
    else if (this.#suspectRoom.isOpen) this.#suspectRoom.close()
    this.#receive(answer.reserved, reserve)
    await this.#afterLook(reserve, answer, sentAt)
  }

  /** What was reserved for a free slot begins; the rest waits for one, or goes back. */
  #receive(reserved: readonly Reservation[], { started }: Wish): void {
    // Told to stop while the answer was under way: what has not started goes back.
    if (this.#isStopping) return this.#prefetch.refuse(reserved)
    for (const reservation of reserved.slice(0, started)) this.#begin(reservation)
    this.#prefetch.reserved()
    const more = reserved.slice(started)
    const lone = more.findIndex((reservation) => !this.#crew.mayWait(reservation))
    this.#prefetch.add(lone === -1 ? more : more.slice(0, lone))
    if (lone !== -1) this.#prefetch.refuse(more.slice(lone))
  }

  /** Attempts that run and whose start the store does not know; one that has ended is told with its result. */
  #takeUnmarked(): readonly Attempt[] {
    const started = [...this.#unmarked].filter((attempt) => !attempt.isDecided)
    this.#unmarked.clear()
    return started
  }

  /** The answer came after our lease had run out: others may hold by now, or have done, what it brings. */
  #leaveToOthers({ batch }: Wish): void {
    this.#batches.disown(batch)
    this.#owesRound = true
  }

  /** The round may have been written: its results may be refused as settled already, its reservation is disowned. */
  #takeBack({ offered, started, returns }: Told, round: Round, error: unknown): void {
    // Declared dead meanwhile: a refusal then means that the job is somebody else's.
    const isSame = round.worker === this.#membership.id
    const mayBeWritten = isSame && isKhepriError(error) && error.code === 'OUTCOME_UNKNOWN'
    this.#outbox.putBack(offered, mayBeWritten)
    this.#untoldSince ??= this.#clock.monotonic()
    if (isSame) {
      for (const attempt of started) this.#unmarked.add(attempt)
      this.#prefetch.putBack(returns)
    }
    if (mayBeWritten && round.reserve) this.#batches.disown(round.reserve.batch)
  }

  async #outage(error: unknown, sentAt: number): Promise<void> {
    // A fault of our own is not cured by trying again.
    if (!isKhepriError(error) || error.code === 'BUG') throw error
    this.#owesRound = true
    this.#contact.lost('exchange', error, sentAt)
    await this.#pauseAfterOutage()
  }

  /** Waits ever longer up to 5 s, with jitter; the start of a drain cuts it short, once. */
  async #pauseAfterOutage(): Promise<void> {
    const longestMs = Math.min(5_000, 100 * 2 ** Math.min(this.#outages++, 6))
    const signal = this.#draining.signal.aborted ? undefined : this.#draining.signal
    await sleep(this.#clock, longestMs * (0.5 + this.#parts.random() / 2), signal)
  }

  #conclude(offered: readonly Finished[], answer: Exchanged): void {
    if (!this.#membership.isGood) this.#outbox.forgetDoubts()
    const { settled, lost } = this.#outbox.sort(offered, answer.lost)
    for (const { attempt } of lost) this.#reportLost(attempt)
    const cancelled = new Set(answer.cancelled)
    for (const finished of settled) {
      const isCancelled = cancelled.has(finished.settlement.id)
      this.#settled(isCancelled ? { ...finished, verdict: { kind: 'cancel', error: null } } : finished)
    }
  }

  #settled(finished: Finished): void {
    const { attempt, verdict } = finished
    if (verdict.kind === 'complete') this.#counts.done++
    else if (verdict.kind === 'retry') this.#counts.retried++
    else if (verdict.kind === 'fail') this.#counts.failed++
    else if (verdict.kind === 'cancel') this.#counts.cancelled++
    else this.#counts.released++
    if (verdict.kind === 'release' && attempt.isStuck) this.#counts.abandoned++
    announce(finished, this.#events)
    if (callsFailedHook(verdict)) this.#crew.runFailedHook(attempt, verdict.error)
  }

  #reportLost(attempt: Attempt): void {
    this.#counts.lost++
    this.#events.emit('job.lost', { ...attempt.facts, ms: attempt.ms })
  }

  #begin(reservation: Reservation): Attempt {
    this.#membership.jobBegins()
    this.#taken++
    const attempt = this.#crew.begin(reservation)
    if (this.options.once) this.drain('once')
    else if (this.#taken === this.options.maxJobs) this.drain('max-jobs')
    return attempt
  }

  #judge(attempt: Attempt, outcome: Outcome): void {
    if (outcome.kind === 'unloadable') this.#stopServing(attempt.reservation.job, outcome)
    this.#lastResultAt = this.#clock.monotonic()
    const verdict = decide(outcome, attempt, this.#parts.random())
    if (verdict.kind === 'drop') this.#reportLost(attempt)
    else this.#outbox.add({ attempt, verdict, settlement: settlementOf(attempt, verdict, this.worker, this.options) })
    this.#prefetch.ended(attempt.elapsedMs)
    this.#hasToTell()
    // Otherwise its slot is free in a moment, and that rings.
    if (!attempt.hasReturned) this.#wake.ring()
  }

  #onFreed(): void {
    if (this.options.restMs > 0) this.#rest()
    if (this.#mayStart) this.#startPrefetched()
    // While prefetched jobs keep the slots busy, the loop has something to do only now and then.
    if (this.#prefetch.size === 0 || this.#isTimeToSend) this.#wake.ring()
  }

  /** From now on results, or starts, wait for company, and the loop for as long as they may. */
  #hasToTell(): void {
    if (this.#untoldSince !== null) return
    this.#untoldSince = this.#clock.monotonic()
    this.#wake.ring()
  }

  #rest(): void {
    this.#resting++
    this.#later(this.options.restMs, () => {
      this.#resting--
      this.#wake.ring()
    })
  }

  /** With every slot, or all that a queue may have, taken by handlers that ignore their signal, only a new process helps. */
  #onStuck(): void {
    const { concurrency, queueLimits } = this.options
    const isFull = [...queueLimits].some(([queue, limit]) => this.#crew.stuckIn(queue) >= limit)
    if (isFull || this.#crew.stuck >= concurrency) this.drain('stuck')
  }

  #stopServing(job: string, { source, message }: Outcome & { readonly kind: 'unloadable' }): void {
    if (this.#broken.has(job)) return
    this.#broken.add(job)
    this.#events.emit('module.broken', { job, source, message })
    const { only, except } = this.options
    const names = this.#parts.registry.names()
    const served = names.filter((name) => (only?.includes(name) ?? true) && !except.includes(name))
    if (served.every((name) => this.#broken.has(name))) this.drain('modules')
  }

  async #afterLook(wish: Wish, { reserved, more = false }: Exchanged, sentAt: number): Promise<void> {
    if (reserved.length > 0 || more) return this.#pace.found(more || reserved.length >= wish.limit)
    if (wish.sleepMs !== null) {
      const wasKnown = this.#asleepUntil > this.#clock.monotonic()
      this.#asleepUntil = sentAt + wish.sleepMs
      // What came after the look and before anybody knew that we sleep wakes nobody: once more.
      if (!wasKnown) return this.#pace.lookNow()
    }
    const dueMs = await this.#nextDue(wish)
    if (dueMs === undefined) return
    this.#pace.foundNothing(dueMs)
    // Ready, though it was not reserved: a neighbour had it locked just then. It may yet be ours.
    if (dueMs !== 0) this.#stopIfEmpty()
  }

  /** undefined: the store could not be asked. */
  async #nextDue(filter: Filter): Promise<number | null | undefined> {
    const sentAt = this.#clock.monotonic()
    try {
      return await this.#parts.store.nextDue(filter)
    } catch (error) {
      await this.#outage(error, sentAt)
      return undefined
    }
  }

  #stopIfEmpty(): void {
    if (this.#crew.undecided > 0 || !this.#outbox.isEmpty || this.#prefetch.size > 0 || this.#flights > 1) return
    if (this.options.once) this.drain('once')
    else if (this.options.stopWhenEmpty) this.drain('empty')
  }

  get #isFinished(): boolean {
    if (this.#drainReason === null || this.#flights > 0) return false
    if (this.#crew.undecided > 0 || this.#crew.hooks > 0 || this.#prefetch.size > 0) return false
    return (this.#outbox.isEmpty && !this.#prefetch.hasReturns) || this.#hasGivenUpWriting
  }

  /** A drain offers its last results for at least one lease; after that others may run these jobs anyway. */
  get #hasGivenUpWriting(): boolean {
    const patienceMs = Math.max(this.options.retryAfterMs, this.options.drainTimeoutMs ?? 0)
    return this.#clock.monotonic() - this.#lastResultAt > patienceMs
  }

  #newMembership(): Membership {
    const { store, clock, random, startBeat } = this.#parts
    return new Membership({
      store,
      clock,
      random,
      startBeat,
      contact: this.#contact,
      profile: this.#profile,
      isDraining: () => this.#drainReason !== null,
      onDeclaredDead: () => this.#onDeclaredDead(),
      onBeat: () => this.#onBeat(),
      onFatal: (error) => this.#stopWith(error),
    })
  }

  #stopWith(error: unknown): void {
    this.#fatal ??= { error }
    this.#wake.ring()
  }

  #newControl(): Control {
    const { store, clock, fateOf, beforeFreeing } = this.#parts
    return new Control({
      store,
      clock,
      fateOf,
      beforeFreeing,
      contact: this.#contact,
      judgeEveryMs: this.#membership.everyMs,
      look: () => this.#look(),
      onSight: (sight, { worker }) => this.#onSight(sight, worker),
      onRecovery: (recovery) => this.#onRecovery(recovery),
      onFatal: (error) => this.#stopWith(error),
    })
  }

  #look(): Look {
    const { host } = this.#parts.profile
    return { worker: this.#membership.id, host, held: this.#crew.held, filter: this.#filter }
  }

  async #onSight({ known, restart, cancelled, suspectWaitMs, newer }: Sight, asked: WorkerId): Promise<void> {
    this.#crew.cancel(cancelled)
    if (restart) this.drain('restart')
    this.#suspectRoom.see(suspectWaitMs)
    this.#wake.ring()
    if (newer && !this.#hasSeenNewer) this.#events.emit('envelopes.newer', { worker: this.worker })
    this.#hasSeenNewer ||= newer
    if (!known) await this.#membership.declaredDead(asked)
  }

  #onRecovery({ dead, freed, bad }: Recovery): void {
    if (dead.length > 0 || freed > 0) this.#events.emit('workers.dead', { count: dead.length, freed })
    if (bad.length > 0) this.#events.emit('rows.bad', { jobs: bad })
    if (freed > 0) this.#lookNow()
  }

  /** After each beat: what hung may have committed by now. */
  #onBeat(): void {
    if (this.#batches.disowned.length > 0) this.#owesRound = true
    this.#wake.ring()
  }

  #reportBusyLater(): void {
    this.#later(defaults.busyMs, () => {
      const jobs = this.#crew.runningFor(defaults.busyMs).map(({ facts, ms }) => ({ ...facts, ms }))
      if (jobs.length > 0) this.#events.emit('worker.busy', { worker: this.worker, jobs })
      this.#reportBusyLater()
    })
  }

  /** Lets the beat thread settle an attempt should it run out while this event loop is blocked. */
  #watch(attempt: Attempt, timeoutMs: number): () => void {
    const { id, fence } = attempt.reservation
    const verdict = decide({ kind: 'threw', error: timeoutError(timeoutMs) }, attempt, this.#parts.random())
    const retryMs = verdict.kind === 'retry' ? verdict.delayMs : null
    return this.#parts.watch.enter({
      id,
      fence,
      attempt: attempt.attempt,
      startedAt: attempt.startedAt,
      timeoutMs,
      retryMs,
    })
  }

  #onDeclaredDead(): void {
    this.#crew.lose()
    for (const { attempt } of this.#outbox.abandon()) this.#reportLost(attempt)
    this.#batches.forget()
    this.#prefetch.forget()
    this.#unmarked.clear()
  }

  /** A job may have become ready. Nobody looks for every job of everybody else. */
  #onWake(): void {
    if (this.#free <= 0) return
    this.#pace.wake()
    this.#wake.ring()
  }

  #lookNow(): void {
    this.#pace.lookNow()
    this.#wake.ring()
  }

  #report(): WorkerReport {
    const report: WorkerReport = {
      worker: this.worker,
      reason: this.#drainReason ?? 'asked',
      ...this.#counts,
      unwritten: this.#outbox.contents.map(({ settlement }) => settlement.id),
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
}
