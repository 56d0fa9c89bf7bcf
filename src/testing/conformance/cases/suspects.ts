import assert from 'node:assert/strict'
import { aRecovery, enqueueAll, jobs, leaseMs, sorted } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { loseFirst } from '../steps.ts'
import { idsOf } from '../test-worker.ts'

/** A death in company: which of several started jobs was guilty nobody knows yet. */
export const suspectCases: readonly ConformanceCase[] = [
  {
    name: 'of a worker that died in company the started jobs become suspects and the others are free',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      const ids = await enqueueAll(store, jobs(5))
      await first.join()
      await first.reserve({ started: 2 })
      assert.equal((await loseFirst(context)).freed, 5)
      const rest = await second.reserve()

      assert.deepEqual(idsOf(rest), ids.slice(2))
      assert.ok(rest.every(({ crashes, suspect }) => crashes === 0 && !suspect))
    },
  },
  {
    name: 'what a dead worker held unstarted comes again only to be started, and holds back what stands behind it',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      const [, held, behind] = await enqueueAll(store, jobs(3))
      await first.join()
      await first.reserve({ started: 1, limit: 2 })
      await loseFirst(context)

      assert.deepEqual(await second.reserve({ started: 0 }), [])
      assert.deepEqual(idsOf(await second.reserve({ started: 1 })), [held, behind])
    },
  },
  {
    name: 'a worker that died before it had started anything leaves jobs that are started at once, and pay nothing',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      const ids = await enqueueAll(store, jobs(3))
      await first.join()
      await first.prefetch()
      await loseFirst(context)
      assert.deepEqual(await second.prefetch(), [])
      const [one, ...rest] = await second.reserve({ started: 1 })

      assert.deepEqual([one?.id, one?.crashes, one?.suspect, rest.length], [ids[0], 0, false, 0])
      if (one) await second.retry(one)
      assert.deepEqual(idsOf(await second.reserve({ started: 1, limit: 1 })), [ids[1]])
      assert.deepEqual(idsOf(await second.reserve({ started: 1 })), [ids[2], ids[0]])
    },
  },
  {
    name: 'a suspect comes alone, and only to a worker that holds nothing',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      const ids = await enqueueAll(store, jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      assert.deepEqual(await second.reserve({ suspects: false }), [])
      const [one, ...none] = await second.reserve({ suspects: true })

      assert.deepEqual([one?.id, one?.suspect, one?.crashes, none.length], [ids[0], true, 0, 0])
      assert.deepEqual(idsOf(await second.reserve({ suspects: true })), ids.slice(1))
    },
  },
  {
    name: 'behind an innocent job at the head, suspects are passed over and the innocents behind them come',
    needs: ['suspects', 'priorities'],
    async run(context) {
      const { store, first, second } = context
      const suspects = await enqueueAll(store, jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      const [before] = await enqueueAll(store, jobs(1, { priority: -1 }))
      const [after] = await enqueueAll(store, jobs(1, { priority: 1 }))
      assert.deepEqual(idsOf(await second.reserve({ suspects: true })), [before, after])

      assert.deepEqual(idsOf(await second.reserve({ suspects: true })), suspects.slice(0, 1))
    },
  },
  {
    name: 'a suspect that then kills its worker alone pays with a crash; its neighbour pays nothing',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second, third, clock } = context
      const [guilty, neighbour] = await enqueueAll(store, jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      await second.reserve({ suspects: true })
      await clock.advance(leaseMs + 1)
      await third.recover()
      const seen = [await third.reserveOne({ suspects: true }), await third.reserveOne({ suspects: true })]

      assert.deepEqual(
        seen.map(({ id, crashes }) => [id, crashes]),
        [
          [guilty, 1],
          [neighbour, 0],
        ],
      )
    },
  },
  {
    name: 'a death is judged once: the last of 1,201 jobs, freed in several batches, did not die alone',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      await store.enqueue(jobs(1_201))
      await first.join()
      await first.reserve({ limit: 2_000, started: 1_201 })
      assert.deepEqual(await loseFirst(context), aRecovery({ dead: [first.id], freed: 1_201 }))
      const suspects = []
      for (let round = 0; round < 20; round += 1) suspects.push(await second.reserveOne({ suspects: true }))

      assert.ok(suspects.every(({ crashes, suspect }) => crashes === 0 && suspect))
      assert.deepEqual(await second.reserve({ suspects: false }), [])
    },
  },
  {
    name: 'three workers that died together are judged each on its own',
    needs: ['suspects'],
    async run({ store, first, second, third, clock }) {
      const ids = await enqueueAll(store, jobs(4))
      for (const worker of [first, second, third]) await worker.join()
      await first.reserve({ limit: 1 })
      await second.reserve({ limit: 2 })
      await third.prefetch({ limit: 1 })
      await clock.advance(leaseMs + 1)
      const { dead, freed } = await first.recover({ observer: 12_345 })
      const innocent = await first.reserve()

      assert.deepEqual([sorted(dead), freed], [sorted([first.id, second.id, third.id]), 4])
      assert.deepEqual(
        innocent.map(({ id, crashes }) => [id, crashes]),
        [
          [ids[0], 1],
          [ids[3], 0],
        ],
      )
      assert.equal((await second.reserveOne({ suspects: true })).id, ids[1])
    },
  },
  {
    name: 'a suspect that is retried has survived its run and is none any more',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      const ids = await enqueueAll(store, jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      await second.retry(await second.reserveOne({ suspects: true }))
      const [again] = await second.reserve({ suspects: false })

      assert.deepEqual([again?.id, again?.suspect, again?.failures], [ids[0], false, 1])
    },
  },
  {
    name: 'a suspect that gave itself back is none any more; one that was interrupted still is',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      const ids = await enqueueAll(store, jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      const asked = await second.reserveOne({ suspects: true })
      const interrupted = await second.reserveOne({ suspects: true })
      await second.release(asked, 0)
      await second.release(interrupted)

      assert.deepEqual(idsOf(await second.reserve({ suspects: false })), ids.slice(0, 1))
      assert.equal((await second.reserveOne({ suspects: true })).suspect, true)
    },
  },
  {
    name: 'a suspect that is passed over does not use up the bytes or the number of the jobs behind it',
    needs: ['suspects', 'merged queues'],
    async run(context) {
      const { store, first, second } = context
      const suspects = await enqueueAll(store, jobs(2, { envelope: 'x'.repeat(1_000) }))
      await first.join()
      await first.reserve()
      const [head] = await enqueueAll(store, jobs(1, { priority: -1, envelope: '{}' }))
      const [behind] = await enqueueAll(store, jobs(1, { priority: 0, envelope: '{}' }))
      await loseFirst(context)

      for (const queues of [[['default']], [['a', 'default']], 'all'] as const)
        for (const suspectsToo of [true, false]) {
          const wish = { queues, suspects: suspectsToo, limit: 2, maxBytes: 100 }
          const reserved = await second.reserve(wish)
          assert.deepEqual(idsOf(reserved), [head, behind], JSON.stringify(wish))
          for (const one of reserved) await second.release(one)
        }
      assert.equal(
        (await second.reserveOne({ suspects: true, except: ['other'], exclude: [head ?? 0] })).id,
        suspects[0],
      )
    },
  },
]
