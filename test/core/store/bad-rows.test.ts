import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { KhepriError } from '../../../src/core/errors.ts'
import type { Admin, FailedJob } from '../../../src/core/store/admin.ts'
import { RecoveryPass, type RecoverySteps } from '../../../src/core/store/recovery.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { aProfile, aRecord, aRecovery, aWish, enqueueAll, jobs } from '../../../src/testing/conformance/builders.ts'
import { command, postgresSkipReason } from '../../support/postgres.ts'
import * as onPostgres from './postgres-support.ts'
import * as onSqlite from './sqlite-support.ts'

const nothing = { settle: [], enqueue: [], start: [], disown: [], reserve: null } as const
const observation = { observer: 1, gone: [7], rebooted: [], silent: false } as const

/** A store of its own, and a way past it into its tables. */
interface Stage {
  readonly store: Store
  readonly admin: Admin
  sql(text: string): Promise<void>
  /** Lets the database refuse to give one job back. */
  refuse(id: number): Promise<void>
  allow(): Promise<void>
}

async function sqliteStage(): Promise<Stage> {
  const path = await onSqlite.migratedPath()
  const db = new Database(path)
  onTestFinished(() => void db.close())
  const sql = async (text: string): Promise<void> => void db.exec(text)
  return {
    store: await onSqlite.openStore(path),
    admin: await onSqlite.openAdmin(path),
    sql,
    refuse: (id) =>
      sql(`create trigger refuse before update on jobs when old.id = ${id} and new.worker is null
        begin select raise(abort, 'no'); end`),
    allow: () => sql('drop trigger refuse'),
  }
}

