import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import type { NewJob, Place } from './peer.ts'
import { openVenue } from './places.ts'
import type { Outcome } from './results.ts'

/**
 * A load model: how many jobs a second some processes work off on one database, from what one job costs.
 *
 * `npm run bench:scaling` prints the tables of docs/scaling.md; `--measure` says what one job costs here, and `--check RESULTS.json` compares it with the drains of a run
 * of `npm run bench -- --full --only drain-200k`. It is a simulation in virtual time of the same rules that a worker follows (rounds of so many jobs, a
 * lock that is asked for again after 1 to 4 ms, two rounds under way on Postgres) over a number of cores.
 */

/** What one job costs, microseconds of a core. */
export interface Costs {
  /** In the worker, outside of the database: the handler, and all around it. */
  readonly worker: number
  /** In the database: on SQLite while the write lock is held, on Postgres in the server. */
  readonly database: number
}

export interface Load {
  readonly store: 'sqlite' | 'postgres'
  readonly costs: Costs
  readonly processes: number
  readonly cores: number
  /** Jobs in one round. */
  readonly batch: number
  /** Cores of the database, where it has a machine of its own; on SQLite there is none. */
  readonly serverCores?: number
}

/** A number of servers, each free from a moment on; who asks waits for the first. Moments in microseconds. */
class Servers {
  readonly #freeAt: number[]

  constructor(count: number) {
    this.#freeAt = Array.from({ length: count }, () => 0)
  }

