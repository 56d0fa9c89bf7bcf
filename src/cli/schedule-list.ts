import type { Khepri } from '../app.ts'
import type { JobState } from '../core/store/admin.ts'
import type { ScheduleSight, StoredSchedule } from '../core/store/schedule-store.ts'
import type { JobId } from '../core/store/store.ts'
import { dueAt } from '../schedule/due.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { Listing, Output } from './output.ts'

/** The state of a schedule that people see. orphan: the store knows it, and this configuration does not. */
type ScheduleState = 'active' | 'paused' | 'disabled' | 'new' | 'orphan' | 'outdated'

/** A schedule as it is listed. Moments are epoch milliseconds. */
interface ListedSchedule {
  readonly name: string
  readonly job: string | null
  readonly when: string
  readonly zone: string
  readonly state: ScheduleState
  readonly next: readonly number[]
  readonly lastAt: number | null
  readonly lastJob: JobId | null
  /** ended: the store has forgotten it, as it forgets done jobs that are not kept. */
  readonly result: JobState | 'ended' | null
  readonly missed: number
  readonly description: string | null
}

/** So many of the next times are shown. */
const nextShown = 5

/** The schedules of the configuration, and those that only the store knows, by name. */
export async function listedSchedules(app: Khepri): Promise<readonly ListedSchedule[]> {
  const [schedules, sight, admin] = [await app.schedules(), await (await app.scheduleStore()).look(), await app.admin()]
  const states = await admin.states(sight.schedules.flatMap(({ lastJob }) => lastJob ?? []))
  const stored = new Map(sight.schedules.map((schedule) => [schedule.name, schedule]))
  const names = new Set([...schedules.map(({ name }) => name), ...stored.keys()])
  return [...names].sort().map((name) => {
    const known = stored.get(name)
    const result = known?.lastJob == null ? null : (states.get(known.lastJob) ?? ('ended' as const))
    const defined = schedules.find((schedule) => schedule.name === name)
    return { ...definedPart(defined, known, sight), ...runPart(known), name, result }
  })
}

function definedPart(schedule: Schedule | undefined, stored: StoredSchedule | undefined, { now }: ScheduleSight) {
  const state = stateOf(schedule, stored)
  if (schedule === undefined) return { job: null, when: '-', zone: '-', state, next: [], description: null }
  const { job, cadence, description } = schedule
  const next = state === 'paused' || state === 'disabled' ? [] : nextTimes(schedule, stored, now)
  return { job, when: cadence.text, zone: cadence.zone, state, next, description }
}

function runPart(stored: StoredSchedule | undefined) {
  return { lastAt: stored?.firedAt ?? null, lastJob: stored?.lastJob ?? null, missed: stored?.missed ?? 0 }
}

function stateOf(schedule: Schedule | undefined, stored: StoredSchedule | undefined): ScheduleState {
  if (schedule === undefined) return 'orphan'
  if (!schedule.enabled) return 'disabled'
  if (stored === undefined) return 'new'
  if (stored.pausedAt !== null) return 'paused'
  if (stored.definition === '') return 'new'
  return stored.definition === schedule.stored.definition ? 'active' : 'outdated'
}

/** From now on, whatever has been missed; not before the last slot that was taken, should the clock have been set back. */
function nextTimes(schedule: Schedule, stored: StoredSchedule | undefined, now: number): readonly number[] {
  const times: number[] = []
  let slot = Math.max(now - schedule.offsetMs, stored?.lastSlot ?? 0)
  while (times.length < nextShown) {
    const at = dueAt(schedule, slot)
    times.push(at)
    slot = at - schedule.offsetMs
  }
  return times
}

/** How schedules are listed. */
export function scheduleListing(output: Output): Listing<ListedSchedule> {
  return {
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'When', value: ({ when }) => when },
      { title: 'Zone', value: ({ zone }) => zone },
      { title: 'State', value: ({ state }) => state },
      { title: 'Last run', value: ({ lastAt }) => (lastAt === null ? '-' : output.time(lastAt)) },
      { title: 'Result', value: ({ result }) => result ?? '-' },
      { title: 'Next', value: ({ next }) => (next.length === 0 ? '-' : next.map((at) => output.time(at)).join(', ')) },
    ],
    record: ({ next, lastAt, ...schedule }) => ({
      ...schedule,
      lastAt: lastAt === null ? null : output.moment(lastAt),
      next: next.map((at) => output.moment(at)),
    }),
  }
}
