import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { tableNames } from '../../../src/core/store/names.ts'
import { relations } from '../../../src/core/store/postgres/fragments.ts'
import type { Statement } from '../../../src/core/store/postgres/statement.ts'
import { statementsFor } from '../../../src/core/store/postgres/statements.ts'
import { postgresSkipReason } from '../../support/postgres.ts'
import { migratedDatabase } from './postgres-support.ts'

const statements = statementsFor(relations(tableNames('jobs', 'failed_jobs'), undefined))
const { lean, leanFromMarks, full, fullFromMarks, nextDue, look, ...others } = statements

const hot: Readonly<Record<string, Statement>> = {
  ...others,
  ...scopesOf('lean', lean),
  ...scopesOf('lean from marks', leanFromMarks),
  ...scopesOf('full', full),
  ...scopesOf('full from marks', fullFromMarks),
  ...scopesOf('nextDue', nextDue),
  ...scopesOf('look', look),
}

function scopesOf(name: string, texts: Readonly<Record<string, Statement>>): Readonly<Record<string, Statement>> {
  return Object.fromEntries(Object.entries(texts).map(([scope, text]) => [`${name}, ${scope} queues`, text]))
}

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly Operation?: string
  readonly Plans?: readonly Plan[]
}

/** What a long-lived worker gets: one plan for whatever the parameters are. */
async function genericPlan(client: postgres.Sql, name: string, { text, parameters }: Statement): Promise<Plan> {
  await client.unsafe(`prepare "${name}" as ${text}`)
  const values = parameters.length === 0 ? '' : `(${parameters.map(() => 'null').join(', ')})`
  const [row] = await client.unsafe(`explain (format json) execute "${name}"${values}`)
  return row?.['QUERY PLAN'][0].Plan
}

function everyNode(plan: Plan): readonly Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(everyNode)]
}

async function databaseWith(jobs: number, analysed: boolean): Promise<postgres.Sql> {
  const client = postgres(await migratedDatabase(), { max: 1, onnotice: () => {} })
  onTestFinished(() => client.end())
  await client`set plan_cache_mode = force_generic_plan`
  await client`alter table jobs set (autovacuum_enabled = off)`
  await client`insert into jobs (queue, priority, available_at, worker, fence, job, unique_key, version, enqueued_at, envelope)
    select 'q' || n % 3, n % 5, n, case when n % 50 = 0 then n % 7 end, n % 2, 'note', n::text, 1, 0, repeat('x', 100)
    from generate_series(1, ${jobs}::int) n`
  await client`insert into jobs_attempts (job_id, fence, attempt, worker, started_at, ended_at, error_type, message)
    select n, 1, 1, 'w', 0, 0, 'Error', 'no' from generate_series(1, ${jobs}::int) n, generate_series(1, 10)`
  await client`insert into jobs_workers (id, name, version, host, pid, queues, concurrency, lease_ms, state, started_at, beat_at)
    select n, 'w', '1', 'h', 1, 'q', 1, 1, 'working', 0, 0 from generate_series(1, 7) n`
  await client`insert into jobs_parents (parent, child, on_failure, available_at)
    select n, n + 1, 'wait', 0 from generate_series(1, ${jobs}::int) n`
  if (analysed) await client`analyze`
  return client
}

describe.skipIf(postgresSkipReason())('plans on Postgres', () => {
  const sizes = [
    { jobs: 0, analysed: false },
    { jobs: 2_000, analysed: false },
    { jobs: 2_000, analysed: true },
    { jobs: 40_000, analysed: false },
    { jobs: 40_000, analysed: true },
  ]

  test.each(sizes)(
    'no hot statement reads all of $jobs jobs, attempts or parents, analysed: $analysed',
    async (size) => {
      const client = await databaseWith(size.jobs, size.analysed)

      const scans: string[] = []
      for (const [name, text] of Object.entries(hot))
        for (const node of everyNode(await genericPlan(client, name, text)))
          if (node['Node Type'] === 'Seq Scan' && isBig(node, name)) scans.push(`${name}: ${node['Relation Name']}`)
      expect(scans).toEqual([])
    },
  )

  test('a settlement finds its jobs by id, not among all that are held', async () => {
    const client = await databaseWith(40_000, true)

    const nodes = everyNode(await genericPlan(client, 'settle', lean.strict))
    const deletion = nodes.find((node) => node.Operation === 'Delete' && node['Relation Name'] === 'jobs')
    const indexes = deletion && everyNode(deletion).flatMap((node) => node['Index Name'] ?? [])
    expect(indexes).toEqual(['jobs_pkey'])
  })

  test.each(Object.entries(look))('a look at %s queues reads four small indexes and locks nothing', async (_, text) => {
    const client = await databaseWith(40_000, true)

    const nodes = everyNode(await genericPlan(client, 'look', text))
    const indexes = nodes.filter(readsJobs).map((node) => node['Index Name'])
    expect(new Set(indexes)).toEqual(new Set(['jobs_pkey', 'jobs_suspect', 'jobs_newer']))
    expect(nodes.filter((node) => /LockRows|ModifyTable/.test(node['Node Type']))).toEqual([])
  })

  test.each([
    ['heldByDead', ['jobs_held']],
    ['abandoned', ['jobs_cancelled']],
    ['chores', ['jobs_held', 'jobs_cancelled']],
    ['freeDead', ['jobs_pkey']],
    ['endAbandoned', ['jobs_pkey', 'jobs_cancelled']],
  ] as const)('%s of recovery reads %j', async (name, indexes) => {
    const client = await databaseWith(40_000, true)

    const nodes = everyNode(await genericPlan(client, 'recovery', others[name])).filter(readsJobs)
    expect(new Set(nodes.flatMap((node) => node['Index Name'] ?? []))).toEqual(new Set(indexes))
  })
})

/** What walks through those that wait in bounded steps may read a small table of parents as a whole. */
function isBig({ 'Relation Name': table = '' }: Plan, name: string): boolean {
  return name === 'judgeSome' ? table === 'jobs' : /^jobs(_attempts|_parents)?$/.test(table)
}

/** Index scans of any kind; the tables of workers are small. */
function readsJobs({ 'Index Name': index }: Plan): boolean {
  return (
    index?.startsWith('jobs_') === true &&
    !index.startsWith('jobs_workers') &&
    !index.startsWith('jobs_queues') &&
    !index.startsWith('jobs_parents')
  )
}
