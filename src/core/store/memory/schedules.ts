import type { Definition, ScheduleSight, ScheduleStore, Taken, Taking, Waiting } from '../schedule-store.ts'
import { keptSlots } from '../schedule-store.ts'
import type { JobId, NewJob } from '../store.ts'
import type { MemoryState, ScheduleState } from './state.ts'

/** Opens the schedules of a memory store. */
export function openMemorySchedules(state: MemoryState): ScheduleStore {
  return new MemorySchedules(state)
}

class MemorySchedules implements ScheduleStore {
  readonly #state: MemoryState

  constructor(state: MemoryState) {
    this.#state = state
  }

  async look(): Promise<ScheduleSight> {
    const schedules = [...this.#state.schedules.values()]
    const queues = [...this.#state.pauses.keys()]
    return {
      now: this.#state.now(),
      schedules: schedules.map(({ slots: _, ...schedule }) => schedule).sort((a, b) => (a.name < b.name ? -1 : 1)),
      pausedQueues: queues.filter((queue) => this.#state.isPaused(queue)),
      lastTick: this.#state.lastTick,
    }
  }

  async define(definitions: readonly Definition[], begunAt: number): Promise<void> {
    for (const definition of definitions) this.#define(definition, begunAt)
  }

  #define({ name, definition, cadence }: Definition, begunAt: number): void {
    const known = this.#state.schedules.get(name) ?? this.#add(name)
    if (known.definedAt >= begunAt) return
    if (known.cadence !== cadence) Object.assign(known, { lastSlot: this.#state.now(), missed: 0, waitingSlot: null })
    Object.assign(known, { definition, cadence, definedAt: begunAt })
  }

  #add(name: string): ScheduleState {
    const nothing = { missed: 0, waitingSlot: null, pausedAt: null, lastJob: null, firedAt: null, slots: new Map() }
    const schedule = { name, definition: '', cadence: '', definedAt: 0, lastSlot: this.#state.now(), ...nothing }
    this.#state.schedules.set(name, schedule)
    return schedule
  }

  async take({ name, definition, after, upTo, missed, overlap, runs }: Taking): Promise<readonly Taken[] | null> {
    const schedule = this.#active(name, definition)
    if (schedule?.lastSlot !== after) return null
    Object.assign(schedule, { lastSlot: upTo, missed })
    const taken = runs
      .filter(({ slot }) => !schedule.slots.has(slot))
      .map(({ slot, job }): Taken => {
        if (overlap === 'allow' || !this.#isLive(schedule))
          return { slot, id: this.#enqueue(schedule, slot, job), fate: 'enqueued' }
        schedule.slots.set(slot, null)
        if (overlap === 'skip' || schedule.waitingSlot !== null) return { slot, id: null, fate: 'skipped' }
        schedule.waitingSlot = slot
        return { slot, id: null, fate: 'waiting' }
      })
    for (const slot of [...schedule.slots.keys()].sort((a, b) => a - b).slice(0, -keptSlots))
      schedule.slots.delete(slot)
    return taken
  }

  async takeWaiting({ name, definition, slot, job }: Waiting): Promise<JobId | null> {
    const schedule = this.#active(name, definition)
    if (schedule?.waitingSlot !== slot || this.#isLive(schedule)) return null
    Object.assign(schedule, { waitingSlot: null, missed: 0 })
    return this.#enqueue(schedule, slot, job)
  }

  #active(name: string, definition: string): ScheduleState | null {
    const schedule = this.#state.schedules.get(name)
    return schedule?.definition === definition && schedule.pausedAt === null ? schedule : null
  }

  #isLive({ slots, lastJob }: ScheduleState): boolean {
    return [lastJob, ...slots.values()].some((id) => id !== null && this.#state.jobs.has(id))
  }

  #enqueue(schedule: ScheduleState, slot: number, job: NewJob): JobId {
    const { id } = this.#state.insert(job)
    schedule.slots.set(slot, id)
    Object.assign(schedule, { lastJob: id, firedAt: this.#state.now() })
    return id
  }

  async trigger(name: string, job: NewJob): Promise<JobId> {
    const schedule = this.#state.schedules.get(name) ?? this.#add(name)
    const { id } = this.#state.insert(job)
    Object.assign(schedule, { lastJob: id, firedAt: this.#state.now() })
    return id
  }

  async pause(name: string): Promise<void> {
    const schedule = this.#state.schedules.get(name) ?? this.#add(name)
    schedule.pausedAt ??= this.#state.now()
  }

  async resume(name: string): Promise<boolean> {
    const schedule = this.#state.schedules.get(name)
    if (schedule === undefined || schedule.pausedAt === null) return false
    Object.assign(schedule, { pausedAt: null, lastSlot: this.#state.now(), missed: 0, waitingSlot: null })
    return true
  }

  async tick(ticker: string): Promise<void> {
    this.#state.lastTick = { at: this.#state.now(), ticker }
  }

  async close(): Promise<void> {}
}
