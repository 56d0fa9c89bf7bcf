import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Installation, onBothStores, type StoreKind } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'
import { expectRefusal } from '../support/refusals.ts'

const tables: Readonly<Record<StoreKind, string>> = {
  sqlite: 'select name from sqlite_schema order by name',
  postgres: "select relname as name from pg_class where relnamespace = 'public'::regnamespace order by relname",
}

/** Everything that a measurement could leave behind: files of the project, tables and indexes of the database. */
async function things(installation: Installation, store: StoreKind): Promise<readonly unknown[]> {
  const names = (await installation.ask(tables[store])).map(({ name }) => name)
  return [...readdirSync(installation.project.path).sort(), ...names]
}

const positive = expect.toSatisfy((value: unknown) => typeof value === 'number' && value > 0, 'a positive number')

onBothStores('khepri bench', (store) => {
  it.concurrent('measures dispatching, working and the pick-up, names the settings, and leaves nothing behind', async () => {
    await using installation = await Installation.migrated(store)
    const before = await things(installation, store)
    const { code, stdout, stderr } = await installation.run(['bench', '--jobs=300', '--concurrency=2', '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(measuring) })
    expect(JSON.parse(stdout)).toEqual({
      dispatch: { perSecond: positive, jobs: positive, ms: positive },
      dispatchInBatches: { perSecond: positive, jobs: 300, ms: positive, batch: 10_000 },
      work: { perSecond: positive, jobs: positive, ms: positive, concurrency: 2 },
      pickUp: { p50Ms: positive, p95Ms: positive, p99Ms: positive, jobs: 200 },
      settings: expect.objectContaining({
        ...{ database: expect.any(String), Node: expect.stringContaining(process.versions.node) },
        ...(store === 'sqlite' ? { journal_mode: 'wal' } : { synchronous_commit: 'on', prepare: 'true' }),
      }),
    })
    expect(await things(installation, store)).toEqual(before)
  })

  it.concurrent('ends on Ctrl-C with 130, and leaves nothing behind', async () => {
    await using installation = await Installation.migrated(store)
    await installation.dispatch('note')
    const before = await things(installation, store)
    await using live = installation.start(['bench'])
    await live.until(measuring, 'stderr')
    expect(await things(installation, store)).not.toEqual(before)
    live.kill('SIGINT')
    const { code, stdout, stderr } = await live.ended
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' })
    expect(stderr).toMatch(/\nStopped; nothing of the measurement is left in the database\n$/)
    expect(await things(installation, store)).toEqual(before)
    expect(await installation.must('status', '--plain')).toMatch(/^queue\tdefault\t1\t0\t0\t0\t/m)
  })
})

const measuring = /^Measuring on khepri_bench_[0-9a-f]{12} in .+; Ctrl-C stops\n/

describe('khepri bench', () => {
  it('prints the figures and what they depend on, one a line', async () => {
    using project = await migratedProject()
    const { code, stdout } = await project.khepri(['bench', '--jobs=100', '--plain', '--quiet'])
    expect(code).toBe(0)
    expect(stdout.split('\n').map((line) => line.split('\t', 1)[0])).toEqual([
      ...['dispatch', 'dispatch in batches', 'work', 'pick-up p50', 'pick-up p95', 'pick-up p99'],
      ...['database', 'Node', 'SQLite', 'journal_mode', 'synchronous', ''],
    ])
    expect(stdout).toMatch(/^dispatch in batches\t[\d,]+\/s\t100 jobs, up to 10,000 jobs a transaction$/m)
    expect(stdout).toMatch(/^pick-up p99\t\d+\.\d ms\t200 jobs, one every 20 ms$/m)
  })

  it('refuses the memory store, which has no database', async () => {
    using project = await migratedProject()
    expectRefusal(await project.khepri(['bench', '--database=memory:']), {
      code: 2,
      says: 'the memory store has no database to measure\n  fix: say --database, or set database in the configuration\n',
    })
  })
})
