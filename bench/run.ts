import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { buildAgents } from './build.ts'
import { Contest } from './contest.ts'
import { type Contestant, contestants, excuse } from './contestants.ts'
import { measures } from './measures/all.ts'
import type { Measure, Scale } from './measures/measure.ts'
import { type Options, parseOptions, usage } from './options.ts'
import { openVenue, type Venue } from './places.ts'
import { tablesOf } from './report.ts'
import { type Line, linesOf, type Outcome } from './results.ts'

/**
 * Measures khepri beside its peers and the limits of its stores: `npm run bench -- --quick`.
 *
 * Needs a build. Everybody has each measure in turn, round after round, in an empty place of its own, one at a time.
 */

/** The peers are installed when they are needed for the first time, or when their lock has changed; never with khepri. */
function installPeers(): void {
  const lock = readFileSync(join(import.meta.dirname, 'package-lock.json'), 'utf8')
  const stamp = join(import.meta.dirname, 'node_modules/.installed-lock.json')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  console.error('installing the peers (npm ci in bench/)')
  execFileSync('npm', ['ci'], { cwd: import.meta.dirname, stdio: ['ignore', 'ignore', 'inherit'] })
  writeFileSync(stamp, lock)
}

interface Entry {
  readonly measure: Measure
  readonly contestant: Contestant
  readonly venue: Venue
}

/** Who does what in one round, everybody's turn at one measure before the next. */
function programme({ scale, only, contestants: names }: Options, venues: readonly Venue[]): readonly Entry[] {
  return venues.flatMap((venue) =>
    measures
      .filter((measure) => isWanted(measure, venue, scale, only))
      .flatMap((measure) =>
        contestants
          .filter(({ store, name }) => store === venue.store && (names.length === 0 || names.includes(name)))
          .filter((contestant) => canDo(contestant, measure, scale))
          .map((contestant) => ({ measure, contestant, venue })),
      ),
  )
}

/** A longer form's measure can be asked for by its whole name, but what needs a million rows only in the full form. */
function isWanted({ name, from, stores }: Measure, venue: Venue, { form }: Scale, only: readonly string[]): boolean {
  if (!stores.includes(venue.store)) return false
  const order = ['quick', 'usual', 'full']
  const isOfForm = order.indexOf(from) <= order.indexOf(form)
  if (only.length === 0) return isOfForm
  if (only.includes(name)) return isOfForm || from !== 'full'
  return isOfForm && only.some((each) => name.startsWith(`${each}-`))
}

function canDo(contestant: Contestant, { name, onlyFast }: Measure, { form }: Scale): boolean {
  if (excuse(contestant, name) !== null || (form === 'quick' && !contestant.inQuick)) return false
  return !onlyFast || contestant.mostJobs === Number.POSITIVE_INFINITY
}

async function take({ measure, contestant, venue }: Entry, scale: Scale, round: number): Promise<Outcome> {
  const { store, name, role } = contestant
  const isRival = role === 'peer' && (contestant.durableAdds || !measure.asksForDurability)
  const about = { round, measure: measure.name, store, contestant: name, role, isRival }
  const startedAt = performance.now()
  const tell = (text: string): void => {
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
    console.error(`${round} ${store.padEnd(8)} ${measure.name.padEnd(14)} ${name.padEnd(21)} ${text}  (${seconds} s)`)
  }
  try {
    await using contest = await Contest.open(contestant, venue)
    const figures = await within(scale.deadlineMs, measure.run(contest, scale))
    tell(JSON.stringify(figures, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)))
    return { ...about, figures, error: null }
  } catch (error) {
    const { message } = error as Error
    tell(`failed: ${message}`)
    return { ...about, figures: null, error: message }
  }
}

/** Rejects where it takes too long; what it began ends with its processes. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const patience = new AbortController()
  const late = wait(ms, undefined, { signal: patience.signal }).then(() => {
    throw new Error(`not done within ${ms / 1_000} s`)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    patience.abort()
    late.catch(() => {})
    work.catch(() => {})
  }
}

function summed(outcomes: readonly Outcome[]): readonly Line[] {
  const groups = Map.groupBy(outcomes, ({ store, measure }) => `${store} ${measure}`)
  return [...groups.values()].flatMap((group) => {
    const found = measures.find(({ name }) => name === group[0]?.measure)
    if (!found) return []
    return found.figures.flatMap((figure) => linesOf({ measure: found.name, title: found.title, figure }, group))
  })
}

/** JSON has no infinity. */
function speakable(_: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'never' : value
}

async function openVenues({ stores }: Options): Promise<readonly Venue[]> {
  const venues: Venue[] = []
  for (const store of stores) {
    const venue = await openVenue(store)
    if ('missing' in venue) console.error(`${store} is left out: ${venue.missing}`)
    else venues.push(venue)
  }
  return venues
}

function facts({ scale, rounds }: Options, venues: readonly Venue[]): Readonly<Record<string, unknown>> {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' })
  return {
    date: new Date().toISOString(),
    commit: commit.trim(),
    command: `npm run bench -- ${process.argv.slice(2).join(' ')}`.trim(),
    node: process.version,
    cpu: `${cpus().length} x ${cpus()[0]?.model}`,
    form: scale.form,
    rounds,
    stores: venues.map(({ label }) => label),
    peers: peerVersions(),
  }
}

function peerVersions(): unknown {
  const text = readFileSync(join(import.meta.dirname, 'package.json'), 'utf8')
  return (JSON.parse(text) as { readonly dependencies: unknown }).dependencies
}

async function bench(options: Options): Promise<void> {
  installPeers()
  await buildAgents()
  const venues = await openVenues(options)
  const outcomes: Outcome[] = []
  const write = (): readonly Line[] => {
    const lines = summed(outcomes)
    writeFileSync(options.output, `${JSON.stringify({ ...facts(options, venues), lines, outcomes }, speakable, 2)}\n`)
    return lines
  }
  try {
    const entries = programme(options, venues)
    for (let round = 1; round <= options.rounds; round++) {
      for (const entry of entries) outcomes.push(await take(entry, options.scale, round))
      write()
    }
    console.log(tablesOf(write()))
    console.log(`figures: ${options.output}`)
  } finally {
    for (const venue of venues) await venue.close()
  }
}

const options = parseOptions(process.argv.slice(2))
if (options === 'help') console.log(usage)
else await bench(options)
