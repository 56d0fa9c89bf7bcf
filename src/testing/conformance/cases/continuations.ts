import assert from 'node:assert/strict'
import { aJob, aRecovery, enqueueAll, enqueueOne, gather, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { stateOf } from '../steps.ts'
import { idsOf } from '../test-worker.ts'

const needs = ['continuations'] as const

/** Jobs that wait until others are done. */
export const continuationCases: readonly ConformanceCase[] = [
  {
    name: 'a job after another one is not given out, and is due once that one is done',
    needs,
    async run({ store, first, second }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent], job: 'child' })
      const held = await first.reserveOne()
      assert.deepEqual([held.id, await second.reserve()], [parent, []])

      await first.complete(held)
      assert.deepEqual(idsOf(await second.reserve()), [child])
    },
  },
  {
    name: 'a look tells whether any job waits for another one',
    needs,
    async run({ store, first }) {
      const parent = await enqueueOne(store)
      assert.equal((await first.look()).waiting, false)
      await enqueueOne(store, { after: [parent] })
      assert.equal((await first.look()).waiting, true)
    },
  },
  {
    name: 'a job after several waits for the last of them, also when they are done in one round',
    needs,
    async run({ store, first }) {
      const parents = await enqueueAll(store, jobs(3))
      const child = await enqueueOne(store, { after: parents })
      const [one, two, three] = await first.reserve({ limit: 3 })
      assert.ok(one && two && three)
      await first.complete(two)
      assert.deepEqual(await first.reserve(), [])

      await first.complete(three, one)
      assert.deepEqual(idsOf(await first.reserve()), [child])
    },
  },
  {
    name: 'a completion that is kept releases what waits for it as well',
    needs,
    async run({ store, first }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent] })
      await first.keep(await first.reserveOne())

      assert.deepEqual(idsOf(await first.reserve()), [child])
    },
  },
  {
    name: 'a job that waits has no moment at which it is due, and is scheduled for people',
    needs,
    async run({ store, first, admin }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent] })
      await first.reserveOne()

      assert.equal(await first.dueMs(), null)
      assert.deepEqual(
        (await gather(admin.jobs({ state: 'scheduled' }, null))).map(({ id, availableAt }) => [id, availableAt]),
        [[child, null]],
      )
      assert.deepEqual(await admin.parents(child), [{ id: parent, onFailure: 'wait', state: 'running', isLost: false }])
      assert.deepEqual(await admin.parents(parent), [])
    },
  },
  {
    name: 'a job waits for its own moment too, counted from its dispatch',
    needs,
    async run({ store, first, clock }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent], due: { delayMs: 10_000 } })
      const held = await first.reserveOne()
      await clock.advance(4_000)
      await first.complete(held)

      assert.deepEqual([await first.reserve(), await first.dueMs()], [[], 6_000])
      await clock.advance(6_000)
      assert.deepEqual(idsOf(await first.reserve()), [child])
    },
  },
  {
    name: 'a released job comes in the order of its priority and its dispatch',
    needs: ['continuations', 'priorities'],
    async run({ store, first, clock }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent] })
      const urgent = await enqueueOne(store, { after: [parent], priority: -1 })
      await clock.advance(1)
      const later = await enqueueOne(store)
      await first.complete(await first.reserveOne())

      assert.deepEqual(idsOf(await first.reserve()), [urgent, child, later])
    },
  },
  {
    name: 'a job after one that is done already is due at once',
    needs,
    async run({ store, first }) {
      const parent = await enqueueOne(store)
      await first.complete(await first.reserveOne())
      const child = await enqueueOne(store, { after: [parent] })

      assert.deepEqual(idsOf(await first.reserve()), [child])
    },
  },
  {
    name: 'a parent that was never given out is refused, and nothing of the call is written',
    needs,
    async run({ store, first }) {
      const parent = await enqueueOne(store)
      const dispatch = store.enqueue([aJob(), aJob({ after: [parent, parent + 1_000] })])

      await assert.rejects(dispatch, { code: 'NOT_FOUND' })
      assert.deepEqual(idsOf(await first.reserve()), [parent])
    },
  },
  {
    name: 'a parent that is named twice is one parent',
    needs,
    async run({ store, first, admin }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent, parent] })
      assert.equal((await admin.parents(child)).length, 1)

      await first.complete(await first.reserveOne())
      assert.deepEqual(idsOf(await first.reserve()), [child])
    },
  },
  {
    name: 'a chain of three runs one after the other',
    needs,
    async run({ store, first }) {
      const one = await enqueueOne(store)
      const two = await enqueueOne(store, { after: [one] })
      const three = await enqueueOne(store, { after: [two] })
      const order: number[] = []
      for (let runs = 0; runs < 3; runs++) {
        const held = await first.reserveOne()
        order.push(held.id)
        await first.complete(held)
      }

      assert.deepEqual(order, [one, two, three])
    },
  },
  {
    name: '200 jobs after one are released with it, and 100 parents of one job are each waited for',
    needs,
    async run({ store, first }) {
      const root = await enqueueOne(store)
      const middle = await enqueueAll(store, jobs(100, { after: [root] }))
      const last = await enqueueOne(store, { after: middle })
      await enqueueAll(store, jobs(100, { after: [root], queue: 'other' }))
      await first.complete(await first.reserveOne())
      assert.equal((await first.reserve({ queues: [['other']] })).length, 100)

      const held = await first.reserve()
      assert.deepEqual(idsOf(held), middle)
      await first.complete(...held.slice(1))
      assert.deepEqual(await first.reserve(), [])
      await first.complete(...held.slice(0, 1))
      assert.deepEqual(idsOf(await first.reserve()), [last])
    },
  },
  {
    name: 'a retry or a release of the parent leaves the child waiting',
    needs,
    async run({ store, first }) {
      const parent = await enqueueOne(store)
      await enqueueOne(store, { after: [parent] })
      await first.retry(await first.reserveOne())
      await first.release(await first.reserveOne())

      assert.deepEqual(idsOf(await first.reserve()), [parent])
    },
  },
  {
    name: 'the unique key of a job that waits is taken, and its holder may be cancelled',
    needs: ['continuations', 'unique keys', 'cancels'],
    async run({ store, first, admin }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent], uniqueKey: 'sum' })
      const [again] = await store.enqueue([aJob({ uniqueKey: 'sum', after: [parent] })])
      assert.deepEqual(again, { id: child, duplicate: true })
      assert.deepEqual((await admin.cancel([child])).cancelled, [child])

      const [next] = await store.enqueue([aJob({ uniqueKey: 'sum' })])
      await first.complete(await first.reserveOne())
      assert.deepEqual([idsOf(await first.reserve()), await stateOf(admin, child)], [[next?.id], 'cancelled'])
    },
  },
  {
    name: 'a job that is replaced while it waits is due as the new one says, and stays so',
    needs: ['continuations', 'unique keys'],
    async run({ store, first, second }) {
      const parent = await enqueueOne(store, { queue: 'other' })
      const child = await enqueueOne(store, { after: [parent], uniqueKey: 'sum' })
      const [replaced] = await store.enqueue([aJob({ uniqueKey: 'sum', onConflict: 'replace', job: 'new' })])
      assert.deepEqual(replaced, { id: child, duplicate: true, replaced: true })
      const held = await first.reserveOne()
      assert.deepEqual([held.id, held.job], [child, 'new'])

      await second.complete(await second.reserveOne({ queues: [['other']] }))
      assert.deepEqual([await second.reserve(), await first.complete(held)], [[], []])
    },
  },
  {
    name: 'recovery leaves what still waits as it is',
    needs,
    async run({ store, first, second }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent] })
      const held = await first.reserveOne()
      await second.join()
      assert.deepEqual(await second.recover(), aRecovery())

      await first.complete(held)
      assert.deepEqual(idsOf(await second.reserve()), [child])
      assert.deepEqual(await second.recover(), aRecovery())
    },
  },
]
