import assert from 'node:assert/strict'
import { aFollowUp, endings, enqueueAll, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { idsOf } from '../test-worker.ts'

/** Jobs that commit together with the completion of the job that dispatched them. */
export const followUpCases: readonly ConformanceCase[] = [
  {
    name: 'a follow-up is written with the completion of its parent and gets an id of its own',
    needs: ['follow-ups'],
    async run({ store, first }) {
      const parent = await enqueueOne(store)
      const held = await first.reserveOne()
      const { lost, ids } = await first.exchange({
        settle: [endings.complete(held)],
        enqueue: [aFollowUp(held, { job: 'next', envelope: '{"step":2}' })],
      })
      const next = await first.reserveOne()

      assert.deepEqual([lost, ids], [[], [next.id]])
      assert.ok(next.id > parent)
      assert.deepEqual([next.job, next.envelope, next.failures], ['next', '{"step":2}', 0])
    },
  },
  {
    name: 'a follow-up of a kept completion is written too',
    needs: ['follow-ups'],
    async run({ store, first }) {
      await enqueueOne(store)
      const held = await first.reserveOne()
      const { ids } = await first.exchange({
        settle: [{ id: held.id, fence: held.fence, kind: 'complete', keep: true }],
        enqueue: [aFollowUp(held)],
      })

      assert.deepEqual(idsOf(await first.reserve()), ids)
    },
  },
  {
    name: 'a follow-up of a completion that was refused is not written',
    needs: ['follow-ups'],
    async run({ store, first, second }) {
      await enqueueOne(store)
      const held = await first.reserveOne()
      const { lost, ids } = await second.exchange({ settle: [endings.complete(held)], enqueue: [aFollowUp(held)] })

      assert.deepEqual([idsOf(lost), ids], [[held.id], [null]])
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'a follow-up of a job that is retried, failed or released is not written',
    needs: ['follow-ups'],
    async run({ store, first }) {
      await store.enqueue(jobs(3))
      const held = await first.reserve()
      const [one, two, three] = held
      assert.ok(one && two && three)
      const settle = [endings.retry(one), endings.fail(two), endings.release(three)]
      const { ids } = await first.exchange({ settle, enqueue: held.map((parent) => aFollowUp(parent)) })

      assert.deepEqual(ids, [null, null, null])
      assert.ok((await first.reserve()).every(({ job }) => job === 'note'))
    },
  },
  {
    name: 'follow-ups of several parents answer in their places, null where the parent was lost',
    needs: ['follow-ups'],
    async run({ store, first }) {
      const parents = await enqueueAll(store, jobs(3))
      const held = await first.reserve()
      const [one, lostOne, three] = held
      assert.ok(one && lostOne && three)
      await first.release(lostOne, 60_000)
      const { lost, ids } = await first.exchange({
        settle: held.map(endings.complete),
        enqueue: [
          aFollowUp(three, { job: 'a' }),
          aFollowUp(lostOne, { job: 'b' }),
          aFollowUp(one, { job: 'c' }),
          aFollowUp(three, { job: 'd' }),
        ],
      })
      const written = await first.reserve()

      assert.deepEqual(idsOf(lost), [parents[1]])
      assert.equal(ids[1], null)
      assert.deepEqual(
        ids.map((id) => written.find((job) => job.id === id)?.job),
        ['a', undefined, 'c', 'd'],
      )
    },
  },
  {
    name: '500 follow-ups of 100 completions are written in one round, in order',
    needs: ['follow-ups'],
    async run({ store, first }) {
      await store.enqueue(jobs(100))
      const held = await first.reserve()
      const enqueue = held.flatMap((parent) => jobs(5, { job: 'next' }).map((job) => aFollowUp(parent, job)))
      const { ids } = await first.exchange({ settle: held.map(endings.complete), enqueue })

      assert.deepEqual(idsOf(await first.reserve({ limit: 1_000 })), ids)
      assert.equal(new Set(ids).size, 500)
    },
  },
  {
    name: 'a follow-up may be delayed and of another queue and priority',
    needs: ['follow-ups', 'priorities'],
    async run({ store, first, clock }) {
      await enqueueOne(store)
      const held = await first.reserveOne()
      const enqueue = [aFollowUp(held, { queue: 'later', priority: 4, due: { delayMs: 1_000 } })]
      await first.exchange({ settle: [endings.complete(held)], enqueue })
      assert.deepEqual(await first.reserve({ queues: [['later']] }), [])

      await clock.advance(1_000)
      assert.equal((await first.reserveOne({ queues: [['later']] })).priority, 4)
    },
  },
  {
    name: 'a follow-up whose unique key is taken is not written, and its parent is completed all the same',
    needs: ['follow-ups', 'unique keys'],
    async run({ store, first }) {
      await enqueueOne(store)
      const held = await first.reserveOne()
      const holder = await enqueueOne(store, { uniqueKey: 'daily' })
      const { lost, ids } = await first.exchange({
        settle: [endings.complete(held)],
        enqueue: [aFollowUp(held, { uniqueKey: 'daily' })],
      })

      assert.deepEqual([lost, ids], [[], [null]])
      assert.deepEqual(idsOf(await first.reserve()), [holder])
    },
  },
  {
    name: 'a follow-up may take the unique key that its parent gives up',
    needs: ['follow-ups', 'unique keys'],
    async run({ store, first }) {
      await enqueueOne(store, { uniqueKey: 'loop' })
      const held = await first.reserveOne()
      const { ids } = await first.exchange({
        settle: [endings.complete(held)],
        enqueue: [aFollowUp(held, { uniqueKey: 'loop' })],
      })

      assert.deepEqual(idsOf(await first.reserve()), ids)
      assert.notEqual(ids[0], null)
    },
  },
  {
    name: 'of two follow-ups with one unique key the first is written',
    needs: ['follow-ups', 'unique keys'],
    async run({ store, first }) {
      await enqueueOne(store)
      const held = await first.reserveOne()
      const { ids } = await first.exchange({
        settle: [endings.complete(held)],
        enqueue: [aFollowUp(held, { job: 'a', uniqueKey: 'k' }), aFollowUp(held, { job: 'b', uniqueKey: 'k' })],
      })

      assert.deepEqual([typeof ids[0], ids[1]], ['number', null])
      assert.deepEqual(
        (await first.reserve()).map(({ job }) => job),
        ['a'],
      )
    },
  },
]
