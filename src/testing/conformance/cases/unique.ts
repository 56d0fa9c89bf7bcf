import assert from 'node:assert/strict'
import { aJob, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'
import { idsOf } from '../test-worker.ts'

const needs = ['unique keys'] as const

async function isTaken({ store }: Pick<Context, 'store'>, uniqueKey: string): Promise<boolean> {
  const [answer] = await store.enqueue([aJob({ uniqueKey })])
  return answer?.duplicate === true
}

/** At most one live job carries a unique key. */
export const uniqueCases: readonly ConformanceCase[] = [
  {
    name: 'a second job with a unique key is not written and answers the id of the first',
    needs,
    async run({ store, first }) {
      const id = await enqueueOne(store, { uniqueKey: 'k' })

      assert.deepEqual(await store.enqueue([aJob({ uniqueKey: 'k', job: 'other' })]), [{ id, duplicate: true }])
      assert.deepEqual(
        (await first.reserve()).map(({ job }) => job),
        ['note'],
      )
    },
  },
  {
    name: 'of two equal keys in one call the first is written and the second answers its id',
    needs,
    async run({ store, first }) {
      const [one, two, three] = await store.enqueue([
        aJob({ uniqueKey: 'k', job: 'a' }),
        aJob({ uniqueKey: 'k', job: 'b' }),
        aJob({ uniqueKey: 'other', job: 'c' }),
      ])
      assert.ok(one && two && three)

      assert.deepEqual([one.duplicate, two.duplicate, three.duplicate], [false, true, false])
      assert.equal(two.id, one.id)
      assert.deepEqual(idsOf(await first.reserve()), [one.id, three.id])
    },
  },
  {
    name: 'duplicates, new keys and jobs without a key answer in their places in one call',
    needs,
    async run({ store }) {
      const id = await enqueueOne(store, { uniqueKey: 'b' })
      const answers = await store.enqueue(['a', 'b', null, 'a', null].map((uniqueKey) => aJob({ uniqueKey })))

      assert.deepEqual(
        answers.map(({ duplicate }) => duplicate),
        [false, true, false, true, false],
      )
      assert.deepEqual([answers[1]?.id, answers[3]?.id], [id, answers[0]?.id])
    },
  },
  {
    name: '3,000 jobs of 1,000 keys in one call write 1,000',
    needs,
    async run({ store, first }) {
      const all = Array.from({ length: 3_000 }, (_, index) => aJob({ uniqueKey: `k${index % 1_000}` }))
      const answers = await store.enqueue(all)

      assert.equal(answers.filter(({ duplicate }) => duplicate).length, 2_000)
      assert.ok(answers.every(({ id }, index) => id === answers[index % 1_000]?.id))
      assert.equal((await first.reserve({ limit: 5_000 })).length, 1_000)
    },
  },
  {
    name: 'jobs without a unique key never clash',
    async run({ store }) {
      const answers = [...(await store.enqueue(jobs(3))), ...(await store.enqueue(jobs(3)))]

      assert.ok(answers.every(({ duplicate }) => !duplicate))
      assert.equal(new Set(idsOf(answers)).size, 6)
    },
  },
  {
    name: 'a key is one key in all queues, and upper and lower case differ',
    needs,
    async run({ store }) {
      const id = await enqueueOne(store, { uniqueKey: 'K', queue: 'a' })
      const [same] = await store.enqueue([aJob({ uniqueKey: 'K', queue: 'b' })])

      assert.deepEqual(same, { id, duplicate: true })
      assert.equal(await isTaken({ store }, 'k'), false)
    },
  },
  {
    name: 'a key stays taken while its job is held',
    needs,
    async run({ store, first }) {
      await enqueueOne(store, { uniqueKey: 'k' })
      await first.reserveOne()

      assert.equal(await isTaken({ store }, 'k'), true)
    },
  },
  {
    name: 'a key stays taken while its job is scheduled or waits for a retry',
    needs,
    async run({ store, first }) {
      await enqueueOne(store, { uniqueKey: 'scheduled', due: { delayMs: 60_000 } })
      await enqueueOne(store, { uniqueKey: 'retried' })
      await first.retry(await first.reserveOne(), 60_000)

      assert.deepEqual([await isTaken({ store }, 'scheduled'), await isTaken({ store }, 'retried')], [true, true])
    },
  },
  {
    name: 'a key is free again once its job is completed',
    needs,
    async run({ store, first }) {
      await enqueueOne(store, { uniqueKey: 'k' })
      await first.complete(await first.reserveOne())

      assert.equal(await isTaken({ store }, 'k'), false)
    },
  },
  {
    name: 'a key is free again once its job is completed and kept',
    needs,
    async run({ store, first }) {
      await enqueueOne(store, { uniqueKey: 'k' })
      await first.keep(await first.reserveOne())

      assert.equal(await isTaken({ store }, 'k'), false)
    },
  },
  {
    name: 'a key is free again once its job has failed',
    needs: ['unique keys', 'failed jobs'],
    async run({ store, first }) {
      await enqueueOne(store, { uniqueKey: 'k' })
      await first.fail(await first.reserveOne())

      assert.equal(await isTaken({ store }, 'k'), false)
    },
  },
  {
    name: 'an empty unique key is a key like any other',
    needs,
    async run({ store }) {
      await enqueueOne(store, { uniqueKey: '' })

      assert.equal(await isTaken({ store }, ''), true)
    },
  },
]
