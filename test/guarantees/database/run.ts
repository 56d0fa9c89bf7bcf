import { startPostgres } from '../../support/postgres.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import type { Figures, Form, Print } from '../part.ts'
import { type PostgresSpans, postgresFaults } from './postgres-faults.ts'
import { type Fault, type Passage, Shift, type ShiftOptions } from './shift.ts'
import { SqlitePlace, type SqliteSpans, sqliteFaults } from './sqlite-faults.ts'

interface Plan {
  readonly postgres: PostgresSpans
  readonly sqlite: SqliteSpans
  /** The lease of each round through all faults. */
  readonly leases: readonly string[]
}

const whole: Omit<Plan, 'leases'> = {
  postgres: { crashes: 3, awayMs: 20_000, terminatingMs: 30_000, readOnlyMs: 30_000, silentMs: 30_000 },
  sqlite: { lockedMs: 60_000, fullMs: 30_000, readOnlyMs: 30_000 },
}

const plans: Readonly<Record<Form, Plan>> = {
  sample: {
    postgres: { crashes: 1, awayMs: 4_000, terminatingMs: 3_000, readOnlyMs: 3_000, silentMs: 3_000 },
    sqlite: { lockedMs: 4_000, fullMs: 3_000, readOnlyMs: 3_000 },
    // Shorter than an outage, and longer than a small machine lets a process wait for its turn.
    leases: ['3s'],
  },
  short: { ...whole, leases: ['2s'] },
  long: { ...whole, leases: ['2s', '15s', '90s'] },
}

/** Database faults under load, on both stores at once. Throws with everything that was wrong. */
export async function run(form: Form, print: Print): Promise<Figures> {
  const [postgres, sqlite] = await Promise.all([onPostgres(form, print), onSqlite(form, print)])
  return { ...postgres, ...sqlite }
}

/** The faults of Postgres, on a server of its own behind a proxy. */
export async function onPostgres(form: Form, print: Print): Promise<Figures> {
  const { postgres, leases } = plans[form]
  const server = await startPostgres()
  const proxy = await TcpProxy.open(server.port)
  try {
    const database = server.url.replace(`:${server.port}`, `:${proxy.port}`)
    const rounds = leases.map((retryAfter) => ({
      database,
      settings: { retryAfter, table: `jobs_${retryAfter}`, failedTable: `failed_${retryAfter}` },
    }))
    return await passAll('Postgres', rounds, { faults: postgresFaults(server, proxy, postgres), print })
  } finally {
    await proxy.close()
    await server.remove()
  }
}

/** The faults of SQLite, on a disk of its own where the system gives one. */
export async function onSqlite(form: Form, print: Print): Promise<Figures> {
  const { sqlite, leases } = plans[form]
  const figures: Figures[] = []
  for (const retryAfter of leases) {
    using place = new SqlitePlace()
    const options = { database: place.database, settings: { retryAfter }, env: place.env }
    figures.push(await passAll('SQLite', [options], { faults: sqliteFaults(place, sqlite), print }))
    if (place.noDisk !== null) print(`SQLite: a full disk is left out: ${place.noDisk}`)
  }
  return Object.assign({}, ...figures)
}

interface Course {
  readonly faults: readonly Fault[]
  readonly print: Print
}

/** One shift after another, each through every fault. */
async function passAll(store: string, rounds: readonly ShiftOptions[], { faults, print }: Course): Promise<Figures> {
  const passages: Passage[] = []
  let [jobs, dispatches] = [0, 0]
  for (const options of rounds) {
    await using shift = await Shift.begin(options)
    for (const fault of faults) {
      const passage = await shift.pass(fault)
      passages.push(passage)
      print(`${store}: ${told(passage)}`)
    }
    await shift.end()
    jobs += shift.jobs
    dispatches += shift.dispatches
  }
  return {
    [`faults on ${store}`]: passages.length,
    [`jobs through the faults of ${store}`]: jobs,
    [`dispatches through the faults of ${store}`]: dispatches,
    [`longest time from ${store} to work, ms`]: Math.max(...passages.map(({ firstMs }) => firstMs)),
    [`longest time from ${store} to its last worker, ms`]: Math.max(...passages.map(({ lastMs }) => lastMs)),
    [`most lines of a worker in one fault of ${store}`]: Math.max(...passages.map(({ lines }) => lines)),
  }
}

function told({ fault, firstMs, lastMs, lines }: Passage): string {
  return `${fault}: work went on after ${firstMs} ms, everywhere after ${lastMs} ms; ${lines} lines`
}
