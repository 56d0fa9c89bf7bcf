import assert from 'node:assert/strict'
import { aRecovery, enqueueAll, enqueueOne, jobs, leaseMs, sorted } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { loseFirst } from '../steps.ts'
import { idsOf } from '../test-worker.ts'

/** What an observer knows of a neighbour, beside its silence, and what pays for a death. */
export const deathCases: readonly ConformanceCase[] = [
  {
    name: 'a neighbour whose process is gone is dead at once, whatever its last beat, and its one job pays a crash',
    async run({ store, first, second }) {
      await enqueueOne(store)
      await first.join()
      await first.reserveOne()

      assert.deepEqual(
        await second.recover({ gone: [first.id], silent: false }),
        aRecovery({ dead: [first.id], freed: 1 }),
      )
      assert.equal((await second.reserveOne()).crashes, 1)
    },
  },
  {
    name: 'a gone neighbour is declared dead once, and one that never was is not',
    async run({ first, second }) {
      await first.join()
      const gone = [first.id, 404, 404]

      assert.deepEqual(await second.recover({ gone }), aRecovery({ dead: [first.id] }))
      assert.deepEqual(await second.recover({ gone }), aRecovery())
    },
  },
  {
    name: 'an observer is not dead although it is told that it is gone',
    async run({ first }) {
      await first.join()

      assert.deepEqual(await first.recover({ gone: [first.id] }), aRecovery())
      assert.deepEqual(await first.beat(), { known: true })
    },
  },
  {
    name: 'where silence proves nothing only the gone are judged',
    async run({ first, second, third, clock }) {
      await first.join()
      await second.join()
      await clock.advance(10 * leaseMs)
      assert.deepEqual(await third.recover({ silent: false }), aRecovery())
      assert.deepEqual((await third.recover({ silent: false, gone: [second.id] })).dead, [second.id])

      assert.deepEqual((await third.recover()).dead, [first.id])
    },
  },
  {
    name: 'an observer that is silent itself judges nobody by silence until it has beaten: the clock may have been set',
    async run({ first, second, third, clock }) {
      for (const worker of [first, second, third]) await worker.join()
      await clock.advance(leaseMs + 1)
      assert.deepEqual(await second.recover({ gone: [third.id] }), aRecovery({ dead: [third.id] }))
      await second.beat()

      assert.deepEqual((await second.recover()).dead, [first.id])
    },
  },
  {
    name: 'what dead workers hold is freed by an observer that judges nobody',
    async run(context) {
      const { store, first, third } = context
      await first.join()
      await loseFirst(context)
      const id = await enqueueOne(store)
      await first.reserveOne()

      assert.deepEqual(await third.recover({ silent: false }), aRecovery({ freed: 1 }))
      assert.equal((await third.reserveOne()).id, id)
    },
  },
  {
    name: 'a machine that was started anew costs its jobs nothing, gone or silent, alone or in company',
    async run({ store, first, second, third, clock }) {
      const ids = await enqueueAll(store, jobs(3))
      await first.join()
      await second.join()
      await first.reserve({ limit: 1 })
      await second.reserve({ limit: 2 })
      const rebooted = [first.id, second.id]
      assert.deepEqual(
        await third.recover({ gone: [first.id], rebooted, silent: false }),
        aRecovery({ dead: [first.id], freed: 1 }),
      )
      await clock.advance(leaseMs + 1)
      assert.deepEqual(await third.recover({ rebooted }), aRecovery({ dead: [second.id], freed: 2 }))
      const reserved = await third.reserve()

      assert.deepEqual(idsOf(reserved), ids)
      assert.ok(reserved.every(({ crashes, suspect }) => crashes === 0 && !suspect))
    },
  },
  {
    name: 'a machine that was started anew makes nobody dead who is neither gone nor silent',
    async run({ first, second }) {
      await first.join()

      assert.deepEqual(await second.recover({ rebooted: [first.id] }), aRecovery())
    },
  },
  {
    name: 'what a worker takes after it was judged to have died alone pays nothing',
    async run(context) {
      const { store, first, second } = context
      const guilty = await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      await loseFirst(context)
      await second.complete(await second.reserveOne())
      const late = await enqueueOne(store)
      await first.reserveOne()
      assert.deepEqual(await second.recover(), aRecovery({ freed: 1 }))
      const { id, crashes } = await second.reserveOne()

      assert.deepEqual({ id, crashes }, { id: late, crashes: 0 })
      assert.notEqual(id, guilty)
    },
  },
  {
    name: 'a job that its dead worker takes a second time pays once',
    async run(context) {
      const { store, first, second } = context
      await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      await loseFirst(context)
      await first.reserveOne()
      assert.equal((await second.recover()).freed, 1)

      assert.equal((await second.reserveOne()).crashes, 1)
    },
  },
  {
    name: 'what a worker takes after it was judged to have died in company is no suspect',
    needs: ['suspects'],
    async run(context) {
      const { store, first, second } = context
      await enqueueAll(store, jobs(2))
      await first.join()
      await first.reserve()
      await loseFirst(context)
      const late = await enqueueAll(store, jobs(2))
      await first.reserve()
      await second.recover()

      assert.deepEqual(idsOf(await second.reserve()), late)
    },
  },
  {
    name: 'two observers that find one neighbour gone count one death and one crash',
    async run({ store, first, second, third }) {
      await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      const gone = [first.id]
      const answers = await Promise.all([second.recover({ gone }), third.recover({ gone })])

      assert.deepEqual(
        answers.flatMap(({ dead }) => dead),
        gone,
      )
      assert.equal((await second.reserveOne()).crashes, 1)
    },
  },
  {
    name: '50 neighbours that are gone at once are each judged on their own',
    async run({ store, first, second }) {
      await store.enqueue(jobs(50))
      const workers = Array.from({ length: 50 }, (_, index) => first.as(1_000 + index))
      for (const worker of workers) {
        await worker.join()
        await worker.reserveOne()
      }
      const { dead, freed } = await second.recover({ gone: workers.map(({ id }) => id), silent: false })

      assert.deepEqual([sorted(dead), freed], [workers.map(({ id }) => id), 50])
      assert.ok((await second.reserve()).every(({ crashes }) => crashes === 1))
    },
  },
]
