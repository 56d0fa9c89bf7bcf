import { type Cadence, firings, parseCadence } from './cadence.ts'
import type { Schedule } from './schedule.ts'

/** One firing, as it will be. */
export interface Simulated {
  readonly schedule: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly zone: string
  /** It stands for times that the clocks skip. */
  readonly gap: boolean
  /** The clocks show its time twice; it runs at the first. */
  readonly doubled: boolean
  /** The run before it may not have ended. */
  readonly overlap: boolean
}

export interface Simulation {
  readonly from: number
  /** Not included. */
  readonly to: number
  /** Instead of the schedules' own. */
  readonly zone: string | undefined
  /** How long a run takes; null: as long as its timeout allows, and no time where it has none. */
  readonly takesMs: number | null
}

/** Walks through the firings of schedules in the order of time. */
export function* simulate(
  schedules: readonly Schedule[],
  simulation: Simulation,
): Generator<Simulated, void, undefined> {
  const streams = schedules.filter(({ enabled }) => enabled).map((schedule) => firingsOf(schedule, simulation))
  const heads = streams.map((stream) => stream.next())
  for (;;) {
    const first = earliest(heads)
    const head = heads[first]
    if (!head || head.done) return
    yield head.value
    heads[first] = (streams[first] as Generator<Simulated, void, undefined>).next()
  }
}

function earliest(heads: readonly IteratorResult<Simulated, void>[]): number {
  let found = -1
  let best = Number.POSITIVE_INFINITY
  for (const [index, head] of heads.entries())
    if (!head.done && head.value.at < best) [found, best] = [index, head.value.at]
  return found
}

function* firingsOf(
  schedule: Schedule,
  { from, to, zone, takesMs }: Simulation,
): Generator<Simulated, void, undefined> {
  const cadence = zone === undefined ? schedule.cadence : inZone(schedule, zone)
  const { name, offsetMs, terms } = schedule
  const lengthMs = takesMs ?? terms.timeoutMs ?? 0
  let freeAt = Number.NEGATIVE_INFINITY
  for (const { at: slot, gap, doubled } of firings(cadence, from - offsetMs, to - offsetMs)) {
    const at = slot + offsetMs
    yield { schedule: name, at, zone: cadence.zone, gap, doubled, overlap: at < freeAt }
    freeAt = at + lengthMs
  }
}

/** The same times of the day elsewhere. */
const inZone = ({ timing }: Schedule, zone: string): Cadence => parseCadence({ ...timing, zone })
