import assert from 'node:assert/strict'
import type { Filter } from '../../../core/store/store.ts'
import { aJob, aWish, enqueueOne, leaseMs } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'

/** Every combination of these is asked: reserve and nextDue must agree on each. */
const queueChoices: readonly Filter['queues'][] = [[['a']], [['none']], [['paused']], [['a', 'b'], ['c']], 'all']
const exceptQueueChoices = [[], ['b']] as const
const onlyChoices = [null, ['note'], ['late'], []] as const
const exceptChoices = [[], ['note']] as const
const versionChoices = [0, 1, 9] as const
const suspectChoices = [true, false] as const

function allFilters(exclude: Filter['exclude']): readonly Filter[] {
  return queueChoices.flatMap((queues) =>
    exceptQueueChoices.flatMap((exceptQueues) =>
      onlyChoices.flatMap((only) =>
        exceptChoices.flatMap((except) =>
          versionChoices.flatMap((maxVersion) =>
            suspectChoices.map((suspects) => ({ queues, exceptQueues, only, except, exclude, maxVersion, suspects })),
          ),
        ),
      ),
    ),
  )
}

/** Two suspects on queue c, a scheduled job, newer ones, a paused queue. */
async function prepare({ store, admin, first, second, clock }: Context): Promise<void> {
  await store.enqueue([aJob({ queue: 'c' }), aJob({ queue: 'c', job: 'late' })])
  await first.join()
  await first.reserve({ queues: [['c']] })
  await clock.advance(leaseMs + 1)
  await second.recover()
  await store.enqueue([
    aJob({ queue: 'a', version: 9 }),
    aJob({ queue: 'a', job: 'late', due: { delayMs: 5_000 } }),
    aJob({ queue: 'b' }),
    aJob({ queue: 'b', job: 'other', version: 2 }),
    aJob({ queue: 'paused' }),
  ])
  await admin.pause(['paused'], null, null)
}

async function disagreements({ store, first }: Context, exclude: Filter['exclude']): Promise<readonly string[]> {
  const wrong: string[] = []
  for (const filter of allFilters(exclude)) {
    const wait = await store.nextDue(filter)
    const reserved = await first.reserve(filter)
    if ((wait === 0) !== reserved.length > 0)
      wrong.push(`${JSON.stringify(filter)}: ${wait}, ${reserved.length} reserved`)
    for (const job of reserved) await first.release(job)
  }
  return wrong
}

/** How long a worker may sleep. */
export const nextDueCases: readonly ConformanceCase[] = [
  {
    name: 'nextDue is null where there is nothing',
    async run({ store }) {
      assert.equal(await store.nextDue(aWish()), null)
      assert.equal(await store.nextDue(aWish({ queues: 'all' })), null)
      assert.equal(await store.nextDue(aWish({ queues: [] })), null)
    },
  },
  {
    name: 'nextDue is 0 where a job is due, also one that is overdue by an hour',
    async run({ store, clock }) {
      await enqueueOne(store)
      assert.equal(await store.nextDue(aWish()), 0)

      await clock.advance(3_600_000)
      assert.equal(await store.nextDue(aWish()), 0)
    },
  },
  {
    name: 'nextDue is the time to the earliest of several scheduled jobs, and shrinks with time',
    async run({ store, clock }) {
      for (const delayMs of [9_000, 4_000, 7_000]) await enqueueOne(store, { due: { delayMs } })
      assert.equal(await store.nextDue(aWish()), 4_000)

      await clock.advance(3_999)
      assert.equal(await store.nextDue(aWish()), 1)
      await clock.advance(1)
      assert.equal(await store.nextDue(aWish()), 0)
    },
  },
  {
    name: 'nextDue looks at every priority: the earliest job may have the worst',
    needs: ['priorities'],
    async run({ store }) {
      for (let level = 0; level < 100; level += 1)
        await enqueueOne(store, { priority: level, due: { delayMs: 10_000 - level * 50 } })

      assert.equal(await store.nextDue(aWish()), 5_050)
    },
  },
  {
    name: 'nextDue looks at every queue that is served, whatever their order, and at no other',
    needs: ['strict queues', 'merged queues'],
    async run({ store }) {
      for (const [queue, delayMs] of [
        ['a', 9_000],
        ['b', 4_000],
        ['c', 6_000],
      ] as const)
        await enqueueOne(store, { queue, due: { delayMs } })

      assert.equal(await store.nextDue(aWish({ queues: [['a'], ['c']] })), 6_000)
      assert.equal(await store.nextDue(aWish({ queues: [['a', 'c'], ['b']] })), 4_000)
      assert.equal(await store.nextDue(aWish({ queues: 'all' })), 4_000)
    },
  },
  {
    name: 'nextDue does not count what is held',
    async run({ store, first }) {
      await enqueueOne(store)
      await first.reserveOne()

      assert.equal(await store.nextDue(aWish()), null)
    },
  },
  {
    name: 'nextDue counts a retried job from its delay on',
    async run({ store, first }) {
      await enqueueOne(store)
      await first.retry(await first.reserveOne(), 2_500)

      assert.equal(await store.nextDue(aWish()), 2_500)
    },
  },
  {
    name: 'nextDue does not count a paused queue, so that nobody spins on it',
    needs: ['pauses'],
    async run({ store, admin }) {
      await enqueueOne(store)
      await admin.pause(['default'], null, null)
      assert.equal(await store.nextDue(aWish()), null)
      assert.equal(await store.nextDue(aWish({ queues: 'all' })), null)

      await admin.resume(['default'])
      assert.equal(await store.nextDue(aWish()), 0)
    },
  },
  {
    name: 'nextDue does not count foreign names, newer envelopes and excluded ids',
    needs: ['filters'],
    async run({ store }) {
      const id = await enqueueOne(store, { version: 2 })
      const refusing = [{ only: ['x'] }, { except: ['note'] }, { exclude: [id] }, { maxVersion: 1 }]
      for (const part of refusing)
        assert.equal(await store.nextDue(aWish({ maxVersion: 2, ...part })), null, JSON.stringify(part))

      assert.equal(await store.nextDue(aWish({ maxVersion: 2 })), 0)
    },
  },
  {
    name: 'nextDue is 0 exactly where a reservation gives something, in 480 combinations of every part of the filter',
    needs: ['filters', 'suspects', 'pauses', 'merged queues', 'strict queues'],
    async run(context) {
      await prepare(context)

      assert.deepEqual(await disagreements(context, []), [])
      const reserved = await context.first.reserve({ queues: [['b']] })
      for (const job of reserved) await context.first.release(job)
      assert.deepEqual(
        await disagreements(
          context,
          reserved.map(({ id }) => id),
        ),
        [],
      )
    },
  },
]
