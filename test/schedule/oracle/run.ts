import type { Figures, Form, Print } from '../../guarantees/part.ts'
import { Seeded } from '../../guarantees/simulation/seeded.ts'
import { type Amount, compareIn, emptyTally, type Subject, type Tally, type Window } from './compare.ts'
import { changesOf } from './watched-clock.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** What is compared: some or all changes of every zone, and whole years. */
interface Plan {
  /** Zones are looked at so often to find their changes. */
  readonly stepMs: number
  /** So many changes of each zone at most. */
  readonly changes: number
  readonly atChanges: Amount
  /** So many whole years, each in one zone. */
  readonly years: number
  readonly inYears: Amount
}

const plans: Readonly<Record<Form, Plan>> = {
  sample: {
    stepMs: 60 * dayMs,
    changes: 1,
    atChanges: { expressions: 5, instants: 5 },
    years: 0,
    inYears: { expressions: 0, instants: 0 },
  },
  short: {
    stepMs: 10 * dayMs,
    changes: 3,
    atChanges: { expressions: 5, instants: 5 },
    years: 2,
    inYears: { expressions: 50, instants: 20 },
  },
  long: {
    stepMs: dayMs,
    changes: Number.POSITIVE_INFINITY,
    atChanges: { expressions: 6, instants: 4 },
    years: 12,
    inYears: { expressions: 100, instants: 20 },
  },
}

/** Past changes are known, future ones follow from the rules in force. */
const [firstYear, lastYear] = [2000, 2037]

/** So many differences are described; whatever is wrong shows in these. */
const mostDescribed = 10

/** The same in every run, so that a run of CI can be repeated. */
const defaultSeed = 1

/**
 * Compares cadences with the slots that come of watching each zone's clock minute by minute. Throws with every
 * (expression, zone, instant) that differs.
 */
export async function run(form: Form, print: Print, seed = defaultSeed): Promise<Figures> {
  const tally = emptyTally()
  const zones = compare(form, print, seed, tally)
  if (tally.differences.length > 0)
    throw new Error(
      `${tally.differences.length} differences in ${tally.triples} triples:\n${tally.differences.slice(0, mostDescribed).join('\n')}`,
    )
  return {
    'zones that changed since 2000': zones,
    '(expression, zone, instant) triples': tally.triples,
    'slots compared one after the other': tally.slots,
    'of them for times in a gap': tally.gaps,
    'of them at a time that occurs twice': tally.doubles,
    differences: 0,
    'rules of time zones': process.versions.tz ?? 'unknown',
  }
}

/** The same without a judgement, and with any subject; answers how many zones have changed. */
export function compare(form: Form, print: Print, seed: number, tally: Tally, subject?: Subject): number {
  const plan = plans[form]
  const seeded = new Seeded(seed)
  let changed = 0
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    const changes = changesOf(zone, Date.UTC(firstYear, 0), Date.UTC(lastYear, 0), plan.stepMs)
    if (changes.length > 0) changed += 1
    for (const at of some(changes, plan.changes, seeded))
      compareIn(atChange(zone, at), plan.atChanges, seeded.whole(0, 2 ** 31), tally, subject)
    print(`${zone}: ${tally.triples} triples, ${tally.differences.length} differences so far`)
  }
  for (const window of yearsOf(plan.years, seeded)) {
    compareIn(window, plan.inYears, seeded.whole(0, 2 ** 31), tally, subject)
    print(`a year in ${window.zone}: ${tally.triples} triples, ${tally.differences.length} differences so far`)
  }
  return changed
}

const atChange = (zone: string, at: number): Window => ({ zone, at, beforeMs: 6 * hourMs, afterMs: 26 * hourMs })

function some<T>(all: readonly T[], most: number, seeded: Seeded): readonly T[] {
  if (all.length <= most) return all
  const from = seeded.whole(0, all.length - most)
  return all.slice(from, from + most)
}

/** Whole years, leap years among them, in zones of every kind. */
function yearsOf(count: number, seeded: Seeded): readonly Window[] {
  const zones = [
    'Europe/Oslo',
    'America/New_York',
    'Australia/Lord_Howe',
    'America/Sao_Paulo',
    'Africa/Casablanca',
    'UTC',
  ] as const
  return Array.from({ length: count }, (_, index) => {
    const at = Date.UTC(seeded.whole(firstYear, 2_030), seeded.whole(0, 11), seeded.whole(1, 31))
    const zone = zones[index % zones.length] ?? 'UTC'
    return { zone, at, beforeMs: 183 * dayMs, afterMs: 183 * dayMs }
  })
}