async function postgresStage(): Promise<Stage> {
  const url = await onPostgres.migratedDatabase()
  const sql = async (text: string): Promise<void> => void (await command(url, text))
  return {
    store: await onPostgres.openStore(url),
    admin: await onPostgres.openAdmin(url),
    sql,
    refuse: (id) =>
      sql(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
        create trigger refuse before update on jobs for each row
        when (old.id = ${id} and new.worker is null) execute function refuse()`),
    allow: () => sql('drop trigger refuse on jobs'),
  }
}

/** A worker that has taken some jobs. */
async function takeAll(store: Store, count: number): Promise<readonly number[]> {
  const ids = await enqueueAll(store, jobs(count))
  await store.beat({ kind: 'joining', worker: 7, profile: aProfile() })
  await store.exchange({ ...nothing, worker: 7, reserve: aWish({ limit: count }) })
  return ids
}

describe.each([
  { name: 'SQLite', stage: sqliteStage, missing: null },
  { name: 'Postgres', stage: postgresStage, missing: postgresSkipReason() },
])('a row that the $name store cannot change', ({ stage, missing }) => {
  test.skipIf(missing)('does not keep 4 jobs of a dead worker from being freed, and is named once', async () => {
    const { store, refuse, allow } = await stage()
    const ids = await takeAll(store, 5)
    const bad = ids.slice(2, 3)
    await refuse(bad[0] ?? 0)

    expect(await store.recover(observation)).toEqual(aRecovery({ dead: [7], freed: 4, bad }))
    expect(await store.recover(observation)).toEqual(aRecovery())
    await allow()
    expect(await store.recover(observation)).toEqual(aRecovery({ freed: 1 }))
  })

  test.skipIf(missing)('does not keep 599 other jobs in two batches from being freed', async () => {
    const { store, refuse } = await stage()
    const ids = await takeAll(store, 600)
    await refuse(ids[10] ?? 0)

    expect(await store.recover(observation)).toMatchObject({ freed: 599, bad: ids.slice(10, 11) })
  })

  test.skipIf(missing)('does not keep 2 other cancelled jobs from being ended', async () => {
    const { store, admin, sql } = await stage()
    const ids = await takeAll(store, 3)
    await admin.cancel(ids)
    await sql(`insert into jobs_ended (id, state, fence, queue, priority, job, failures, version, enqueued_at, ended_at,
      envelope) values (${ids[1]}, 'done', 1, 'default', 0, 'note', 0, 1, 0, 0, '{}')`)

    expect(await store.recover(observation)).toEqual(
      aRecovery({ dead: [7], freed: 3, cancelled: 2, bad: ids.slice(1, 2) }),
    )
    expect(await store.recover(observation)).toEqual(aRecovery())
  })

  test.skipIf(missing)(
    'keeps the row of its dead worker for longer than a day, so that it can still be found',
    async () => {
      const { store, admin, sql, refuse, allow } = await stage()
      const [id = 0] = await takeAll(store, 1)
      await refuse(id)
      await store.recover(observation)
      await sql('update jobs_workers set dead_at = dead_at - 90000000')
      await store.recover(observation)
      expect((await admin.workers()).map((worker) => worker.id)).toEqual([7])

      await allow()
      expect(await store.recover(observation)).toEqual(aRecovery({ freed: 1 }))
      expect(await admin.workers()).toEqual([])
    },
  )
})

describe('an outage in the middle of a recovery', () => {
  test('is no row’s fault: it ends the recovery and nothing is tried one by one', async () => {
    const outage = new KhepriError('STORE_UNREACHABLE', 'the database is gone')
    const tried: (readonly number[])[] = []
    const steps: RecoverySteps = {
      chores: async () => ({ judge: false, free: true, end: false, forget: false, adopt: false, release: false }),
      judge: async () => [],
      dead: async () => [9],
      heldByDead: async () => [1, 2, 3],
      free: async (ids) => {
        tried.push(ids)
        throw outage
      },
      abandoned: async () => [],
      end: async () => 0,
      forget: async () => {},
      adopt: async () => {},
      waiting: async () => ({ settled: [], upTo: null }),
      release: async () => 0,
      malformed: async () => [],
    }

    await expect(new RecoveryPass(steps).run(observation)).rejects.toBe(outage)
    expect(tried).toEqual([[1, 2, 3]])
  })
})

describe('a stranger’s hand in an SQLite file', () => {
  test.each([
    ['priority', `'abc'`],
    ['available_at', `'soon'`],
    ['version', `'x'`],
    ['worker', `'nobody'`],
    ['failures', `x'00'`],
  ])('does not leave a job of which nobody speaks: one with a %s of %s is named once', async (column, value) => {
    const { store, sql } = await sqliteStage()
    const [, bad] = await enqueueAll(store, jobs(3))
    await sql(`update jobs set ${column} = ${value} where id = ${bad}`)

    expect(await store.recover(observation)).toEqual(aRecovery({ bad: [bad as number] }))
    expect(await store.recover(observation)).toEqual(aRecovery())
    expect(await store.recover(observation)).toEqual(aRecovery())
  })

  test('does not hide a malformed job behind 5,000 good ones: it is named when the look has come to it', async () => {
    const { store, sql } = await sqliteStage()
    const ids = await enqueueAll(store, jobs(5_001))
    await sql(`update jobs set priority = 'abc' where id = ${ids.at(-1)}`)

    expect((await store.recover(observation)).bad).toEqual([])
    expect((await store.recover(observation)).bad).toEqual([ids.at(-1)])
  })

  test('does not make the lists of the admin unreadable: a blob is shown as text, a text as 0', async () => {
    const { store, admin, sql } = await sqliteStage()
    const [first, second] = await takeAll(store, 2)
    await store.exchange({
      ...nothing,
      worker: 7,
      settle: [first, second].map((id) => ({
        id: id as number,
        fence: 1,
        kind: 'fail',
        reason: 'tries',
        attempt: aRecord(),
      })),
    })
    const [live] = await enqueueAll(store, jobs(1))
    await sql(
      `update failed_jobs set job = x'6162', failed_at = 'once', queue = x'00ff', error = x'63' where id = ${first}`,
    )
    await sql(`update jobs set job = x'6162', queue = x'71' where id = ${live}`)
    await sql(`update jobs_attempts set message = x'6d', attempt = 'one' where job_id = ${first}`)

    const failed: FailedJob[] = []
    for await (const job of admin.failed({}, null)) failed.push(job)
    expect(failed.find(({ id }) => id === first)).toMatchObject({ job: 'ab', failedAt: 0, error: 'c' })
    expect(failed).toHaveLength(2)
    expect(await admin.findFailed(first as number)).toMatchObject({ job: 'ab' })
    expect(await admin.attempts(first as number)).toMatchObject([{ message: 'm', attempt: 0 }])
    expect((await admin.failedGroups({}, 'job')).map(({ key }) => key)).toContain('ab')
    expect((await admin.counts()).map(({ queue }) => typeof queue)).toEqual(['string', 'string', 'string'])
    expect(await admin.find(live as number)).toMatchObject({ job: 'ab', queue: 'q' })
  })
})
