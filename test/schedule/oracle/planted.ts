import { nextMatch } from '../../../src/schedule/calendar.ts'
import { type CronFields, parseCronFields } from '../../../src/schedule/cron-fields.ts'
import { type ZoneClock, zoneClock } from '../../../src/schedule/zone-clock.ts'
import type { Subject } from './compare.ts'

/** Cadences with one fault each, of the kinds that schedulers have had. */
export const planted: Readonly<Record<string, Subject>> = {
  'runs at both of a time that occurs twice': onWall((fields, clock, after) => {
    const slot = right(fields, clock, after)
    const again = inRealTime(fields, clock, after)
    return Math.min(slot, again)
  }),
  'passes over a time in a gap': onWall(inRealTime),
  'shifts a time in a gap by the length of the gap': onWall((fields, clock, after) => {
    const wall = nextMatch(fields, clock.unseenFrom(after))
    return wall - clock.stretchAt(clock.firstInstant(wall) - 1).offset
  }),
  'runs a second time when the first instant after a gap is a slot': onWall((fields, clock, after) => {
    const gap = clock.gapAt(after)
    const isDoubled = gap !== null && nextMatch(fields, gap.from) < gap.to && nextMatch(fields, gap.to) === gap.to
    return isDoubled ? after + 1 : right(fields, clock, after)
  }),
  'runs at the second of a time that occurs twice': onWall((fields, clock, after) => {
    const slot = right(fields, clock, after)
    return clock.isShownAgain(slot) ? inRealTime(fields, clock, slot) : slot
  }),
  'keeps the offset of the instant it starts from': onWall((fields, clock, after) => {
    const { offset } = clock.stretchAt(after)
    return nextMatch(fields, after + offset + 1) - offset
  }),
  'takes an open hour for wall-clock time': (cron, zone) => {
    const [fields, clock] = [parseCronFields(cron), zoneClock(zone)]
    return { next: (after) => right(fields, clock, after) }
  },
  'wants both days where either will do': altered((fields) => {
    // What could never fire would be sought for ever.
    const isEitherDay = fields.days.every((day) => day > 28)
    return { ...fields, isEitherDay }
  }),
  'takes either day where both must fit': altered((fields) => ({ ...fields, isEitherDay: true })),
  'takes Sunday for Monday': altered((fields) => ({
    ...fields,
    weekdays: fields.weekdays.map((day) => (day === 0 ? 1 : day)),
  })),
  'answers with the instant it was asked about': onWall((fields, clock, after) => right(fields, clock, after - 1)),
}

type Next = (fields: CronFields, clock: ZoneClock, after: number) => number

/** The faults of `next` befall entries that follow the clock on the wall; the others are right. */
function onWall(next: Next): Subject {
  return (cron, zone) => {
    const [fields, clock] = [parseCronFields(cron), zoneClock(zone)]
    return { next: (after) => (fields.isRealTime ? inRealTime : next)(fields, clock, after) }
  }
}

function altered(alter: (fields: CronFields) => CronFields): Subject {
  return (cron, zone) => {
    const [fields, clock] = [alter(parseCronFields(cron)), zoneClock(zone)]
    return { next: (after) => (fields.isRealTime ? inRealTime : right)(fields, clock, after) }
  }
}

function right(fields: CronFields, clock: ZoneClock, after: number): number {
  return clock.firstInstant(nextMatch(fields, clock.unseenFrom(after)))
}

function inRealTime(fields: CronFields, clock: ZoneClock, after: number): number {
  for (let from = after + 1; ; ) {
    const { until, offset } = clock.stretchAt(from)
    const slot = nextMatch(fields, from + offset) - offset
    if (slot < until) return slot
    from = until
  }
}
