import assert from 'node:assert/strict'
import type { Admin, QueueCounts } from '../../../core/store/admin.ts'
import { aJob, enqueueAll, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { holding, idsOf } from '../test-worker.ts'

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
  {
    name: 'a worker counts what it holds, and of that what it has started',
    async run({ store, admin, first, second }) {
      await store.enqueue(jobs(3))
      for (const worker of [first, second]) await worker.join()
      await first.reserve({ limit: 3, started: 2 })

      const rows = (await admin.workers()).map(({ name, held, running }) => [name, { held, running }])
      assert.deepEqual(Object.fromEntries(rows), {
        first: { held: 3, running: 2 },
        second: { held: 0, running: 0 },
      })
    },
  },
  {
    name: 'a job that has run for as long as asked is busy, the longest first, with its worker; one that only waits is not',
    async run({ store, admin, first, second, clock }) {
      await first.join()
      const ids = await enqueueAll(store, jobs(4))
      await second.reserve({ limit: 1 })
      await clock.advance(1_000)
      await first.reserve({ limit: 2, started: 1 })
      await clock.advance(5_000)
      await first.reserve()

      const [unnamed, named] = [
        { worker: second.id, name: null },
        { worker: first.id, name: 'first' },
      ]
      assert.deepEqual(await admin.busy(5_000), [
        { id: ids[0], job: 'note', queue: 'default', holder: unnamed, runningMs: 6_000 },
        { id: ids[1], job: 'note', queue: 'default', holder: named, runningMs: 5_000 },
      ])
      assert.deepEqual(idsOf(await admin.busy(5_001)), [ids[0]])
    },
  },
  {
    name: 'a job that was given back, retried or completed is not busy any more',
    async run({ store, admin, first }) {
      await store.enqueue(jobs(3))
      const [one, two, three] = (await first.reserve()).map(holding)
      assert.ok(one && two && three)
      assert.equal((await admin.busy(0)).length, 3)
      await first.release(one)
      await first.retry(two, 60_000)
      await first.complete(three)

      assert.deepEqual(await admin.busy(0), [])
    },
  },
]
