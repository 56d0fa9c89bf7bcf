import assert from 'node:assert/strict'
import { aJob, aRecord, endings, enqueueAll, enqueueOne, gather, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { holding, idsOf } from '../test-worker.ts'

/** What each ending of an attempt leaves behind. */
export const settleCases: readonly ConformanceCase[] = [
  {
    name: 'a completed job is gone',
    async run({ store, admin, first, clock }) {
      await enqueueOne(store)
      assert.deepEqual(await first.complete(await first.reserveOne()), [])
      await clock.advance(86_400_000)

      assert.deepEqual(await first.reserve(), [])
      assert.deepEqual(await admin.counts(), [])
    },
  },
  {
    name: '1,000 jobs are completed in one round',
    async run({ store, admin, first }) {
      await store.enqueue(jobs(1_000))
      const held = await first.reserve({ limit: 1_000 })

      assert.deepEqual(await first.complete(...held), [])
      assert.deepEqual(await admin.counts(), [])
    },
  },
  {
    name: 'completing some of the held jobs leaves the others held',
    async run({ store, first, second }) {
      await store.enqueue(jobs(4))
      const held = await first.reserve()
      await first.complete(...held.slice(1, 3))

      assert.deepEqual(await second.reserve(), [])
      assert.deepEqual(await first.complete(...held), idsOf(held.slice(1, 3)))
    },
  },
  {
    name: 'a completed job that is kept leaves the queue',
    async run({ store, admin, first }) {
      await enqueueOne(store)
      assert.deepEqual(await first.keep(await first.reserveOne()), [])

      assert.deepEqual(await first.reserve(), [])
      assert.deepEqual(await admin.counts(), [])
      assert.deepEqual(await gather(admin.failed({}, null)), [])
    },
  },
  {
    name: 'kept and not kept jobs are completed in one round',
    async run({ store, first }) {
      await store.enqueue(jobs(6))
      const held = await first.reserve()
      const settle = held.map((job, index) => ({ ...holding(job), kind: 'complete', keep: index % 2 === 0 }) as const)

      assert.deepEqual(await first.settle(settle), [])
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'a retried job keeps its id and comes after its delay, not a millisecond earlier',
    async run({ store, first, clock }) {
      const id = await enqueueOne(store)
      await first.retry(await first.reserveOne(), 4_000)
      await clock.advance(3_999)
      assert.deepEqual(await first.reserve(), [])

      await clock.advance(1)
      const again = await first.reserveOne()
      assert.deepEqual([again.id, again.availableAt], [id, clock.now()])
    },
  },
  {
    name: 'a retry without delay is due at once',
    async run({ store, first, second }) {
      const id = await enqueueOne(store)
      await first.retry(await first.reserveOne(), 0)

      assert.equal((await second.reserveOne()).id, id)
    },
  },
  {
    name: 'every retry adds one to the failures of a job: 0, 1, 2, 3',
    async run({ store, first }) {
      await enqueueOne(store)
      const seen = []
      for (let run = 0; run < 4; run += 1) {
        const held = await first.reserveOne()
        seen.push(held.failures)
        await first.retry(held)
      }

      assert.deepEqual(seen, [0, 1, 2, 3])
    },
  },
  {
    name: 'a retried job keeps its queue, priority, time of dispatch and envelope',
    async run({ store, first, clock }) {
      await enqueueOne(store, { queue: 'mail', priority: 7, envelope: '{"b":1,"a":1e400}' })
      const mail = { queues: [['mail']] }
      const before = await first.reserveOne(mail)
      await first.retry(before, 1_000)
      await clock.advance(1_000)
      const after = await first.reserveOne(mail)

      assert.deepEqual(
        { ...after },
        { ...before, fence: after.fence, availableAt: before.availableAt + 1_000, failures: 1 },
      )
    },
  },
  {
    name: '300 jobs are retried in one round, each with its own delay',
    async run({ store, first, clock }) {
      const ids = await enqueueAll(store, jobs(300))
      const held = await first.reserve({ limit: 300 })
      const settle = held.map((job, index) => {
        return { ...holding(job), kind: 'retry', delayMs: 300 - index, attempt: aRecord() } as const
      })
      assert.deepEqual(await first.settle(settle), [])
      await clock.advance(300)

      assert.deepEqual(idsOf(await first.reserve({ limit: 300 })), ids.toReversed())
    },
  },
  {
    name: 'a failed job leaves the queue and stands among the failed ones with everything known about it',
    needs: ['failed jobs'],
    async run({ store, admin, first, clock }) {
      const enqueuedAt = clock.now()
      const id = await enqueueOne(store, { job: 'mail', priority: 2, uniqueKey: 'k', envelope: '{"z":1,"a":[1.0]}' })
      await clock.advance(500)
      const held = await first.reserveOne()
      await first.fail(held, { errorType: 'TypeError', message: 'no such file', stack: 'at x' }, 'refused')

      const expected = {
        ...{ id, fence: held.fence, job: 'mail', queue: 'default', priority: 2, failures: 1, crashes: 0, enqueuedAt },
        ...{ failedAt: clock.now(), reason: 'refused', errorType: 'TypeError', error: 'no such file' },
        ...{ uniqueKey: 'k', envelope: '{"z":1,"a":[1.0]}' },
      }
      assert.deepEqual({ ...(await admin.findFailed(id)) }, expected)
      assert.deepEqual(await first.reserve({ suspects: true }), [])
    },
  },
  {
    name: 'every reason to fail is kept as it is',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const reasons = ['tries', 'refused', 'poison', 'unknown', 'crashes'] as const
      for (const reason of reasons) {
        await enqueueOne(store)
        await first.fail(await first.reserveOne(), {}, reason)
      }

      assert.deepEqual((await gather(admin.failed({}, null))).map(({ reason }) => reason).toReversed(), reasons)
    },
  },
  {
    name: 'a job that fails after two retries has three failures',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.retry(await first.reserveOne())
      await first.retry(await first.reserveOne())
      await first.fail(await first.reserveOne())

      assert.equal((await admin.findFailed(id))?.failures, 3)
    },
  },
  {
    name: 'an envelope moves to the failed jobs byte for byte, also 1 MiB of it',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const envelope = `{"n":12345678901234567890.50,"b":1,"a":"\\u0000🐸","pad":"${'é'.repeat(500_000)}"}`
      const id = await enqueueOne(store, { envelope })
      await first.fail(await first.reserveOne())

      assert.ok((await admin.findFailed(id))?.envelope === envelope)
    },
  },
  {
    name: 'a released job keeps its place in the order',
    async run({ store, first, clock }) {
      const ids = await enqueueAll(store, jobs(3))
      const [, middle] = await first.prefetch({ limit: 2 })
      await clock.advance(5_000)
      assert.ok(middle)
      await first.release(middle, null)

      assert.deepEqual(idsOf(await first.reserve()), ids.slice(1))
    },
  },
  {
    name: 'a job released with a delay comes after it',
    async run({ store, first, clock }) {
      const id = await enqueueOne(store)
      await first.release(await first.reserveOne(), 1_000)
      await clock.advance(999)
      assert.deepEqual(await first.reserve(), [])

      await clock.advance(1)
      assert.equal((await first.reserveOne()).id, id)
    },
  },
  {
    name: 'a job released with a delay of 0 goes behind those that waited longer',
    async run({ store, first, clock }) {
      const [released, waiting] = await enqueueAll(store, jobs(2))
      const held = await first.reserveOne()
      await clock.advance(10)
      await first.release(held, 0)

      assert.deepEqual(idsOf(await first.reserve()), [waiting, released])
    },
  },
  {
    name: 'a release costs nothing: no failure, no crash, no record',
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      for (let run = 0; run < 5; run += 1) await first.release(await first.reserveOne(), null)
      const { failures, crashes, suspect } = await first.reserveOne()

      assert.deepEqual({ failures, crashes, suspect }, { failures: 0, crashes: 0, suspect: false })
      assert.deepEqual(await admin.attempts(id), [])
    },
  },
  {
    name: 'a released job is no longer called running',
    async run({ store, admin, first }) {
      await enqueueOne(store)
      await first.release(await first.reserveOne())
      const [counts] = await admin.counts()

      assert.deepEqual([counts?.running, counts?.ready], [0, 1])
    },
  },
  {
    name: 'one round settles jobs in all four ways',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const ids = await enqueueAll(
        store,
        ['complete', 'retry', 'fail', 'release'].map((job) => aJob({ job })),
      )
      const [done, retried, failed, released] = await first.reserve()
      assert.ok(done && retried && failed && released)
      const settle = [endings.complete(done), endings.retry(retried), endings.fail(failed), endings.release(released)]

      assert.deepEqual(await first.settle(settle), [])
      assert.deepEqual(idsOf(await gather(admin.failed({}, null))), [ids[2]])
      assert.deepEqual(
        (await first.reserve()).map(({ id, failures }) => [id, failures]),
        [
          [ids[1], 1],
          [ids[3], 0],
        ],
      )
    },
  },
  {
    name: '300 jobs fail in one round and each keeps its own error',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      await store.enqueue(jobs(300))
      const held = await first.reserve({ limit: 300 })
      const settle = held.map((job) => {
        return {
          ...holding(job),
          kind: 'fail',
          reason: 'tries',
          attempt: aRecord({ message: `error ${job.id}` }),
        } as const
      })
      await first.settle(settle)
      const failed = await gather(admin.failed({}, null))

      assert.equal(failed.length, 300)
      assert.ok(failed.every(({ id, error }) => error === `error ${id}`))
    },
  },
]
