import assert from 'node:assert/strict'
import { aJob, aWish, enqueueAll, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { idsOf } from '../test-worker.ts'

const needs = ['filters'] as const

/** What a worker does not want is left for others and costs nothing. */
export const filterCases: readonly ConformanceCase[] = [
  {
    name: '"only" takes jobs of the names given',
    needs,
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        ['a', 'b', 'c', 'a'].map((job) => aJob({ job })),
      )

      assert.deepEqual(idsOf(await first.reserve({ only: ['a', 'c', 'unheard-of'] })), [ids[0], ids[2], ids[3]])
    },
  },
  {
    name: '"only" with no names takes nothing',
    needs,
    async run({ store, first }) {
      await store.enqueue(jobs(2))

      assert.deepEqual(await first.reserve({ only: [] }), [])
    },
  },
  {
    name: '"except" leaves jobs of the names given',
    needs,
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        ['a', 'b', 'c'].map((job) => aJob({ job })),
      )

      assert.deepEqual(idsOf(await first.reserve({ except: ['a', 'c'] })), [ids[1]])
    },
  },
  {
    name: 'a name in both "only" and "except" is left',
    needs,
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        ['a', 'b'].map((job) => aJob({ job })),
      )

      assert.deepEqual(idsOf(await first.reserve({ only: ['a', 'b'], except: ['a'] })), [ids[1]])
    },
  },
  {
    name: '"exceptQueues" leaves what stands on the queues given, however the others are named',
    needs,
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        ['a', 'b', 'c'].map((queue) => aJob({ queue })),
      )

      for (const queues of [[['a'], ['b'], ['c']], [['a', 'b', 'c']], 'all'] as const) {
        const filter = { queues, exceptQueues: ['a', 'c', 'unheard-of'] }
        assert.equal(await store.nextDue(aWish({ ...filter, exceptQueues: ['a', 'b', 'c'] })), null)
        const reserved = await first.reserve(filter)
        assert.deepEqual(idsOf(reserved), [ids[1]])
        for (const job of reserved) await first.release(job)
      }
    },
  },
  {
    name: 'names are compared exactly: case, blanks and wildcards matter',
    needs,
    async run({ store, first }) {
      await store.enqueue(['Mail', 'mail ', 'ma_l', 'm%'].map((job) => aJob({ job })))

      assert.deepEqual(await first.reserve({ only: ['mail', 'ma__', '%'] }), [])
      assert.equal((await first.reserve({ except: ['mail', '%', '____'] })).length, 4)
    },
  },
  {
    name: '"exclude" leaves the jobs with these ids',
    needs,
    async run({ store, first }) {
      const ids = await enqueueAll(store, jobs(4))

      assert.deepEqual(idsOf(await first.reserve({ exclude: [ids[0] ?? 0, ids[2] ?? 0, 999_999] })), [ids[1], ids[3]])
    },
  },
  {
    name: 'an envelope of a newer version is left for a newer worker',
    needs,
    async run({ store, first, second }) {
      const ids = await enqueueAll(
        store,
        [3, 1, 2].map((version) => aJob({ version })),
      )

      assert.deepEqual(idsOf(await first.reserve({ maxVersion: 2 })), ids.slice(1))
      assert.deepEqual(idsOf(await second.reserve({ maxVersion: 3 })), ids.slice(0, 1))
    },
  },
  {
    name: 'a limit counts only what the filter lets through, however many stand before it',
    needs,
    async run({ store, first }) {
      await store.enqueue(jobs(300, { job: 'unwanted' }))
      const ids = await enqueueAll(store, jobs(3, { job: 'wanted' }))

      assert.deepEqual(idsOf(await first.reserve({ only: ['wanted'], limit: 2 })), ids.slice(0, 2))
    },
  },
  {
    name: 'what a filter leaves keeps its fence and its place',
    needs,
    async run({ store, first }) {
      const ids = await enqueueAll(store, [aJob({ job: 'left' }), ...jobs(2)])
      const [wanted] = await first.reserve({ except: ['left'], limit: 1 })
      const rest = await first.reserve()

      assert.equal(wanted?.id, ids[1])
      assert.deepEqual(
        rest.map(({ id, fence }) => [id, fence]),
        [
          [ids[0], 1],
          [ids[2], 1],
        ],
      )
    },
  },
  {
    name: 'filters hold in every queue of a merged group and of "all"',
    needs: ['filters', 'merged queues'],
    async run({ store, first }) {
      const all = ['a', 'b'].flatMap((queue) => ['x', 'y'].map((job) => aJob({ queue, job })))
      const ids = await enqueueAll(store, all)

      assert.deepEqual(idsOf(await first.reserve({ queues: [['a', 'b']], only: ['x'] })), [ids[0], ids[2]])
      assert.deepEqual(idsOf(await first.reserve({ queues: 'all', except: ['x'], exclude: [ids[1] ?? 0] })), [ids[3]])
    },
  },
  {
    name: '1,000 names and 1,000 ids in one filter are fine',
    needs,
    async run({ store, first }) {
      const ids = await enqueueAll(store, jobs(1_001, { job: 'name-500' }))
      const only = Array.from({ length: 1_000 }, (_, index) => `name-${index}`)

      assert.deepEqual(idsOf(await first.reserve({ only, exclude: ids.slice(0, 1_000) })), ids.slice(1_000))
    },
  },
]
