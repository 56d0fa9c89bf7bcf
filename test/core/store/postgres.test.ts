import { describe, expect, test } from 'vitest'
import { tableNames } from '../../../src/core/store/names.ts'
import type { StoreOptions } from '../../../src/core/store/options.ts'
import type { Reservation, Store, Wish, WorkerId } from '../../../src/core/store/store.ts'
import {
  aJob,
  aRecord,
  aWish,
  enqueueAll,
  enqueueOne,
  jobs,
  sorted,
} from '../../../src/testing/conformance/builders.ts'
import { ask, command, postgresSkipReason } from '../../support/postgres.ts'
import { inTransaction, migrate, migratedDatabase, openAdmin, openStore, untilItWaits } from './postgres-support.ts'

const nothing = { settle: [], enqueue: [], start: [], disown: [], reserve: null } as const

/** Reserves and completes until nothing is left; answers what came, and how many at a time. */
async function drain(store: Store, worker: WorkerId, wish: Wish) {
  const ids: number[] = []
  const sizes: number[] = []
  let held: readonly Reservation[] = []
  do {
    const settle = held.map(({ id, fence }) => ({ id, fence, kind: 'complete', keep: false }) as const)
    const { lost, reserved } = await store.exchange({ ...nothing, worker, settle, reserve: wish })
    expect(lost).toEqual([])
    held = reserved
    ids.push(...held.map(({ id }) => id))
    sizes.push(held.length)
  } while (held.length > 0)
  return { ids, sizes }
}

const insertWithKey = `insert into jobs (queue, available_at, job, unique_key, version, enqueued_at, envelope)
  values ('default', 0, 'note', 'k', 1, 0, '{}')`

