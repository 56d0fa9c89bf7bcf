import assert from 'node:assert/strict'
import type { Admin, QueueCounts } from '../../../core/store/admin.ts'
import { aJob, aWish, enqueueAll, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { holding, idsOf } from '../test-worker.ts'

async function countsOf(admin: Admin, queue = 'default'): Promise<QueueCounts | undefined> {
  return (await admin.counts()).find((counts) => counts.queue === queue)
}

/** What one reservation takes and marks. */
export const reserveCases: readonly ConformanceCase[] = [
  {
    name: 'never more jobs come than the limit',
    async run({ store, first }) {
      const ids = await enqueueAll(store, jobs(10))

      assert.deepEqual(idsOf(await first.reserve({ limit: 3 })), ids.slice(0, 3))
      assert.deepEqual(idsOf(await first.reserve({ limit: 1 })), ids.slice(3, 4))
      assert.deepEqual(idsOf(await first.reserve({ limit: 50 })), ids.slice(4))
    },
  },
  {
    name: 'a limit of 0 takes nothing',
    async run({ store, first }) {
      await store.enqueue(jobs(2))

      assert.deepEqual(await first.reserve({ limit: 0 }), [])
      assert.equal((await first.reserve()).length, 2)
    },
  },
  {
    name: 'an empty store gives nothing',
    async run({ first }) {
      assert.deepEqual(await first.exchange({ reserve: aWish() }), { lost: [], ids: [], cancelled: [], reserved: [] })
    },
  },
  {
    name: 'a round that asks for nothing changes nothing',
    async run({ store, first }) {
      await enqueueOne(store)

      assert.deepEqual(await first.exchange({}), { lost: [], ids: [], cancelled: [], reserved: [] })
      assert.equal((await first.reserveOne()).fence, 1)
    },
  },
  {
    name: 'a reserved job is given to nobody else, nor to its holder again',
    async run({ store, first, second }) {
      await enqueueOne(store)
      await first.reserveOne()

      assert.deepEqual(await second.reserve(), [])
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'two workers that take turns share 100 jobs without a gap or a double',
    async run({ store, first, second }) {
      const ids = await enqueueAll(store, jobs(100))
      const taken = []
      for (let turn = 0; turn < 10; turn += 1)
        for (const worker of [first, second]) taken.push(...(await worker.reserve({ limit: 7 })))

      assert.deepEqual(idsOf(taken), ids)
    },
  },
  {
    name: 'twelve reservations at once by three workers give each of 200 jobs to exactly one',
    async run({ store, first, second, third }) {
      const ids = await enqueueAll(store, jobs(200))
      const rounds = Array.from({ length: 4 }, () => [first, second, third]).flat()
      const taken = idsOf((await Promise.all(rounds.map((worker) => worker.reserve({ limit: 10 })))).flat())
      const rest = idsOf(await first.reserve({ limit: 1_000 }))

      assert.equal(new Set(taken).size, taken.length, 'no doubles')
      assert.deepEqual(
        [...taken, ...rest].sort((a, b) => a - b),
        ids,
        'no gaps',
      )
    },
  },
  {
    name: 'the fence of a job grows with every reservation',
    async run({ store, first, second }) {
      await enqueueOne(store)
      const fences: number[] = []
      for (const worker of [first, second, first]) {
        const held = await worker.reserveOne()
        fences.push(held.fence)
        await worker.release(held)
      }

      assert.ok(
        fences.every((fence, index) => index === 0 || fence > Number(fences[index - 1])),
        `grows: ${fences}`,
      )
    },
  },
  {
    name: 'envelopes stop before they exceed maxBytes, exactly at the byte',
    async run({ store, first }) {
      await store.enqueue(jobs(4, { envelope: 'x'.repeat(100) }))

      assert.equal((await first.reserve({ maxBytes: 299 })).length, 2)
      assert.equal((await first.reserve({ maxBytes: 200 })).length, 2)
    },
  },
  {
    name: 'the first job comes however large it is, and alone',
    async run({ store, first }) {
      const ids = await enqueueAll(store, [aJob({ envelope: 'x'.repeat(5_000) }), aJob({ envelope: 'y' })])

      assert.deepEqual(idsOf(await first.reserve({ maxBytes: 10 })), ids.slice(0, 1))
      assert.deepEqual(idsOf(await first.reserve({ maxBytes: 10 })), ids.slice(1))
    },
  },
  {
    name: 'maxBytes counts bytes, not characters: four frogs are 16',
    async run({ store, first }) {
      await store.enqueue(jobs(2, { envelope: '🐸🐸🐸🐸' }))

      assert.equal((await first.reserve({ maxBytes: 31 })).length, 1)
    },
  },
  {
    name: 'a job too large for what is left does not let smaller ones overtake it',
    async run({ store, first }) {
      const sizes = [50, 100, 10]
      const ids = await enqueueAll(
        store,
        sizes.map((size) => aJob({ envelope: 'x'.repeat(size) })),
      )

      assert.deepEqual(idsOf(await first.reserve({ maxBytes: 100 })), ids.slice(0, 1))
    },
  },
  {
    name: 'maxBytes holds over the queues of one reservation together',
    needs: ['strict queues'],
    async run({ store, first }) {
      await store.enqueue(['a', 'a', 'b', 'b'].map((queue) => aJob({ queue, envelope: 'x'.repeat(100) })))
      const reserved = await first.reserve({ queues: [['a'], ['b']], maxBytes: 300 })

      assert.deepEqual(
        reserved.map(({ queue }) => queue),
        ['a', 'a', 'b'],
      )
    },
  },
  {
    name: 'the first jobs of a reservation are marked as started, as many as the wish says',
    async run({ store, admin, first }) {
      await store.enqueue(jobs(5))
      await first.reserve({ started: 2 })

      assert.equal((await countsOf(admin))?.running, 2)
    },
  },
  {
    name: 'a prefetched job is not called running until it is started',
    async run({ store, admin, first }) {
      await store.enqueue(jobs(2))
      const [one] = await first.prefetch()
      assert.deepEqual(pick(await countsOf(admin)), { ready: 2, running: 0 })

      assert.deepEqual(await first.start(...(one ? [one] : [])), [])
      assert.deepEqual(pick(await countsOf(admin)), { ready: 1, running: 1 })
    },
  },
  {
    name: 'starting a job twice does nothing the second time',
    async run({ store, admin, first }) {
      await enqueueOne(store)
      const held = await first.reserveOne()

      assert.deepEqual(await first.start(held), [])
      assert.deepEqual(await first.complete(held), [])
      assert.equal((await countsOf(admin))?.running ?? 0, 0)
    },
  },
  {
    name: 'disowning a batch frees what was reserved under it and nothing else',
    async run({ store, first, second }) {
      const ids = await enqueueAll(store, jobs(6))
      await first.reserve({ limit: 2, batch: 71 })
      const kept = await first.reserve({ limit: 2, batch: 72 })
      await first.exchange({ disown: [71] })

      assert.deepEqual(idsOf(await second.reserve()), [...ids.slice(0, 2), ...ids.slice(4)])
      assert.deepEqual(await first.complete(...kept), [])
    },
  },
  {
    name: "disowning a batch leaves another worker's batch of that number alone",
    async run({ store, first, second }) {
      await store.enqueue(jobs(2))
      await first.reserve({ limit: 1, batch: 5 })
      const theirs = await second.reserveOne({ batch: 5 })
      await first.exchange({ disown: [5] })

      assert.deepEqual(await second.complete(theirs), [])
    },
  },
  {
    name: 'a disowned job has cost nothing and its lost holder can no longer settle it',
    async run({ store, admin, first, second }) {
      const id = await enqueueOne(store)
      const lost = await first.reserveOne({ batch: 9 })
      await first.exchange({ disown: [9, 10] })
      const { failures, crashes, suspect } = await second.reserveOne()

      assert.deepEqual({ failures, crashes, suspect }, { failures: 0, crashes: 0, suspect: false })
      assert.deepEqual(await admin.attempts(id), [])
      assert.deepEqual(await first.complete(lost), [id])
    },
  },
  {
    name: 'disowning a batch that nothing was reserved under changes nothing',
    async run({ store, first }) {
      await enqueueOne(store)
      const held = await first.reserveOne({ batch: 1 })

      assert.deepEqual(await first.exchange({ disown: [2, 3] }), { lost: [], ids: [], cancelled: [], reserved: [] })
      assert.deepEqual(await first.complete(held), [])
    },
  },
  {
    name: 'one round settles 200 jobs and reserves the next 200',
    async run({ store, first }) {
      const ids = await enqueueAll(store, jobs(400))
      const held = await first.reserve({ batch: 1 })
      const settle = held.map((job) => ({ ...holding(job), kind: 'complete', keep: false }) as const)
      const { lost, reserved } = await first.exchange({ settle, reserve: aWish({ batch: 2 }) })

      assert.deepEqual(lost, [])
      assert.deepEqual(idsOf(reserved), ids.slice(200))
    },
  },
]

function pick(counts: QueueCounts | undefined): { ready: number; running: number } | null {
  return counts ? { ready: counts.ready, running: counts.running } : null
}
