import type { Clock, Timer } from '../../../src/core/clock.ts'
import type { JobId, WorkerId } from '../../../src/core/store/store.ts'
import type { WorkHandle } from '../../../src/core/work.ts'
import type { Announcements } from './announcements.ts'
import type { Seeded } from './seeded.ts'
import type { Timeline } from './timeline.ts'

/** A machine: its wall clock may be set, and then every process on it sees another time. */
export class Host implements Clock {
  readonly #timeline: Timeline
  readonly #epoch = Date.UTC(2026, 0, 5, 9)
  offsetMs = 0

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  /** Whole milliseconds, as Date.now() gives them. */
  now(): number {
    return Math.floor(this.#epoch + this.#timeline.now) + this.offsetMs
  }

  monotonic(): number {
    return this.#timeline.now
  }

  after(ms: number, run: () => void): Timer {
    return this.#timeline.after(ms, run)
  }
}

/** A reservation whose answer has reached the process. */
export interface Hand {
  readonly id: JobId
  readonly fence: number
  readonly worker: WorkerId
  hasStarted: boolean
  /** How it ended was told by an event. */
  isTold: boolean
}

/** What arrives at one thread: at once, or, while it is held up, when it goes on. */
class Inbox {
  readonly #timeline: Timeline
  #holds = 0
  heldUntil = 0
  #arrived: (() => void)[] = []

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  deliver(run: () => void): void {
    if (this.#holds > 0) this.#arrived.push(run)
    else run()
  }

  holdFor(ms: number): void {
    this.#holds++
    this.heldUntil = Math.max(this.heldUntil, this.#timeline.now + ms)
    this.#timeline.after(ms, () => this.#goOn())
  }

  #goOn(): void {
    if (--this.#holds > 0) return
    for (const run of this.#arrived.splice(0)) this.#timeline.after(0, () => this.deliver(run))
  }
}

export interface ProcessParts {
  readonly name: string
  readonly pid: number
  readonly host: Host
  readonly timeline: Timeline
  readonly random: Seeded
}

/**
 * Stands for one operating-system process: it sees time through its host, and all it waits for comes through `deliver`.
 *
 * Stopped, it is frozen as by SIGSTOP: what arrives waits, while its monotonic clock goes on. Gone, it never sees anything
 * again: a promise of it that waits then waits for ever.
 */
export class SimulatedProcess implements Clock {
  readonly name: string
  readonly pid: number
  readonly host: Host
  readonly startedAt: number
  readonly #timeline: Timeline
  readonly #random: Seeded
  readonly #timers = new Set<Timer>()
  readonly #main: Inbox
  readonly #thread: Inbox
  /** What user code sees of time: its timers are its own affair. */
  readonly userClock: Clock = {
    now: () => this.now(),
    monotonic: () => this.monotonic(),
    after: (ms, run) => this.#arm(ms, run, (fire) => this.deliver(fire)),
  }
  /** What a second thread sees of time and of its timers: not held up by a blocked event loop. */
  readonly threadClock: Pick<Clock, 'after'> = {
    after: (ms, run) => this.#arm(ms, run, (fire) => this.deliverToThread(fire)),
  }
  /** A supervisor's business. */
  onGone: () => void = () => {}
  isGone = false
  worker: WorkHandle | null = null
  announcements: Announcements | null = null
  /** The id it last joined under. */
  workerId: WorkerId = 0
  readonly hands: Hand[] = []
  /** Its owner has told it to drain. */
  isToldToDrain = false
  isQuiet = false
  /** It was stopping or quiet at some time, so that it may give jobs back unasked. */
  mayGiveBack = false
  /** Cannot import the module of one of its jobs. */
  isBroken = false
  /** When what hindered its beats last ends: a stop, or a store that was away for it alone. */
  disturbedUntil = Number.NEGATIVE_INFINITY

  constructor({ name, pid, host, timeline, random }: ProcessParts) {
    this.name = name
    this.pid = pid
    this.host = host
    this.#timeline = timeline
    this.#random = random
    this.startedAt = timeline.now
    this.#main = new Inbox(timeline)
    this.#thread = new Inbox(timeline)
  }

  now(): number {
    return this.host.now()
  }

  monotonic(): number {
    return this.#timeline.now - this.startedAt
  }

  after(ms: number, run: () => void): Timer {
    const fire = (): void => {
      this.#timers.delete(timer)
      run()
    }
    const armed = this.#arm(ms, fire, (deliver) => this.deliver(deliver))
    const timer: Timer = {
      cancel: () => {
        armed.cancel()
        this.#timers.delete(timer)
      },
    }
    this.#timers.add(timer)
    return timer
  }

  /** Timers come up to a millisecond late, as they do; one that is cancelled while its process is frozen never comes. */
  #arm(ms: number, run: () => void, deliver: (fire: () => void) => void): Timer {
    if (Number.isNaN(ms)) throw new RangeError('a timer needs a number of milliseconds, got NaN')
    let isPending = true
    const fire = (): void => {
      if (isPending) run()
    }
    const entry = this.#timeline.after(Math.max(0, ms) + this.#random.next(), () => deliver(fire))
    return {
      cancel: () => {
        isPending = false
        entry.cancel()
      },
    }
  }

  /** Timers of the kernel that have not fired and were not cancelled. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /** Lets something reach the event loop: now, when it goes on, or never. */
  deliver(run: () => void): void {
    if (!this.isGone) this.#main.deliver(() => this.#unlessGone(run))
  }

  /** The same for the thread that beats. */
  deliverToThread(run: () => void): void {
    if (!this.isGone) this.#thread.deliver(() => this.#unlessGone(run))
  }

  #unlessGone(run: () => void): void {
    if (!this.isGone) run()
  }

  /** When it goes on, if it is frozen or blocked. */
  get heldUntil(): number {
    return this.#main.heldUntil
  }

  /** Freezes all of it for so long. */
  stopFor(ms: number): void {
    this.#main.holdFor(ms)
    this.#thread.holdFor(ms)
    this.disturb(ms)
  }

  /** Keeps its event loop busy for so long; a process that beats from there falls silent. */
  blockFor(ms: number, beatsFromThread: boolean): void {
    this.#main.holdFor(ms)
    if (!beatsFromThread) this.disturb(ms)
  }

  disturb(ms: number): void {
    this.disturbedUntil = Math.max(this.disturbedUntil, this.#timeline.now + ms)
  }

  /** Ends it as SIGKILL does. */
  kill(): void {
    if (this.isGone) return
    this.isGone = true
    this.onGone()
  }
}
