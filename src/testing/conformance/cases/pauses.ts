import assert from 'node:assert/strict'
import { enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'

const needs = ['pauses'] as const

/** A paused queue is reserved from by nobody. */
export const pauseCases: readonly ConformanceCase[] = [
  {
    name: 'nothing is reserved from a paused queue until it is resumed',
    needs,
    async run({ store, admin, first, clock }) {
      await enqueueOne(store)
      await admin.pause(['default'], null, 'deploy')
      await clock.advance(365 * 86_400_000)
      assert.deepEqual(await first.reserve(), [])

      await admin.resume(['default'])
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'a pause with an end is over at that millisecond and not one before',
    needs,
    async run({ store, admin, first, clock }) {
      await enqueueOne(store)
      await admin.pause(['default'], clock.now() + 1_000, null)
      await clock.advance(999)
      assert.deepEqual(await first.reserve(), [])

      await clock.advance(1)
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'a pause stops only its queue, in strict order, in a merged group and in "all"',
    needs: ['pauses', 'merged queues'],
    async run({ store, admin, first }) {
      for (const queue of ['a', 'b', 'c']) await store.enqueue(jobs(3, { queue }))
      await admin.pause(['a', 'c'], null, null)
      const wishes = [[['a'], ['b'], ['c']], [['a', 'b', 'c']], 'all'] as const
      for (const queues of wishes) {
        const [reserved, ...more] = await first.reserve({ queues, limit: 1 })
        assert.deepEqual([reserved?.queue, more.length], ['b', 0])
      }

      assert.deepEqual(await first.reserve({ queues: 'all' }), [])
    },
  },
  {
    name: 'a second pause replaces the first: its end counts',
    needs,
    async run({ store, admin, first, clock }) {
      await enqueueOne(store)
      await admin.pause(['default'], null, 'one')
      await admin.pause(['default'], clock.now() + 10, 'two')
      await clock.advance(10)

      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'several queues are paused and resumed in one call, and resuming one that runs does nothing',
    needs,
    async run({ store, admin, first }) {
      await store.enqueue([...jobs(1, { queue: 'a' }), ...jobs(1, { queue: 'b' })])
      await admin.pause(['a', 'b', 'a'], null, null)
      await admin.resume(['b', 'never-paused', 'a'])

      assert.equal((await first.reserve({ queues: 'all' })).length, 2)
    },
  },
  {
    name: 'pausing and resuming no queue does nothing',
    needs,
    async run({ store, admin, first }) {
      await enqueueOne(store)
      await admin.pause([], null, null)
      await admin.resume([])

      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'a queue is paused before it has a job',
    needs,
    async run({ store, admin, first }) {
      await admin.pause(['later'], null, null)
      await enqueueOne(store, { queue: 'later' })

      assert.deepEqual(await first.reserve({ queues: [['later']] }), [])
    },
  },
  {
    name: 'a job that is held when its queue is paused can be settled, and retried it waits',
    needs,
    async run({ store, admin, first }) {
      await store.enqueue(jobs(2))
      const [one, two] = await first.reserve()
      assert.ok(one && two)
      await admin.pause(['default'], null, null)

      assert.deepEqual([await first.complete(one), await first.retry(two)], [[], []])
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'pauses are listed by queue, with their beginning, their end and their reason, until they are over',
    needs,
    async run({ admin, clock }) {
      const pausedAt = clock.now()
      await admin.pause(['mail'], pausedAt + 1_000, 'deploy')
      await admin.pause(['high'], null, null)
      const high = { queue: 'high', pausedAt, until: null, reason: null }
      assert.deepEqual(await admin.pauses(), [
        high,
        { queue: 'mail', pausedAt, until: pausedAt + 1_000, reason: 'deploy' },
      ])

      await clock.advance(1_000)
      assert.deepEqual(await admin.pauses(), [high])

      await admin.resume(['high'])
      assert.deepEqual(await admin.pauses(), [])
    },
  },
]
