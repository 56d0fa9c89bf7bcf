import assert from 'node:assert/strict'
import type { Admin, WorkerRow } from '../../../core/store/admin.ts'
import { aRecovery, enqueueAll, enqueueOne, jobs, leaseMs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { idsOf, type TestWorker } from '../test-worker.ts'

async function rowOf(admin: Admin, worker: TestWorker): Promise<WorkerRow | null> {
  return (await admin.workers()).find(({ id }) => id === worker.id) ?? null
}

/** Signs of life. */
export const beatCases: readonly ConformanceCase[] = [
  {
    name: 'a worker that joins is known and listed with its profile',
    async run({ admin, first, clock }) {
      const joinedAt = clock.now()
      assert.deepEqual(await first.join({ name: 'mailer', queues: 'high,default', concurrency: 8, pid: 77 }), {
        known: true,
      })
      const row = await rowOf(admin, first)

      assert.deepEqual(
        { ...row },
        {
          ...{ id: first.id, name: 'mailer', version: '1.2.3', host: 'here', pid: 77, queues: 'high,default' },
          ...{ concurrency: 8, state: 'working', startedAt: joinedAt, beatAt: joinedAt, leaseMs, held: 0, running: 0 },
        },
      )
    },
  },
  {
    name: 'a profile with everything a host knows about a process is taken',
    async run({ first }) {
      const profile = { bootId: 'b00t', pidNamespace: '4026531836', pidStart: '123456789012' }

      assert.deepEqual(await first.join(profile), { known: true })
    },
  },
  {
    name: 'a beat moves the time of the last sign of life and nothing else',
    async run({ admin, first, clock }) {
      await first.join()
      const before = await rowOf(admin, first)
      await clock.advance(10_000)

      assert.deepEqual(await first.beat(), { known: true })
      assert.deepEqual({ ...(await rowOf(admin, first)) }, { ...before, beatAt: clock.now() })
    },
  },
  {
    name: 'a beat of a worker that never joined is answered as unknown, and writes nothing',
    async run({ admin, first }) {
      for (const kind of ['working', 'draining', 'leaving'] as const)
        assert.deepEqual(await first.beat(kind), { known: false }, kind)

      assert.deepEqual(await admin.workers(), [])
    },
  },
  {
    name: 'a draining worker says so and stays known',
    async run({ admin, first }) {
      await first.join()

      assert.deepEqual(await first.beat('draining'), { known: true })
      assert.equal((await rowOf(admin, first))?.state, 'draining')
    },
  },
  {
    name: 'a worker that leaves is no longer listed',
    async run({ admin, first, second }) {
      await first.join()
      await second.join()

      assert.deepEqual(await first.beat('leaving'), { known: true })
      assert.deepEqual(
        (await admin.workers()).map(({ id }) => id),
        [second.id],
      )
    },
  },
  {
    name: 'what a leaving worker still holds is free at once, in its place and at no cost',
    async run({ store, admin, first, second }) {
      const ids = await enqueueAll(store, jobs(4))
      await first.join()
      await first.reserve({ limit: 3, started: 1 })
      await first.beat('leaving')
      const reserved = await second.reserve()

      assert.deepEqual(idsOf(reserved), ids)
      assert.ok(reserved.every(({ failures, crashes, suspect }) => failures === 0 && crashes === 0 && !suspect))
      assert.deepEqual(await admin.attempts(ids[0] ?? 0), [])
    },
  },
  {
    name: 'a worker that leaves takes nothing from its neighbours',
    async run({ store, first, second }) {
      await store.enqueue(jobs(2))
      await first.join()
      await second.join()
      await first.reserveOne()
      const theirs = await second.reserveOne()
      await first.beat('leaving')

      assert.deepEqual(await second.complete(theirs), [])
    },
  },
  {
    name: 'the jobs a worker holds are counted in its row',
    async run({ store, admin, first, second }) {
      await store.enqueue(jobs(5))
      await first.join()
      await second.join()
      await first.reserve({ limit: 3 })
      await second.prefetch({ limit: 1 })

      assert.deepEqual([(await rowOf(admin, first))?.held, (await rowOf(admin, second))?.held], [3, 1])
    },
  },
  {
    name: 'a beat of a worker that was declared dead is answered as unknown and does not revive it',
    async run({ admin, first, second, clock }) {
      await first.join()
      await clock.advance(leaseMs + 1)
      await second.recover()

      assert.deepEqual([await first.beat(), await first.beat('draining')], [{ known: false }, { known: false }])
      assert.equal((await rowOf(admin, first))?.state, 'dead')
    },
  },
  {
    name: 'a worker that joins again after it was declared dead is known again',
    async run({ admin, first, second, clock }) {
      await first.join()
      await clock.advance(leaseMs + 1)
      await second.recover()

      assert.deepEqual([await first.join(), await first.beat()], [{ known: true }, { known: true }])
      assert.equal((await rowOf(admin, first))?.state, 'working')
      assert.deepEqual((await second.recover()).dead, [])
    },
  },
  {
    name: 'a worker that left and was silent for long is not declared dead',
    async run({ store, first, second, clock }) {
      await enqueueOne(store)
      await first.join()
      await first.beat('leaving')
      await clock.advance(10 * leaseMs)

      assert.deepEqual(await second.recover(), aRecovery())
    },
  },
]
