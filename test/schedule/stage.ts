import { createKhepri, type Khepri } from '../../src/app.ts'
import type { Clock } from '../../src/core/clock.ts'
import type { ConfigInput } from '../../src/core/config.ts'
import type { JobMap } from '../../src/core/dispatch-call.ts'
import type { AnyEvent, Events } from '../../src/core/events.ts'
import { parseSchedules } from '../../src/core/schedules-setting.ts'
import { openMemorySchedules } from '../../src/core/store/memory/schedules.ts'
import { MemoryState } from '../../src/core/store/memory/state.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import type { ScheduleStore } from '../../src/core/store/schedule-store.ts'
import { readSchedules } from '../../src/schedule/schedule.ts'
import { Ticker, type TickReport } from '../../src/schedule/ticker.ts'
import { ManualClock } from '../../src/testing/index.ts'

export type Fired = Events['schedule.fired']

/** One process that looks after schedules, with everything it says. */
export class Process {
  readonly events: AnyEvent[] = []
  readonly app: Khepri
  readonly #ticker: Ticker
  readonly #clock: Clock

  constructor(
    schedules: NonNullable<ConfigInput['schedules']>,
    database: Pick<SharedMemory, 'schedules' | 'clock'>,
    clock: Clock = database.clock,
  ) {
    this.#clock = clock
    this.app = createKhepri<JobMap>({ database: 'memory:', jobs: { note: () => {} }, schedules }, { clock })
    this.app.events.onAny((event, facts) => void this.events.push({ event, ...facts } as unknown as AnyEvent))
    this.#ticker = new Ticker({
      store: database.schedules,
      schedules: readSchedules(parseSchedules(schedules), null),
      prepare: (schedule, run) => this.app.scheduledJob(schedule, run),
      ...{ events: this.app.events, clock, name: 'test', tellsOutages: true },
    })
  }

  tick(): Promise<TickReport> {
    return this.#ticker.tick()
  }

  /** Ticks by itself, as `schedule work` does, until `stop`. */
  run(): Promise<void> {
    return this.#ticker.run()
  }

  stop(): Promise<void> {
    return this.#ticker.stop()
  }

  /** What it says of one kind. */
  said<Name extends keyof Events>(name: Name): readonly Events[Name][] {
    return this.events.filter(({ event }) => event === name) as unknown as Events[Name][]
  }

  get fired(): readonly Fired[] {
    return this.said('schedule.fired')
  }

  /** The slots that led to jobs, as ISO times. */
  get slots(): readonly string[] {
    return this.fired.map(({ slot }) => new Date(slot).toISOString())
  }

  now(): number {
    return this.#clock.now()
  }
}

/** A database that several processes share, under one clock. */
export class SharedMemory {
  readonly clock: ManualClock
  readonly state: MemoryState
  readonly schedules: ScheduleStore
  readonly store: ReturnType<typeof openMemoryStore>['store']
  readonly admin: ReturnType<typeof openMemoryStore>['admin']

  constructor(start: string) {
    this.clock = new ManualClock(Date.parse(start))
    this.state = new MemoryState(this.clock)
    const { store, admin } = openMemoryStore({ state: this.state, clock: undefined })
    this.store = store
    this.admin = admin
    this.schedules = openMemorySchedules(this.state)
  }

  /** Ends every job that there is, as a worker would that has no trouble. */
  finishJobs(): void {
    for (const job of [...this.state.jobs.values()]) this.state.end(job, 'done')
  }

  /** What the jobs in the queue know of their slots, the oldest first. */
  runs(): readonly { readonly scheduledFor: string; readonly missed: number }[] {
    return [...this.state.jobs.values()].map(({ envelope }) => {
      const { schedule } = JSON.parse(envelope) as { schedule: { scheduledFor: number; missed: number } }
      return { scheduledFor: new Date(schedule.scheduledFor).toISOString(), missed: schedule.missed }
    })
  }

  /** Moves the clock to a moment that is still to come. */
  async until(moment: string | number): Promise<void> {
    await this.clock.advance(new Date(moment).getTime() - this.clock.now())
  }
}
