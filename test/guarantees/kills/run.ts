import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../support/postgres.ts'
import { violationsIn } from '../history/checker.ts'
import { evidenceOf } from '../history/evidence.ts'
import type { History } from '../history/history.ts'
import { orderedStarts } from '../history/order.ts'
import { recoveryTimes } from '../history/recovery.ts'
import { promises, type Violation } from '../history/violation.ts'
import type { Figures, Form, Print } from '../part.ts'
import { Campaign, type CampaignTally, type CampaignTerms } from './campaign.ts'

/** Kills and jobs on each of the two stores. */
const sizes: Readonly<Record<Form, { readonly kills: number; readonly jobs: number }>> = {
  sample: { kills: 10, jobs: 240 },
  short: { kills: 50, jobs: 3_000 },
  long: { kills: 1_000, jobs: 100_000 },
}

/** What may be said about a campaign beforehand. */
export interface RunOptions {
  readonly seed?: number
  /** A database to use; without it a private server is started for the campaign. */
  readonly url?: string
}

/**
 * Kills workers and commands on both stores, one after the other, and checks every promise against what was seen.
 *
 * Throws where one is broken, with the jobs, the seed and the file that holds the history.
 */
export async function run(form: Form, print: Print, options: RunOptions = {}): Promise<Figures> {
  const { seed = Math.floor(Math.random() * 2 ** 31) } = options
  return { ...(await runOnSqlite(form, print, seed)), ...(await runOnPostgres(form, print, { ...options, seed })) }
}

/** The half of `run` that works on an SQLite file. */
export function runOnSqlite(form: Form, print: Print, seed: number): Promise<Figures> {
  return campaignOn('sqlite', { ...sizes[form], seed, url: null, print })
}

/** The half of `run` that works on Postgres. */
export async function runOnPostgres(form: Form, print: Print, { seed = 1, url }: RunOptions): Promise<Figures> {
  if (url !== undefined) return campaignOn('postgres', { ...sizes[form], seed, url, print })
  const server = await startPostgres()
  try {
    return await campaignOn('postgres', { ...sizes[form], seed, url: server.url, print })
  } finally {
    await server.remove()
  }
}

async function campaignOn(store: 'sqlite' | 'postgres', terms: CampaignTerms): Promise<Figures> {
  const { seed, print } = terms
  print(`kills on ${store}: seed ${seed}`)
  using campaign = new Campaign({ ...terms, print: (line) => print(`kills on ${store}: ${line}`) })
  const startedAt = performance.now()
  const history = await campaign.run()
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  const violations = violationsIn(history)
  if (violations.length > 0) throw new Error(complaint(violations, { store, seed, history }))
  return figuresOf(store, history, { ...campaign.tally, seed, seconds })
}

function figuresOf(
  store: string,
  history: History,
  tally: CampaignTally & { readonly seed: number; readonly seconds: number },
): Figures {
  const evidence = evidenceOf(history)
  const runs = evidence.stories.flatMap((story) => story.runs)
  const waits = recoveryTimes(evidence).map(({ ms }) => ms)
  const figures = {
    ...tally,
    kills: tally.workersKilled + tally.commandsKilled,
    leaseMs: history.timing.leaseMs,
    runs: runs.length,
    lost: 0,
    secondStartsExplained: runs.length - evidence.stories.filter(({ runs: some }) => some.length > 0).length,
    recoveriesTimed: waits.length,
    slowestRecoveryMs: Math.round(Math.max(0, ...waits)),
    startsCompared: orderedStarts(evidence),
  }
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${store} ${name}`, value]))
}

/** What broke, as many as can be read, and how to look at it again. */
function complaint(
  violations: readonly Violation[],
  { store, seed, history }: { readonly store: string; readonly seed: number; readonly history: History },
): string {
  const file = join(tmpdir(), `khepri-history-${store}-${seed}.json`)
  writeFileSync(file, JSON.stringify(history))
  const shown = violations
    .slice(0, 20)
    .map(({ promise, what }) => `  ${promises[promise].split(':')[0]} ${promise}: ${what}`)
  return [
    `${violations.length} promises were broken on ${store} with seed ${seed}:`,
    ...shown,
    `look at it again: node test/guarantees/history/check.ts ${file}`,
    `run it again:     node test/guarantees/kills/main.ts --form=sample --seed=${seed}`,
  ].join('\n')
}
