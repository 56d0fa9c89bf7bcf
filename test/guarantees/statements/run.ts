import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../support/postgres.ts'
import { type Series, type Tally, trySeries } from './campaign.ts'
import { type Fault, faultsOf, isSilence } from './faults.ts'
import { operations } from './operations.ts'
import { PostgresSite } from './postgres-site.ts'
import type { Site } from './site.ts'
import { SqliteSite } from './sqlite-site.ts'
import { makeStates } from './states.ts'

/** sample: a share of the statements on SQLite, with every fault. short: all of them. long: all on both stores. */
export type Form = 'sample' | 'short' | 'long'

export type Figures = Record<string, number | string>

/** Sites at work at once: each has a process of its own. */
const busyLanes = 2

/** A silent server is waited for ten seconds or a minute each time, in which nobody computes. */
const silentLanes = 12

/** In the sample a fault befalls every so many statements; each fault begins at another one. */
const sampleStep = 47

/** So many violations are described; whatever is wrong shows in these. */
const mostDescribed = 10

/**
 * Kill at every statement, error at every statement.
 *
 * Throws with what was violated, each time with how to replay it. print: takes a line of progress.
 */
export async function run(form: Form, print: (line: string) => void): Promise<Figures> {
  const startedAt = performance.now()
  const sqlite = await onSqlite(form, print)
  const postgres = form === 'long' ? await onPostgres(print) : emptyTally()
  return {
    operations: operations.length,
    'statements struck on SQLite': sqlite.cases,
    'statements struck on Postgres': postgres.cases,
    kills: sqlite.kills + postgres.kills,
    errors: sqlite.errors + postgres.errors,
    'jobs lost or doubled': 0,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  }
}

async function onSqlite(form: Form, print: (line: string) => void): Promise<Tally> {
  return withSqlite(busyLanes, (sites) => tryAll(sites, seriesOf(faultsOf.sqlite, form), print))
}

async function onPostgres(print: (line: string) => void): Promise<Tally> {
  const series = seriesOf(faultsOf.postgres, 'long')
  const [silent, busy] = [
    series.filter(({ fault }) => isSilence(fault)),
    series.filter(({ fault }) => !isSilence(fault)),
  ]
  return withPostgres(silentLanes, async (sites) => {
    const tally = await tryAll(sites.slice(0, busyLanes), busy, print)
    const more = await tryAll(sites, silent.filter(endsInTime), print)
    return { cases: tally.cases + more.cases, kills: tally.kills + more.kills, errors: tally.errors + more.errors }
  })
}

/** A migration may take ten minutes, and so long a silent server is waited for. */
const endsInTime = ({ operation }: Series): boolean => operation.name !== 'migrate'

function seriesOf(faults: readonly Fault[], form: Form): readonly Series[] {
  return operations.flatMap((operation, row) =>
    faults.map((fault, column) => {
      const first = 1 + ((column * 2 + row) % sampleStep)
      const stride = form === 'sample' ? { first, step: sampleStep } : { first: 1, step: 1 }
      return { operation, fault, stride }
    }),
  )
}

/** Lends sites of their own on new SQLite files; every state has been made. */
export async function withSqlite<T>(count: number, use: (sites: readonly Site[]) => Promise<T>): Promise<T> {
  const shelf = mkdtempSync(join(tmpdir(), 'khepri-statements-'))
  try {
    const sites = Array.from({ length: count }, () => new SqliteSite(shelf))
    return await lend(sites, async () => {
      await makeStates(sites[0] as Site)
      return use(sites)
    })
  } finally {
    rmSync(shelf, { recursive: true })
  }
}

/** The same, on databases of a private Postgres server. */
export async function withPostgres<T>(count: number, use: (sites: readonly Site[]) => Promise<T>): Promise<T> {
  const server = await startPostgres({ settings: { max_connections: '200' } })
  try {
    const first = await PostgresSite.open(server, 'model', 'template1')
    await lend([first], () => makeStates(first))
    const sites: Site[] = []
    return await lend(sites, async () => {
      for (let number = 0; number < count; number++)
        sites.push(await PostgresSite.open(server, `site_${number}`, 'model'))
      return use(sites)
    })
  } finally {
    await server.remove()
  }
}

/** Closes sites at the end, those too that came meanwhile. */
async function lend<T>(sites: readonly Site[], use: () => Promise<T>): Promise<T> {
  try {
    return await use()
  } finally {
    for (const site of sites) await site.close()
  }
}

/** Hands one series after another to whichever site is free. */
async function tryAll(
  sites: readonly Site[],
  series: readonly Series[],
  print: (line: string) => void,
): Promise<Tally> {
  const tally = emptyTally()
  const wrong: string[] = []
  const left = series.values()
  const lane = async (site: Site): Promise<void> => {
    for (const each of left) {
      wrong.push(...(await trySeries(site, each, tally)))
      print(
        `${site.store}: ${each.operation.name}, ${each.fault}: ${tally.cases} statements struck, ${wrong.length} violations`,
      )
    }
  }
  await Promise.all(sites.map(lane))
  if (wrong.length === 0) return tally
  throw new Error(`${wrong.length} violations in ${tally.cases} cases:\n${wrong.slice(0, mostDescribed).join('\n')}`)
}

function emptyTally(): Tally {
  return { cases: 0, kills: 0, errors: 0 }
}
