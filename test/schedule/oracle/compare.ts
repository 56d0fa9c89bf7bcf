import { type Cadence, parseCadence } from '../../../src/schedule/cadence.ts'
import { Seeded } from '../../guarantees/simulation/seeded.ts'
import { expressionNear } from './expressions.ts'
import { everFires, type NaiveSlot, slotsIn } from './naive.ts'
import { type Face, faceAt, watch } from './watched-clock.ts'

/** What is compared with the naive slots: khepri's own cadences, or one with a planted fault. */
export type Subject = (cron: string, zone: string) => Pick<Cadence, 'next'> & Partial<Pick<Cadence, 'marksAt'>>

/** Some time in the life of a clock, in which it is watched minute by minute. */
export interface Window {
  readonly zone: string
  /** Around this, slots and instants are sought. */
  readonly at: number
  readonly beforeMs: number
  readonly afterMs: number
}

/** How much to compare in each window. */
export interface Amount {
  readonly expressions: number
  /** Instants for each expression. */
  readonly instants: number
}

/** What was compared: (expression, zone, instant) triples, slots in a row, and the differences described. */
export interface Tally {
  triples: number
  slots: number
  gaps: number
  doubles: number
  readonly differences: string[]
}

/** A new, empty tally. */
export const emptyTally = (): Tally => ({ triples: 0, slots: 0, gaps: 0, doubles: 0, differences: [] })

const hourMs = 3_600_000

/** What was seen in the first hours only tells what the clock has shown before; no clock was set back further. */
const prerollMs = 4 * hourMs

/** Compares a subject with the naive slots in one window; the same seed makes the same expressions and instants. */
export function compareIn(window: Window, amount: Amount, seed: number, tally: Tally, subject: Subject = ours): void {
  const seeded = new Seeded(seed)
  const [from, to] = [window.at - window.beforeMs - prerollMs, window.at + window.afterMs]
  const minutes = watch(window.zone, from, to)
  const struck = minutes.flatMap(({ face, isTwice, skipped }) => (isTwice ? [face] : skipped))
  for (let count = 0; count < amount.expressions; count++) {
    const face =
      seeded.chance(0.5) && struck.length > 0
        ? (struck[seeded.whole(0, struck.length - 1)] as Face)
        : faceAt(window.zone, near(seeded, window))
    const cron = possibleExpression(seeded, face, tally)
    const slots = slotsIn(cron, minutes)
    const cadence = subject(cron, window.zone)
    const draw = instantsIn(seeded, window, slots)
    for (let instant = 0; instant < amount.instants; instant++)
      compareNext({ cron, zone: window.zone, after: draw(), slots, to }, cadence, tally)
    compareSeries({ cron, zone: window.zone, slots, from: from + prerollMs, to: to - prerollMs }, cadence, tally)
  }
}

const ours: Subject = (cron, zone) => parseCadence({ cron, zone })

/** An instant that is likely to be within hours of the middle of a window. */
const near = (seeded: Seeded, { at, beforeMs, afterMs }: Window): number =>
  seeded.chance(0.6)
    ? at + seeded.whole(-Math.min(2 * hourMs, beforeMs), 2 * hourMs)
    : at + seeded.whole(-beforeMs, afterMs - 1)

/** Expressions that can never fire must be refused, and those alone. */
function possibleExpression(seeded: Seeded, face: Face, tally: Tally): string {
  for (;;) {
    const cron = expressionNear(seeded, face)
    const isTaken = isCron(cron)
    if (isTaken !== everFires(cron)) tally.differences.push(`"${cron}" is ${isTaken ? 'taken' : 'refused'}`)
    else if (isTaken) return cron
  }
}

function isCron(text: string): boolean {
  try {
    parseCadence({ cron: text })
    return true
  } catch {
    return false
  }
}

/** Draws instants: often just at a slot, before or after it, and at a marked one rather. There the answers change. */
function instantsIn(seeded: Seeded, window: Window, slots: readonly NaiveSlot[]): () => number {
  const known = slots.filter(({ at }) => at > window.at - window.beforeMs)
  const special = known.filter(({ gap, doubled }) => gap || doubled)
  return () => {
    const from = special.length > 0 && seeded.chance(0.5) ? special : known
    const isAtSlot = from.length > 0 && seeded.chance(0.6)
    return isAtSlot
      ? (from[seeded.whole(0, from.length - 1)] as NaiveSlot).at + seeded.whole(-1, 1)
      : near(seeded, window)
  }
}

interface Triple {
  readonly cron: string
  readonly zone: string
  readonly after: number
  readonly slots: readonly NaiveSlot[]
  /** The end of what was watched. */
  readonly to: number
}

function compareNext({ cron, zone, after, slots, to }: Triple, cadence: Pick<Cadence, 'next'>, tally: Tally): void {
  tally.triples += 1
  const expected = slots.find(({ at }) => at > after)?.at
  const found = cadence.next(after)
  const isSame = expected === undefined ? found >= to : found === expected
  if (isSame) return
  const wanted = expected === undefined ? `none before ${iso(to)}` : iso(expected)
  tally.differences.push(`"${cron}" in ${zone} after ${iso(after)}: ${iso(found)} instead of ${wanted}`)
}

interface Series {
  readonly cron: string
  readonly zone: string
  readonly slots: readonly NaiveSlot[]
  readonly from: number
  readonly to: number
}

/** Compares slots that follow each other, each sought from the one before it, and their marks. */
function compareSeries({ cron, zone, slots, from, to }: Series, cadence: ReturnType<Subject>, tally: Tally): void {
  const expected = slots.filter(({ at }) => at >= from && at < to)
  tally.slots += expected.length
  tally.gaps += expected.filter(({ gap }) => gap).length
  tally.doubles += expected.filter(({ doubled }) => doubled).length
  let at = from - 1
  for (const slot of expected) {
    at = cadence.next(at)
    const { gap, doubled } = cadence.marksAt?.(at) ?? slot
    if (at === slot.at && gap === slot.gap && doubled === slot.doubled) continue
    const found = { at, gap, doubled }
    tally.differences.push(`"${cron}" in ${zone}, one after the other: ${marked(found)} instead of ${marked(slot)}`)
    return
  }
}

const marked = ({ at, gap, doubled }: NaiveSlot): string => `${iso(at)}${gap ? ' gap' : ''}${doubled ? ' doubled' : ''}`

const iso = (at: number): string => new Date(at).toISOString()
