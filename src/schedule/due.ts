import { defaults } from '../core/defaults.ts'
import type { StoredSchedule } from '../core/store/schedule-store.ts'
import type { Cadence } from './cadence.ts'
import type { Schedule } from './schedule.ts'

/** One run that is due. */
export interface DueRun {
  readonly slot: number
  /** Slots before it that no run is for. */
  readonly missed: number
}

/** What is to be done about the slots of a schedule that have come. */
export interface DuePlan {
  readonly runs: readonly DueRun[]
  /** The last slot that has come. */
  readonly upTo: number
  /** Slots that are left without a run, for the next run to know. */
  readonly missed: number
  /** Slots at which nobody looked in time. */
  readonly late: number
}

/** When the first slot after `lastSlot` is due, epoch ms. */
export function dueAt({ cadence, offsetMs }: Pick<Schedule, 'cadence' | 'offsetMs'>, lastSlot: number): number {
  return cadence.next(lastSlot) + offsetMs
}

/**
 * Decides by the misfire policy which of the slots that have come get a run. Null: none has come.
 *
 * The slots follow from the last one that was planned, never from now: a timer that is early or late changes none of them.
 * The last slot is in time for a minute; earlier ones are missed, since another one has come after them.
 */
export function planDue(
  { cadence, offsetMs, misfire }: Pick<Schedule, 'cadence' | 'offsetMs' | 'misfire'>,
  { lastSlot, missed: before }: Pick<StoredSchedule, 'lastSlot' | 'missed'>,
  now: number,
): DuePlan | null {
  const until = now - offsetMs
  const { count, last } = slotsBetween(
    cadence,
    { after: lastSlot, until },
    typeof misfire === 'number' ? misfire + 1 : 1,
  )
  const upTo = last.at(-1)
  if (upTo === undefined) return null
  const isInTime = until - upTo <= defaults.misfireMs
  const late = isInTime ? count - 1 : count
  const chosen = last.slice(-wantedRuns(misfire, isInTime))
  const none = wantedRuns(misfire, isInTime) === 0
  const runs = none
    ? []
    : chosen.map((slot, index) => ({ slot, missed: index === 0 ? before + count - chosen.length : 0 }))
  return { runs, upTo, missed: none ? before + count : 0, late }
}

/** How many of the last slots get a run. */
function wantedRuns(misfire: Schedule['misfire'], isInTime: boolean): number {
  if (misfire === 'once') return 1
  if (misfire === 'skip') return isInTime ? 1 : 0
  return isInTime ? misfire + 1 : misfire
}

interface Span {
  readonly after: number
  /** Included. */
  readonly until: number
}

/** How many slots lie in a span (counted up to a limit), and the last `keep` of them in their order. */
function slotsBetween(
  cadence: Cadence,
  { after, until }: Span,
  keep: number,
): { readonly count: number; readonly last: readonly number[] } {
  const slots: number[] = []
  for (let slot = cadence.next(after); slot <= until; slot = cadence.next(slot)) {
    slots.push(slot)
    if (slots.length === defaults.mostMissed)
      return { count: slots.length, last: lastSlots(cadence, { after, until }, keep) }
  }
  return { count: slots.length, last: slots.slice(-keep) }
}

/** Finds the last slots of a span that has too many to walk through all of them: in ever wider windows before its end. */
function lastSlots(cadence: Cadence, { after, until }: Span, keep: number): readonly number[] {
  for (let widthMs = 60_000; ; widthMs *= 2) {
    const from = Math.max(after, until - widthMs)
    const slots: number[] = []
    for (let slot = cadence.next(from); slot <= until; slot = cadence.next(slot)) slots.push(slot)
    if (slots.length >= keep || from === after) return slots.slice(-keep)
  }
}
