import assert from 'node:assert/strict'
import type { Filter } from '../../../core/store/store.ts'
import { aWish, enqueueAll, enqueueOne, jobs, leaseMs, sorted } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { loseFirst } from '../steps.ts'

const nothingSeen = {
  ...{ known: false, restart: false, cancelled: [], neighbours: [], suspectWaitMs: null, newer: false },
  waiting: false,
}

/** Filters that all serve the queue "default", each in one of the ways in which queues can be named. */
const everyScope: readonly Filter['queues'][] = [[['default']], [['b', 'default'], ['a']], 'all']

/** What a worker sees when it looks around. */
export const lookCases: readonly ConformanceCase[] = [
  {
    name: 'an empty store shows nothing, and does not know the worker',
    async run({ first }) {
      assert.deepEqual(await first.look(), nothingSeen)
    },
  },
  {
    name: 'a worker is known from when it joins until it is declared dead or leaves',
    async run(context) {
      const { first, second } = context
      await first.join()
      assert.equal((await first.look()).known, true)
      await loseFirst(context)
      assert.equal((await first.look()).known, false)
      await second.beat('leaving')
      assert.equal((await second.look()).known, false)
    },
  },
  {
    name: 'the workers of a moment see that they are to restart, and one that joins later does not',
    async run({ admin, first, second, third, clock }) {
      await second.join()
      await clock.advance(1)
      await first.join()
      assert.equal((await first.look()).restart, false)
      assert.deepEqual(await admin.restart(), [second.id, first.id], 'in the order of their starts')
      await clock.advance(1)
      await third.join()

      const restarts = [first, second, third].map(async (worker) => (await worker.look()).restart)
      assert.deepEqual(await Promise.all(restarts), [true, true, false])
      await first.join()
      assert.equal((await first.look()).restart, false, 'it has joined anew')
    },
  },
  {
    name: 'a dead worker is not asked to restart, but one that is declared dead after it was asked still sees it',
    async run(context) {
      const { admin, first, second } = context
      await first.join()
      assert.deepEqual(await admin.restart(), [first.id])
      await loseFirst(context)
      const { known, restart } = await first.look()
      assert.deepEqual([known, restart], [false, true])

      assert.deepEqual(await admin.restart(), [second.id])
    },
  },
  {
    name: 'of the jobs it holds a worker sees those that were cancelled',
    needs: ['cancels'],
    async run({ store, admin, first, second }) {
      const ids = await enqueueAll(store, jobs(4))
      await first.reserve({ limit: 3 })
      await second.reserve()
      await admin.cancel([ids[0] ?? 0, ids[2] ?? 0, ids[3] ?? 0])

      assert.deepEqual(sorted((await first.look({ held: ids.slice(0, 3) })).cancelled), [ids[0], ids[2]])
      assert.deepEqual((await second.look({ held: ids.slice(1, 2) })).cancelled, [])
    },
  },
  {
    name: 'neighbours are the living workers of the same host, with what tells their processes apart',
    async run(context) {
      const { first, second, third } = context
      const trace = { bootId: 'b00t', pidNamespace: '4026531836', pid: 77, pidStart: '123456789012' }
      await first.join()
      await loseFirst(context)
      await third.join(trace)

      assert.deepEqual((await second.look()).neighbours, [{ worker: third.id, ...trace }])
      assert.deepEqual((await second.look({ host: 'there' })).neighbours, [])
      await third.beat('leaving')
      assert.deepEqual((await second.look()).neighbours, [])
    },
  },
  {
    name: 'a process of which nothing is known but its number is a neighbour as well',
    async run({ first, second }) {
      await first.join()
      const unknown = { bootId: null, pidNamespace: null, pid: 4_321, pidStart: null }

      assert.deepEqual((await second.look()).neighbours, [{ worker: first.id, ...unknown }])
    },
  },
  {
    name: 'a due suspect is seen with the time for which it has been ready, by every filter that could take it',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second, clock } = context
      await store.enqueue(jobs(2))
      await first.join()
      await first.reserve()
      assert.equal((await second.look()).suspectWaitMs, null)
      await loseFirst(context)
      await clock.advance(500)

      for (const queues of everyScope)
        for (const suspects of [true, false]) {
          const { suspectWaitMs } = await second.look({ filter: aWish({ queues, suspects }) })
          assert.equal(suspectWaitMs, leaseMs + 501, JSON.stringify({ queues, suspects }))
        }
    },
  },
  {
    name: 'a suspect that is held, elsewhere, paused, excluded or of an unwanted name is not seen',
    needs: ['suspects', 'pauses', 'filters'],
    async run(context) {
      const { store, admin, first, second } = context
      const ids = await enqueueAll(store, jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      const seen = async (filter: Partial<Filter>) =>
        (await second.look({ filter: aWish(filter) })).suspectWaitMs !== null

      assert.equal(await seen({ queues: [['a']] }), false)
      assert.equal(await seen({ only: ['other'] }), false)
      assert.equal(await seen({ except: ['note'] }), false)
      assert.equal(await seen({ maxVersion: 0 }), false)
      assert.equal(await seen({ exclude: ids }), false)
      assert.equal(await seen({ exclude: ids.slice(1) }), true)
      await admin.pause(['default'], null, null)
      for (const queues of everyScope) assert.equal(await seen({ queues }), false)
      await admin.resume(['default'])
      for (const _ of ids) await second.reserve({ suspects: true })
      assert.equal(await seen({}), false)
    },
  },
  {
    name: 'a suspect that an interruption gave back waits in its place; one that is put off is none any more',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      await store.enqueue(jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      const held = await second.reserveOne({ suspects: true })
      const other = await second.reserveOne({ suspects: true })
      await second.release(held)
      assert.notEqual((await second.look()).suspectWaitMs, null)
      await second.complete(await second.reserveOne({ suspects: true }))
      await second.release(other, 0)

      assert.equal((await second.look()).suspectWaitMs, null)
    },
  },
  {
    name: 'a due job of a newer version is seen as such, by every filter that would take it',
    async run({ store, first }) {
      await enqueueOne(store)
      for (const queues of everyScope) assert.equal((await first.look({ filter: aWish({ queues }) })).newer, false)
      await enqueueOne(store, { version: 2 })

      for (const queues of everyScope) assert.equal((await first.look({ filter: aWish({ queues }) })).newer, true)
      assert.equal((await first.look({ filter: aWish({ maxVersion: 2 }) })).newer, false)
    },
  },
  {
    name: 'a newer job that is not due, elsewhere, held, paused or of an unwanted name is not seen',
    needs: ['pauses', 'filters'],
    async run({ store, admin, first, second, clock }) {
      const id = await enqueueOne(store, { version: 2, due: { delayMs: 100 } })
      const newer = async (filter: Partial<Filter> = {}) => (await second.look({ filter: aWish(filter) })).newer
      assert.equal(await newer(), false)
      await clock.advance(100)

      assert.equal(await newer(), true)
      assert.equal(await newer({ queues: [['a']] }), false)
      assert.equal(await newer({ only: ['other'] }), false)
      assert.equal(await newer({ except: ['note'] }), false)
      assert.equal(await newer({ exclude: [id] }), false)
      await admin.pause(['default'], null, null)
      for (const queues of everyScope) assert.equal(await newer({ queues }), false)
      await admin.resume(['default'])
      await first.reserveOne({ maxVersion: 2 })
      assert.equal(await newer(), false)
    },
  },
  {
    name: 'looking changes nothing: it is no beat and starts no job',
    async run({ store, admin, first, second, clock }) {
      const id = await enqueueOne(store)
      await first.join()
      await first.prefetch()
      await clock.advance(leaseMs + 1)
      await first.look({ held: [id] })

      assert.deepEqual((await second.recover()).dead, [first.id])
      assert.equal((await admin.find(id))?.state, 'ready')
    },
  },
]
