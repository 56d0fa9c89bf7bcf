import { type Clock, sleep } from '../core/clock.ts'
import { defaults } from '../core/defaults.ts'
import type { ScheduledRun } from '../core/envelope.ts'
import { isTransient } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { Definition, ScheduleSight, ScheduleStore, StoredSchedule } from '../core/store/schedule-store.ts'
import type { JobId, NewJob } from '../core/store/store.ts'
import { describeError } from '../core/text.ts'
import { dueAt, planDue } from './due.ts'
import type { Schedule } from './schedule.ts'

/** What looking after schedules needs. */
export interface TickerParts {
  readonly store: ScheduleStore
  readonly schedules: readonly Schedule[]
  /** The row to enqueue for one run. */
  readonly prepare: (schedule: Schedule, run: ScheduledRun) => Promise<NewJob>
  readonly events: EventBus
  readonly clock: Clock
  /** Who looks, for people. */
  readonly name: string
  /** True where nobody else tells of a store that is lost. */
  readonly tellsOutages: boolean
}

/** What one look has led to. */
export interface TickReport {
  /** Jobs that were enqueued. */
  readonly fired: number
  /** The store's now, and when the next slot is due; epoch ms. Null: none of these schedules is due by itself. */
  readonly now: number
  readonly nextAt: number | null
}

/**
 * Looks after schedules: takes the slots that have come and enqueues their jobs.
 *
 * Any number may do it at once; the store lets one of them have a slot. Nothing is remembered that the store does not
 * know, so one that is killed leaves no gap that another one would not see.
 */
export class Ticker {
  readonly #parts: TickerParts
  readonly #stopped = new AbortController()
  /** When this process read the configuration: by the monotonic clock, and once the store has been asked by that one's. */
  readonly #madeAt: number
  #begunAt: number | null = null
  #writtenAt = Number.NEGATIVE_INFINITY
  #loop: Promise<void> | null = null
  /** When each schedule is due after its last slot: a calendar is not asked twice for the same. */
  readonly #due = new Map<string, { readonly lastSlot: number; readonly at: number }>()
  /** What was said, and need not be said again. */
  readonly #outdated = new Set<string>()
  readonly #faults = new Map<string, string>()

  constructor(parts: TickerParts) {
    this.#parts = parts
    this.#madeAt = parts.clock.monotonic()
  }

  /** Ticks until `stop`; resolves then. */
  run(): Promise<void> {
    this.#loop ??= this.#run()
    return this.#loop
  }

  /** Takes no more slots; resolves when what was under way has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#loop
  }

  async #run(): Promise<void> {
    const { clock } = this.#parts
    let lostAt: number | null = null
    while (!this.#stopped.signal.aborted) {
      const outcome = await this.#attempt()
      if (outcome.report && lostAt !== null) this.#back(clock.monotonic() - lostAt)
      if (!outcome.report && lostAt === null) this.#lost(outcome.error)
      lostAt = outcome.report ? null : (lostAt ?? clock.monotonic())
      await sleep(clock, outcome.report ? pauseOf(outcome.report) : defaults.sleepMs, this.#stopped.signal)
    }
  }

  async #attempt(): Promise<{ readonly report: TickReport } | { readonly report: null; readonly error: unknown }> {
    try {
      return { report: await this.tick() }
    } catch (error) {
      return { report: null, error }
    }
  }

  #lost(error: unknown): void {
    const { message } = describeError(error)
    if (this.#parts.tellsOutages || !isTransient(error)) this.#parts.events.emit('store.lost', { message })
  }

  #back(outageMs: number): void {
    if (this.#parts.tellsOutages) this.#parts.events.emit('store.back', { outageMs })
  }

  /** Looks once. Rejects where the store does; a fault of one schedule is told as an event, and the others go on. */
  async tick(): Promise<TickReport> {
    const sight = await this.#look()
    const stored = new Map(sight.schedules.map((schedule) => [schedule.name, schedule]))
    let fired = 0
    let nextAt: number | null = null
    for (const schedule of this.#parts.schedules) {
      const known = stored.get(schedule.name)
      if (!known || !this.#isOurs(schedule, known) || !mayFire(schedule, known)) continue
      const served = await this.#serve(schedule, known, sight)
      fired += served.fired
      if (served.nextAt !== null) nextAt = Math.min(nextAt ?? served.nextAt, served.nextAt)
    }
    await this.#write(sight.now)
    return { fired, now: sight.now, nextAt }
  }

  /** Sees what the store knows, once it knows what this configuration says. */
  async #look(): Promise<ScheduleSight> {
    const { store, clock } = this.#parts
    const sight = await store.look()
    this.#begunAt ??= Math.round(sight.now - (clock.monotonic() - this.#madeAt))
    const definitions = this.#unwritten(sight, this.#begunAt)
    if (definitions.length === 0) return sight
    await store.define(definitions, this.#begunAt)
    return store.look()
  }

  /** What a process that began earlier has written, or nobody: also of schedules that are no more. */
  #unwritten({ schedules }: ScheduleSight, begunAt: number): readonly Definition[] {
    const stored = new Map(schedules.map((schedule) => [schedule.name, schedule]))
    const ours = this.#parts.schedules.map((schedule) => schedule.stored)
    const names = new Set(ours.map(({ name }) => name))
    const orphans = schedules.filter(({ name, definition }) => definition !== '' && !names.has(name))
    return [
      ...ours.filter(({ name }) => (stored.get(name)?.definedAt ?? 0) < begunAt),
      ...orphans.flatMap(({ name, definedAt }) => (definedAt < begunAt ? [{ name, definition: '', cadence: '' }] : [])),
    ]
  }

