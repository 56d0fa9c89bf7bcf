import assert from 'node:assert/strict'
import type { Admin, QueueCounts } from '../../../core/store/admin.ts'
import { aJob, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'

const nothing = { ready: 0, running: 0, scheduled: 0, failed: 0, oldestReadyAt: null, paused: false }

async function countsOf(admin: Admin): Promise<Readonly<Record<string, QueueCounts>>> {
  return Object.fromEntries((await admin.counts()).map((counts) => [counts.queue, { ...counts }]))
}

/** What stands in the queues. */
export const countCases: readonly ConformanceCase[] = [
  {
    name: 'an empty store counts no queue',
    async run({ admin }) {
      assert.deepEqual(await admin.counts(), [])
      assert.deepEqual(await admin.workers(), [])
    },
  },
  {
    name: 'jobs are counted by queue as ready, running, scheduled and failed',
    needs: ['failed jobs'],
    async run({ store, admin, first, clock }) {
      await store.enqueue([...jobs(4, { queue: 'a' }), aJob({ queue: 'a', due: { delayMs: 5_000 } })])
      await store.enqueue(jobs(2, { queue: 'b', due: { delayMs: 1 } }))
      await first.fail(await first.reserveOne({ queues: [['a']] }))
      await first.reserveOne({ queues: [['a']] })
      const oldestReadyAt = clock.now()

      assert.deepEqual(await countsOf(admin), {
        a: { queue: 'a', ready: 2, running: 1, scheduled: 1, failed: 1, oldestReadyAt, paused: false },
        b: { ...nothing, queue: 'b', scheduled: 2 },
      })
    },
  },
  {
    name: 'the oldest wait is that of the ready job that could start first',
    async run({ store, admin, first, clock }) {
      const start = clock.now()
      for (const at of [start - 100, start - 900, start - 500, start + 50]) await enqueueOne(store, { due: { at } })
      assert.equal((await countsOf(admin)).default?.oldestReadyAt, start - 900)

      await first.reserveOne()
      assert.equal((await countsOf(admin)).default?.oldestReadyAt, start - 500)
    },
  },
  {
    name: 'a scheduled job becomes a ready one as time passes, without anybody touching it',
    async run({ store, admin, clock }) {
      await enqueueOne(store, { due: { delayMs: 1_000 } })
      assert.equal((await countsOf(admin)).default?.scheduled, 1)

      await clock.advance(1_000)
      assert.deepEqual((await countsOf(admin)).default, {
        ...nothing,
        queue: 'default',
        ready: 1,
        oldestReadyAt: clock.now(),
      })
    },
  },
  {
    name: 'a paused queue is counted as paused until the pause ends',
    needs: ['pauses'],
    async run({ store, admin, clock }) {
      await enqueueOne(store)
      await admin.pause(['default'], clock.now() + 1_000, 'lunch')
      assert.equal((await countsOf(admin)).default?.paused, true)

      await clock.advance(1_000)
      assert.equal((await countsOf(admin)).default?.paused, false)
    },
  },
  {
    name: 'a paused queue without a job is counted too, so that nobody forgets it',
    needs: ['pauses'],
    async run({ admin }) {
      await admin.pause(['forgotten'], null, null)

      assert.deepEqual(await countsOf(admin), { forgotten: { ...nothing, queue: 'forgotten', paused: true } })
    },
  },
  {
    name: 'a queue with nothing but failed jobs is counted',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      await enqueueOne(store)
      await first.fail(await first.reserveOne())

      assert.deepEqual(await countsOf(admin), { default: { ...nothing, queue: 'default', failed: 1 } })
    },
  },
]