  /** Takes the server that is free first, at `from` or later, for so long; the result is when it is done. */
  take(from: number, lastsUs: number): number {
    const freeAt = Math.min(...this.#freeAt)
    const endsAt = Math.max(from, freeAt) + lastsUs
    this.#freeAt[this.#freeAt.indexOf(freeAt)] = endsAt
    return endsAt
  }
}

const rounds = 2_000

/** A pseudo-random number in [0, 1) from a counter: the same in every run (the fractions of multiples of the golden ratio). */
function random(count: number): number {
  return (count * 0.618_033_988_749_895) % 1
}

/** Jobs a second that all processes work off together. */
export function jobsPerSecond(load: Load): number {
  return load.store === 'sqlite' ? onSqlite(load) : onPostgres(load)
}

/** Each process works on its jobs, then settles and reserves under the one write lock. */
function onSqlite({ costs, processes, cores, batch }: Load): number {
  const machine = new Servers(Math.min(cores, processes))
  const readyAt = Array.from({ length: processes }, () => 0)
  let lockFreeAt = 0
  let draws = 0
  let now = 0
  for (let done = 0; done < rounds; done++) {
    // The one whose turn comes first; where the lock is taken it looks again, a little later.
    for (;;) {
      now = Math.min(...readyAt)
      if (lockFreeAt <= now) break
      readyAt[readyAt.indexOf(now)] = now + 1_000 + 3_000 * random(draws++)
    }
    const process = readyAt.indexOf(now)
    lockFreeAt = machine.take(now, costs.database * batch)
    readyAt[process] = machine.take(lockFreeAt, costs.worker * batch)
  }
  return (rounds * batch * 1e6) / Math.max(...readyAt)
}

/** Two rounds of each process are under way: while the server has one, the worker has the other. */
function onPostgres({ costs, processes, cores, batch, serverCores }: Load): number {
  const machine = new Servers(cores)
  const server = serverCores === undefined ? machine : new Servers(serverCores)
  const flights = Array.from({ length: processes * 2 }, () => 0)
  const workerFreeAt = Array.from({ length: processes }, () => 0)
  for (let done = 0; done < rounds; done++) {
    const flight = flights.indexOf(Math.min(...flights))
    const answeredAt = server.take(flights[flight] as number, costs.database * batch)
    const process = flight >> 1
    const beginsAt = Math.max(answeredAt, workerFreeAt[process] as number)
    workerFreeAt[process] = flights[flight] = machine.take(beginsAt, costs.worker * batch)
  }
  return (rounds * batch * 1e6) / Math.max(...flights)
}

/**
 * Microseconds of a core for a no-op job of 100 bytes on two cores of an AMD EPYC guest. Their sum on SQLite and both on
 * Postgres are what `--measure` says; the part of SQLite under the lock is that of its statements by themselves.
 */
export const measured: Readonly<Record<Load['store'], Costs>> = {
  sqlite: { worker: 11.5, database: 6.5 },
  postgres: { worker: 18, database: 54 },
}

const batches: Readonly<Record<Load['store'], number>> = { sqlite: 200, postgres: 190 }

function predicted(store: Load['store'], processes: number, cores: number, parts: Partial<Load> = {}): number {
  return jobsPerSecond({ store, costs: measured[store], processes, cores, batch: batches[store], ...parts })
}

/** Takes the medians of one contestant's rates out of a run. */
function ratesOf(file: string): ReadonlyMap<string, number> {
  const { outcomes } = JSON.parse(readFileSync(file, 'utf8')) as { outcomes: readonly Outcome[] }
  const own = outcomes.filter(({ contestant, figures }) => contestant === 'khepri' && figures?.rate !== undefined)
  return new Map(
    [...Map.groupBy(own, ({ store, measure }) => `${store} ${measure}`)].map(([name, of]) => {
      const rates = of.map(({ figures }) => figures?.rate as number).sort((a, b) => a - b)
      return [name, rates[rates.length >> 1] as number]
    }),
  )
}

/** One process calibrates the machine; four are what the model has to say. Shorter drains measure how processes start. */
function check(file: string): void {
  const rates = ratesOf(file)
  for (const store of ['sqlite', 'postgres'] as const) {
    const one = rates.get(`${store} drain-200k-1`)
    if (one === undefined) continue
    const scale = one / predicted(store, 1, cpus().length)
    const four = rates.get(`${store} drain-200k-4`)
    if (four === undefined) continue
    const said = predicted(store, 4, cpus().length) * scale
    console.log(`${store}: one process ${round(one)}/s, four ${round(four)}/s, predicted ${round(said)}/s`)
  }
}

const round = (value: number): string => Number(value.toPrecision(2)).toLocaleString('en')

function table(title: string, rows: readonly (readonly [string, number])[]): void {
  console.log(`\n${title}`)
  for (const [label, rate] of rows) console.log(`  ${label.padEnd(44)} ${round(rate).padStart(9)}/s`)
}

function tables(): void {
  const withHandler = (ms: number): Costs => ({ ...measured.sqlite, worker: measured.sqlite.worker + ms * 1_000 })
  table(
    'one SQLite file, 8 processes on 8 cores, by what a handler costs',
    [1, 10].map((ms) => [
      `${ms} ms of a core`,
      predicted('sqlite', 8, 8, { costs: withHandler(ms), batch: Math.max(1, Math.min(200, Math.floor(25 / ms))) }),
    ]),
  )
  table(
    'one Postgres with 8 cores of its own, no-op jobs',
    [1, 2, 4, 8, 16, 32].map((n) => [
      `${n} processes, a core each`,
      predicted('postgres', n, n, { serverCores: 8, batch: 400 }),
    ]),
  )
}

const jobsMeasured = 60_000

/** What a drain costs for each job: this process, which works, and on Postgres the server. */
async function measure(store: Load['store']): Promise<void> {
  const venue = await openVenue(store)
  if ('missing' in venue) return console.log(`${store}: ${venue.missing}`)
  const { peer } = await import('./peers/khepri.ts')
  const place = await venue.place()
  try {
    await peer.prepare(place)
    await fill(place)
    const serverUs = store === 'postgres' ? await serverCpu(place.database) : null
    const { promise: drained, resolve } = Promise.withResolvers<void>()
    let left = jobsMeasured
    const began = process.cpuUsage()
    const worker = await peer.drain(place, null, () => {
      if (--left === 0) resolve()
    })
    await drained
    const { user, system } = process.cpuUsage(began)
    const server = serverUs === null ? '' : `, server ${((await serverUs()) / jobsMeasured).toFixed(1)} us`
    console.log(`${store}: worker ${((user + system) / jobsMeasured).toFixed(1)} us${server} of a core for each job`)
    await worker.stop()
  } finally {
    await venue.clear(place)
    await venue.close()
  }
}

async function fill(place: Place): Promise<void> {
  const { peer } = await import('./peers/khepri.ts')
  const client = await peer.open(place)
  const payload = { n: 0, kind: 'noop', ms: 0, failures: 0, at: 0, fill: 'x'.repeat(40) } as const
  const some = Array.from({ length: 5_000 }, (): NewJob => ({ payload, tries: 1, delayMs: 0, urgent: false }))
  for (let count = 0; count < jobsMeasured; count += some.length) await client.addMany?.(some)
  await client.close()
}

/** Microseconds that the processes of a server use from now until the result is asked, as Linux tells. */
async function serverCpu(url: string): Promise<() => Promise<number>> {
  const usedUs = async (): Promise<ReadonlyMap<number, number>> => {
    const sql = postgres(url, { max: 1, onnotice: () => {} })
    const rows = await sql<{ pid: number }[]>`select pid from pg_stat_activity where pid <> pg_backend_pid()`
    await sql.end()
    return new Map(rows.map(({ pid }) => [pid, cpuOf(pid)]))
  }
  const before = await usedUs()
  return async () => [...(await usedUs())].reduce((sum, [pid, us]) => sum + us - (before.get(pid) ?? 0), 0)
}

/** User and system time of a process, microseconds; /proc counts in hundredths of a second. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: 'string' }, measure: { type: 'boolean' } } })
  if (values.measure) for (const store of ['sqlite', 'postgres'] as const) await measure(store)
  else if (values.check === undefined) tables()
  else check(values.check)
}