  #isOurs({ name, stored }: Schedule, { definition }: StoredSchedule): boolean {
    if (definition === stored.definition) return true
    if (!this.#outdated.has(name)) this.#parts.events.emit('schedule.outdated', { schedule: name })
    this.#outdated.add(name)
    return false
  }

  async #serve(
    schedule: Schedule,
    stored: StoredSchedule,
    sight: ScheduleSight,
  ): Promise<{ readonly fired: number; readonly nextAt: number | null }> {
    const { now } = sight
    if (stored.waitingSlot === null && this.#dueAt(schedule, stored.lastSlot) > now)
      return { fired: 0, nextAt: this.#dueAt(schedule, stored.lastSlot) }
    try {
      if (await this.#isHeld(schedule, sight)) return { fired: 0, nextAt: null }
      const fired = (await this.#fireWaiting(schedule, stored, now)) + (await this.#fireDue(schedule, stored, now))
      this.#faults.delete(schedule.name)
      const waits = stored.waitingSlot === null ? Number.POSITIVE_INFINITY : now + defaults.waitingTickMs
      return { fired, nextAt: Math.min(waits, this.#nextAfter(schedule, stored, now)) }
    } catch (error) {
      if (isTransient(error)) throw error
      this.#fail(schedule, error)
      return { fired: 0, nextAt: null }
    }
  }

  /** Of the same slot each second: what a schedule is due at is asked for once. */
  #dueAt(schedule: Schedule, lastSlot: number): number {
    const known = this.#due.get(schedule.name)
    if (known?.lastSlot === lastSlot) return known.at
    const at = dueAt(schedule, lastSlot)
    this.#due.set(schedule.name, { lastSlot, at })
    return at
  }

  #nextAfter(schedule: Schedule, { lastSlot }: StoredSchedule, now: number): number {
    return dueAt(schedule, Math.max(lastSlot, now - schedule.offsetMs))
  }

  async #isHeld(schedule: Schedule, { pausedQueues, now }: ScheduleSight): Promise<boolean> {
    if (schedule.whilePaused === 'enqueue' || pausedQueues.length === 0) return false
    const { queue } = await this.#job(schedule, { slot: now, missed: 0 }, now)
    return pausedQueues.includes(queue)
  }

  async #fireWaiting(schedule: Schedule, { waitingSlot, missed }: StoredSchedule, now: number): Promise<number> {
    if (waitingSlot === null) return 0
    const { name, stored } = schedule
    const job = await this.#job(schedule, { slot: waitingSlot, missed }, now)
    const id = await this.#parts.store.takeWaiting({ name, definition: stored.definition, slot: waitingSlot, job })
    if (id === null) return 0
    this.#tell(name, { slot: waitingSlot, missed, id, job })
    return 1
  }

  async #fireDue(schedule: Schedule, seen: StoredSchedule, now: number): Promise<number> {
    const plan = planDue(schedule, seen, now)
    if (plan === null) return 0
    const { name, overlap, stored } = schedule
    const runs = await Promise.all(plan.runs.map(async (run) => ({ ...run, job: await this.#job(schedule, run, now) })))
    const { upTo, missed } = plan
    const taking = { name, definition: stored.definition, after: seen.lastSlot, upTo, missed, overlap, runs }
    const taken = await this.#parts.store.take(taking)
    if (taken === null) return 0
    if (plan.late > 0)
      this.#parts.events.emit('schedule.misfired', { schedule: name, slot: upTo, missed: plan.late, runs: runs.length })
    for (const { slot, id, fate } of taken) {
      const run = runs.find((each) => each.slot === slot)
      if (run && id !== null) this.#tell(name, { ...run, id })
      else
        this.#parts.events.emit(fate === 'waiting' ? 'schedule.waiting' : 'schedule.skipped', { schedule: name, slot })
    }
    return taken.filter(({ id }) => id !== null).length
  }

  #job(schedule: Schedule, { slot, missed }: { readonly slot: number; readonly missed: number }, now: number) {
    return this.#parts.prepare(schedule, { name: schedule.name, scheduledFor: slot, firedAt: now, missed })
  }

  #tell(
    schedule: string,
    { slot, missed, id, job: { job, queue } }: { slot: number; missed: number; id: JobId; job: NewJob },
  ): void {
    this.#parts.events.emit('schedule.fired', { schedule, slot, id, job, queue, missed })
    this.#parts.events.emit('job.enqueued', { id, job, queue })
  }

  #fail({ name }: Schedule, thrown: unknown): void {
    const error = describeError(thrown)
    if (this.#faults.get(name) === error.message) return
    this.#faults.set(name, error.message)
    this.#parts.events.emit('schedule.failed', { schedule: name, error })
  }

  /** Not at each tick: it is for people who ask whether anybody looks at all. */
  async #write(now: number): Promise<void> {
    if (Math.abs(now - this.#writtenAt) < defaults.longestTickMs) return
    await this.#parts.store.tick(this.#parts.name)
    this.#writtenAt = now
  }
}

function mayFire({ enabled }: Schedule, { pausedAt }: StoredSchedule): boolean {
  return enabled && pausedAt === null
}

/** Clamped at both ends: a clock that is set shows soon, and an early timer sleeps once more. */
function pauseOf({ now, nextAt }: TickReport): number {
  const waitMs = nextAt === null ? defaults.longestTickMs : nextAt - now
  return Math.min(Math.max(waitMs, defaults.leastTickMs), defaults.longestTickMs)
}