describe.skipIf(postgresSkipReason())('the Postgres store', () => {
  test.each([
    { scope: 'strict', queues: [['a'], ['b'], ['c']] },
    { scope: 'merged', queues: [['a', 'b', 'c']] },
    { scope: 'all', queues: 'all' },
  ] as const)(
    'four workers drain 1,500 jobs without gaps or doubles and never get more than 40, queues $scope',
    async ({ queues }) => {
      const url = await migratedDatabase()
      const stores = await Promise.all([1, 2, 3, 4].map(() => openStore(url)))
      const all = Array.from({ length: 1_500 }, (_, n) => aJob({ queue: 'abc'.charAt(n % 3), priority: n % 4 }))
      const ids = await enqueueAll(stores[0] as Store, all)

      const drained = await Promise.all(
        stores.map((store, n) => drain(store, n + 1, aWish({ queues, limit: 40, suspects: true }))),
      )

      // Whoever found everything locked for a moment stopped early; the last look takes what that left.
      const rest = await drain(stores[0] as Store, 9, aWish({ queues, limit: 40, suspects: true }))
      expect(sorted([...drained.flatMap((one) => one.ids), ...rest.ids])).toEqual(ids)
      expect(Math.max(...drained.flatMap((one) => one.sizes))).toBeLessThanOrEqual(40)
    },
  )

  test('an enqueue waits for another that holds its unique key uncommitted, and takes the place of one rolled back', async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)
    const other = await inTransaction(url, insertWithKey)

    const enqueued = store.enqueue([aJob({ uniqueKey: 'k' })])
    await untilItWaits(url)
    await other`rollback`

    expect(await enqueued).toEqual([{ id: expect.any(Number), duplicate: false }])
    expect(await ask(url, 'select id from jobs')).toHaveLength(1)
  })

  test('an enqueue that waited for a holder which then committed answers the id of that holder', async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)
    const other = await inTransaction(url, insertWithKey)

    const enqueued = store.enqueue([aJob(), aJob({ uniqueKey: 'k' })])
    await untilItWaits(url)
    await other`commit`

    const [holder] = await ask(url, `select id::int from jobs where unique_key = 'k'`)
    expect(await enqueued).toEqual([
      { id: expect.any(Number), duplicate: false },
      { id: holder?.id, duplicate: true },
    ])
  })

  test('a key that is dispatched 150 times while a worker finishes its jobs never ends in an error', async () => {
    const url = await migratedDatabase()
    const [store, worker] = [await openStore(url), await openStore(url)]

    let isOver = false
    const working = (async () => {
      while (!isOver) await drain(worker, 1, aWish())
    })()
    for (let n = 0; n < 150; n++)
      await Promise.all([store.enqueue([aJob({ uniqueKey: 'k' })]), store.enqueue(jobs(2, { uniqueKey: 'k' }))])
    isOver = true
    await working

    const left = await ask(url, 'select id from jobs')
    expect(left.length).toBeLessThanOrEqual(1)
  })

  test('12,000 jobs, three of them with a taken key, are one transaction and are answered in order', async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)
    const holder = await enqueueOne(store, { uniqueKey: 'k' })
    const all = Array.from({ length: 12_000 }, (_, n) => aJob({ uniqueKey: n % 5_000 === 0 ? 'k' : null }))

    const answers = await store.enqueue(all)

    const places = answers.flatMap(({ duplicate }, place) => (duplicate ? [place] : []))
    expect(places).toEqual([0, 5_000, 10_000])
    expect(places.map((place) => answers[place]?.id)).toEqual([holder, holder, holder])
    const fresh = answers.filter(({ duplicate }) => !duplicate).map(({ id }) => id)
    expect(fresh).toEqual(sorted(fresh))
    expect(await ask(url, 'select distinct xmin::text from jobs where unique_key is null')).toHaveLength(1)
  })

  test('without prepared statements a job is enqueued, reserved, retried, failed and listed all the same', async () => {
    const url = await migratedDatabase()
    const [store, admin] = [await openStore(url, { prepare: false }), await openAdmin(url, { prepare: false })]
    const id = await enqueueOne(store)

    const first = await store.exchange({ ...nothing, worker: 1, reserve: aWish() })
    const [held] = first.reserved
    const retry = { id, fence: held?.fence ?? 0, kind: 'retry', delayMs: 0, attempt: aRecord() } as const
    const second = await store.exchange({ ...nothing, worker: 1, settle: [retry], reserve: aWish() })
    const fail = { ...retry, fence: 2, kind: 'fail', reason: 'tries' } as const
    await store.exchange({ ...nothing, worker: 1, settle: [fail] })

    expect(second.reserved).toMatchObject([{ id, fence: 2, failures: 1 }])
    expect(await admin.findFailed(id)).toMatchObject({ id, fence: 2, failures: 2, reason: 'tries' })
    expect(await admin.attempts(id)).toHaveLength(2)
  })

  test('a round that frees, dispatches and disowns may reserve all of it again, in one transaction', async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)
    const [done, released, disowned] = await enqueueAll(store, jobs(3))
    await store.exchange({ ...nothing, worker: 1, reserve: aWish({ limit: 2 }) })
    await store.exchange({ ...nothing, worker: 1, reserve: aWish({ batch: 2 }) })

    const { ids, reserved } = await store.exchange({
      worker: 1,
      settle: [
        { id: done ?? 0, fence: 1, kind: 'complete', keep: false },
        { id: released ?? 0, fence: 1, kind: 'release', delayMs: null },
      ],
      enqueue: [{ ...aJob(), parent: done ?? 0 }],
      start: [],
      disown: [2],
      reserve: aWish({ batch: 3 }),
    })

    expect(reserved.map(({ id }) => id)).toEqual([released, disowned, ids[0]])
  })

  test('two installations in one database, told apart by table, do not see each other', async () => {
    const names = { names: tableNames('mail', 'mail_failed') }
    await areApart(await migratedDatabase(), names)
  })

  test('two installations in one database, told apart by schema, do not see each other', async () => {
    await areApart(await migratedDatabase(), { schema: 'Mail "2"' })
  })

  async function areApart(url: string, parts: Partial<StoreOptions>): Promise<void> {
    await migrate(url, parts)
    const [ours, theirs] = [await openStore(url), await openStore(url, parts)]
    const admin = await openAdmin(url, parts)
    await ours.enqueue(jobs(2, { uniqueKey: 'k' }))
    await admin.pause(['default'], null, null)

    expect(await theirs.nextDue(aWish())).toBeNull()
    expect(await theirs.enqueue([aJob({ uniqueKey: 'k' })])).toMatchObject([{ duplicate: false }])
    expect((await ours.exchange({ ...nothing, worker: 1, reserve: aWish() })).reserved).toHaveLength(1)
    expect(await admin.counts()).toMatchObject([{ queue: 'default', ready: 1, paused: true }])
  }

  test('without a clock of its own the store goes by the time of the server', async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)
    const id = await enqueueOne(store, { due: { delayMs: 3_600_000 } })

    const [row] = await ask(
      url,
      `select available_at - enqueued_at = 3600000 as delayed,
        enqueued_at between extract(epoch from now() - interval '1 minute') * 1000 and extract(epoch from now()) * 1000 + 1
          as fresh
       from jobs where id = ${id}`,
    )
    expect(row).toEqual({ delayed: true, fresh: true })
    expect(await store.nextDue(aWish())).toBeGreaterThan(3_500_000)
  })

  test('the zone and the language of the server change nothing', async () => {
    const url = await migratedDatabase()
    await command(url, `alter database ${url.split('/').at(-1)} set timezone = 'America/Caracas'`)
    const store = await openStore(url)
    await enqueueOne(store)

    expect(await store.nextDue(aWish())).toBe(0)
  })

  test('a store opens at most three connections, however many calls are under way', async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)

    await Promise.all(Array.from({ length: 50 }, () => store.enqueue([aJob()])))

    const sessions = `select from pg_stat_activity where application_name = 'khepri' and datname = current_database()`
    expect(await ask(url, sessions)).toHaveLength(3)
  })
})
