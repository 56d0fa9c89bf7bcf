import assert from 'node:assert/strict'
import type { Aged } from '../../../core/store/admin.ts'
import { enqueueAll, enqueueOne, gather, jobs } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'
import { failOne, stateOf } from '../steps.ts'
import { idsOf } from '../test-worker.ts'

const needs = ['failed jobs', 'cancels'] as const
const states = ['done', 'failed', 'cancelled'] as const

const endings: Readonly<Record<Aged['state'], (context: Context) => Promise<number>>> = {
  failed: (context) => failOne(context),
  async done({ store, first }) {
    const id = await enqueueOne(store)
    const held = await first.reserveOne()
    await first.retry(held)
    await first.keep(await first.reserveOne())
    return id
  },
  async cancelled({ store, admin, first }) {
    const id = await enqueueOne(store)
    await first.retry(await first.reserveOne())
    await admin.cancel([id])
    return id
  },
}

/** Jobs that ended long ago are deleted. */
export const pruneCases: readonly ConformanceCase[] = [
  {
    name: 'a job is pruned once it is old enough, at that millisecond and not one before, with its attempts',
    needs,
    async run(context) {
      const { admin, clock } = context
      for (const state of states) {
        const id = await endings[state](context)
        await clock.advance(999)
        const aged = { state, leastAgeMs: 1_000 }
        assert.deepEqual([await admin.countAged(aged), await admin.prune(aged, 10)], [0, 0], state)
        assert.equal((await admin.attempts(id)).length, 1, state)

        await clock.advance(1)
        assert.deepEqual([await admin.countAged(aged), await admin.prune(aged, 10)], [1, 1], state)
        assert.equal(await stateOf(admin, id), null, state)
        assert.deepEqual(await admin.attempts(id), [], state)
      }
    },
  },
  {
    name: 'jobs that ended in another way are left alone, however old',
    needs,
    async run(context) {
      const ids = []
      for (const state of states) ids.push(await endings[state](context))
      await context.clock.advance(86_400_000)

      assert.equal(await context.admin.prune({ state: 'done', leastAgeMs: 0 }, 10), 1)
      assert.deepEqual(await Promise.all(ids.map((id) => stateOf(context.admin, id))), [null, 'failed', 'cancelled'])
    },
  },
  {
    name: 'live jobs are never pruned',
    async run({ store, admin, first, clock }) {
      const ids = await enqueueAll(store, jobs(3))
      await first.reserve({ limit: 1 })
      await clock.advance(86_400_000)
      for (const state of states) assert.equal(await admin.prune({ state, leastAgeMs: 0 }, 10), 0, state)

      assert.deepEqual(idsOf(await gather(admin.jobs({}, null))), ids.toReversed())
    },
  },
  {
    name: 'a limit takes the oldest, and the next call goes on',
    needs,
    async run(context) {
      const { admin, clock } = context
      const ids: number[] = []
      for (let each = 0; each < 5; each += 1) {
        ids.push(await failOne(context))
        await clock.advance(1)
      }
      const aged = { state: 'failed', leastAgeMs: 0 } as const
      assert.equal(await admin.prune(aged, 2), 2)
      assert.deepEqual(idsOf(await admin.selectFailed({})), ids.slice(2))

      assert.deepEqual([await admin.prune(aged, 2), await admin.prune(aged, 2), await admin.prune(aged, 2)], [2, 1, 0])
    },
  },
]
