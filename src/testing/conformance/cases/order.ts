import assert from 'node:assert/strict'
import type { NewJob, Store, Wish } from '../../../core/store/store.ts'
import { aJob, enqueueAll, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { idsOf, type TestWorker } from '../test-worker.ts'

/** Enqueues jobs named by their place and answers the places in the order in which they are reserved. */
async function orderOf(store: Store, worker: TestWorker, all: readonly Partial<NewJob>[], wish: Partial<Wish> = {}) {
  const ids = await enqueueAll(store, all.map(aJob))
  return (await worker.reserve(wish)).map(({ id }) => ids.indexOf(id))
}

/** In which order jobs are reserved. */
export const orderCases: readonly ConformanceCase[] = [
  {
    name: 'equal jobs come in the order of their dispatch',
    async run({ store, first }) {
      const ids = await enqueueAll(store, jobs(50))

      assert.deepEqual(idsOf(await first.reserve()), ids)
    },
  },
  {
    name: 'a lower priority runs first, and a negative one before zero',
    needs: ['priorities'],
    async run({ store, first }) {
      const order = await orderOf(store, first, [{ priority: 5 }, { priority: 0 }, { priority: -5 }, { priority: 1 }])

      assert.deepEqual(order, [2, 1, 3, 0])
    },
  },
  {
    name: 'priorities of plus and minus a million keep their order',
    needs: ['priorities'],
    async run({ store, first }) {
      const order = await orderOf(store, first, [{ priority: 1_000_000 }, { priority: -1_000_000 }, {}])

      assert.deepEqual(order, [1, 2, 0])
    },
  },
  {
    name: '150 levels of priority come in order, the best of them dispatched last',
    needs: ['priorities'],
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        Array.from({ length: 150 }, (_, index) => aJob({ priority: 75 - index })),
      )

      assert.deepEqual(idsOf(await first.reserve()), ids.toReversed())
    },
  },
  {
    name: 'a job behind 150 levels of scheduled jobs is found',
    needs: ['priorities'],
    async run({ store, first }) {
      const scheduled = Array.from({ length: 150 }, (_, index) => aJob({ priority: index, due: { delayMs: 60_000 } }))
      await store.enqueue(scheduled)
      const id = await enqueueOne(store, { priority: 1_000 })

      assert.deepEqual(idsOf(await first.reserve()), [id])
    },
  },
  {
    name: 'within one priority what may start earlier comes first, whatever was dispatched first',
    async run({ store, first, clock }) {
      const now = clock.now()
      const order = await orderOf(store, first, [
        { due: { at: now - 10 } },
        { due: { at: now - 30 } },
        { due: { at: now } },
        { due: { at: now - 20 } },
      ])

      assert.deepEqual(order, [1, 3, 0, 2])
    },
  },
  {
    name: 'a better priority comes before a longer wait',
    needs: ['priorities'],
    async run({ store, first, clock }) {
      const order = await orderOf(store, first, [{ due: { at: clock.now() - 86_400_000 } }, { priority: -1 }])

      assert.deepEqual(order, [1, 0])
    },
  },
  {
    name: 'jobs that may start in the same millisecond come in the order of their dispatch',
    async run({ store, first, clock }) {
      const at = clock.now() - 5
      const order = await orderOf(store, first, [{ due: { at } }, { due: { at } }, { due: { at } }])

      assert.deepEqual(order, [0, 1, 2])
    },
  },
  {
    name: 'a delayed job takes its place by the moment it may start',
    async run({ store, first, clock }) {
      const late = await enqueueOne(store, { due: { delayMs: 100 } })
      await clock.advance(50)
      const early = await enqueueOne(store)
      await clock.advance(100)
      const last = await enqueueOne(store)

      assert.deepEqual(idsOf(await first.reserve()), [early, late, last])
    },
  },
  {
    name: 'a scheduled job of a better priority holds nothing up',
    needs: ['priorities'],
    async run({ store, first }) {
      const order = await orderOf(store, first, [{ priority: -9, due: { delayMs: 60_000 } }, { priority: 9 }])

      assert.deepEqual(order, [1])
    },
  },
  {
    name: 'queues are served strictly in the order given, even against a better priority',
    needs: ['strict queues'],
    async run({ store, first, clock }) {
      const all = [
        { queue: 'low', priority: -100, due: { at: clock.now() - 60_000 } },
        { queue: 'high', priority: 100 },
        { queue: 'high' },
      ]

      assert.deepEqual(await orderOf(store, first, all, { queues: [['high'], ['low']] }), [2, 1, 0])
    },
  },
  {
    name: 'the next queue fills what the first one leaves of the limit',
    needs: ['strict queues'],
    async run({ store, first }) {
      await store.enqueue([...jobs(5, { queue: 'low' }), ...jobs(2, { queue: 'high' })])
      const reserved = await first.reserve({ queues: [['high'], ['low']], limit: 4 })

      assert.deepEqual(
        reserved.map(({ queue }) => queue),
        ['high', 'high', 'low', 'low'],
      )
    },
  },
  {
    name: 'queues that were not asked for are not served',
    async run({ store, first }) {
      await store.enqueue(jobs(3, { queue: 'other' }))

      assert.deepEqual(await first.reserve({ queues: [['default'], ['Other'], ['othe']] }), [])
    },
  },
  {
    name: 'an empty list of queues serves nothing',
    async run({ store, first }) {
      await store.enqueue(jobs(3))

      assert.deepEqual(await first.reserve({ queues: [] }), [])
      assert.deepEqual(await first.reserve({ queues: [[]] }), [])
    },
  },
  {
    name: 'queues of one group are merged by priority, then by time, then by dispatch',
    needs: ['merged queues', 'priorities'],
    async run({ store, first, clock }) {
      const at = clock.now() - 50
      const all = [
        { queue: 'a' },
        { queue: 'b', due: { at } },
        { queue: 'a', due: { at } },
        { queue: 'b', priority: -1 },
        { queue: 'a', priority: 1, due: { at: at - 1 } },
        { queue: 'b' },
      ]

      assert.deepEqual(await orderOf(store, first, all, { queues: [['a', 'b']] }), [3, 1, 2, 0, 5, 4])
    },
  },
  {
    name: 'a limit cuts a merged group in its order, not queue by queue',
    needs: ['merged queues'],
    async run({ store, first }) {
      const all = Array.from({ length: 20 }, (_, index) => ({ queue: index % 2 === 0 ? 'b' : 'a' }))

      assert.deepEqual(await orderOf(store, first, all, { queues: [['a', 'b']], limit: 7 }), [0, 1, 2, 3, 4, 5, 6])
    },
  },
  {
    name: 'groups are strict among themselves while queues within each are merged',
    needs: ['merged queues', 'strict queues', 'priorities'],
    async run({ store, first }) {
      const all = [
        { queue: 'd', priority: -9 },
        { queue: 'c' },
        { queue: 'b', priority: 2 },
        { queue: 'a', priority: 3 },
        { queue: 'd' },
        { queue: 'a', priority: 1 },
      ]

      assert.deepEqual(
        await orderOf(store, first, all, {
          queues: [
            ['a', 'b'],
            ['c', 'd'],
          ],
        }),
        [5, 2, 3, 0, 1, 4],
      )
    },
  },
  {
    name: '"all" merges every queue there is, also one that came up since the last look',
    needs: ['merged queues', 'priorities'],
    async run({ store, first }) {
      assert.deepEqual(await first.reserve({ queues: 'all' }), [])
      const all = [{ queue: 'x' }, { queue: 'y', priority: -1 }, { queue: 'z' }, { queue: 'x', priority: -2 }]

      assert.deepEqual(await orderOf(store, first, all, { queues: 'all' }), [3, 1, 0, 2])
    },
  },
  {
    name: '"all" goes through 100 queues in one order',
    needs: ['merged queues'],
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        Array.from({ length: 300 }, (_, index) => aJob({ queue: `q${index % 100}` })),
      )

      assert.deepEqual(idsOf(await first.reserve({ queues: 'all', limit: 250 })), ids.slice(0, 250))
    },
  },
  {
    name: 'order holds from one reservation to the next and from one worker to another',
    needs: ['priorities'],
    async run({ store, first, second }) {
      const ids = await enqueueAll(
        store,
        Array.from({ length: 12 }, (_, index) => aJob({ priority: -index })),
      )
      const taken = []
      for (const worker of [first, second, first, second]) taken.push(...(await worker.reserve({ limit: 3 })))

      assert.deepEqual(idsOf(taken), ids.toReversed())
    },
  },
  {
    name: 'a better job that comes between two reservations is in the second',
    needs: ['priorities'],
    async run({ store, first }) {
      await store.enqueue(jobs(4))
      await first.reserve({ limit: 2 })
      const id = await enqueueOne(store, { priority: -1 })

      assert.equal((await first.reserveOne()).id, id)
    },
  },
]
