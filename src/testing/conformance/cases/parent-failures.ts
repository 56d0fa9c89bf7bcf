import assert from 'node:assert/strict'
import type { JobId, OnParentFailure } from '../../../core/store/store.ts'
import { aRecovery, enqueueOne } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'
import { stateOf } from '../steps.ts'
import { idsOf } from '../test-worker.ts'

const needs = ['continuations', 'failed jobs'] as const

interface Family {
  readonly parent: JobId
  readonly child: JobId
}

/** Dispatches a job after another one, which then fails for good. */
async function failParent({ store, first }: Context, onParentFailure: OnParentFailure): Promise<Family> {
  const parent = await enqueueOne(store, { job: 'parent' })
  const child = await enqueueOne(store, { job: 'child', after: [parent], onParentFailure })
  await first.fail(await first.reserveOne())
  return { parent, child }
}

async function flush({ admin }: Context, id: JobId): Promise<void> {
  await admin.deleteFailed(await admin.selectFailed({ ids: [id] }))
}

/** What becomes of a job whose parent was not done. */
export const parentFailureCases: readonly ConformanceCase[] = [
  {
    name: 'wait: a job stays while its parent is failed, and runs after a retry that is done',
    needs,
    async run(context) {
      const { admin, first, second } = context
      const { parent, child } = await failParent(context, 'wait')
      await second.join()
      assert.deepEqual([await second.recover(), await first.reserve()], [aRecovery(), []])
      assert.equal((await admin.parents(child))[0]?.state, 'failed')

      await admin.retryFailed(await admin.selectFailed({}), 0)
      const again = await first.reserveOne()
      assert.equal(again.id, parent)
      await first.complete(again)
      assert.deepEqual(idsOf(await first.reserve()), [child])
    },
  },
  {
    name: 'wait: a job is cancelled once its failed parent is flushed',
    needs,
    async run(context) {
      const { admin, first, second } = context
      const { parent, child } = await failParent(context, 'wait')
      await flush(context, parent)
      assert.deepEqual(await first.reserve(), [])

      assert.deepEqual(await second.recover(), aRecovery({ released: 1 }))
      assert.deepEqual([await first.reserve(), await stateOf(admin, child)], [[], 'cancelled'])
      assert.deepEqual(await second.recover(), aRecovery())
    },
  },
  {
    name: 'wait: a job is cancelled once its failed parent is pruned by age',
    needs,
    async run(context) {
      const { admin, clock, second } = context
      const { child } = await failParent(context, 'wait')
      await clock.advance(1_000)
      assert.equal(await admin.prune({ state: 'failed', leastAgeMs: 1_000 }, 10), 1)

      assert.deepEqual(await second.recover(), aRecovery({ released: 1 }))
      assert.equal(await stateOf(admin, child), 'cancelled')
    },
  },
  {
    name: 'a parent that was done and is pruned by age has been done',
    needs: ['continuations'],
    async run({ store, admin, clock, first }) {
      const parent = await enqueueOne(store)
      const other = await enqueueOne(store)
      await first.keep(await first.reserveOne())
      const child = await enqueueOne(store, { after: [parent, other] })
      await clock.advance(1_000)
      assert.equal(await admin.prune({ state: 'done', leastAgeMs: 1_000 }, 10), 1)

      await first.complete(await first.reserveOne())
      assert.deepEqual(idsOf(await first.reserve()), [child])
    },
  },
  {
    name: 'wait: a job is cancelled with a parent that somebody cancels, and what waits for it too',
    needs: ['continuations', 'cancels'],
    async run({ store, admin, second }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent] })
      const grandchild = await enqueueOne(store, { after: [child] })
      const stranger = await enqueueOne(store)
      await admin.cancel([parent])

      assert.deepEqual(await second.recover(), aRecovery({ released: 2 }))
      assert.deepEqual([await stateOf(admin, child), await stateOf(admin, grandchild)], ['cancelled', 'cancelled'])
      assert.deepEqual(idsOf(await second.reserve()), [stranger])
    },
  },
  {
    name: 'wait: a job is cancelled at once when the run of its parent ends as cancelled',
    needs: ['continuations', 'cancels'],
    async run({ store, admin, first }) {
      const parent = await enqueueOne(store)
      const child = await enqueueOne(store, { after: [parent] })
      const held = await first.reserveOne()
      await admin.cancel([parent])
      await first.cancel(held)

      assert.equal(await stateOf(admin, child), 'cancelled')
    },
  },
  {
    name: 'cancel: a job is cancelled at once when its parent fails, though another parent still runs',
    needs,
    async run({ store, admin, first }) {
      const parents = [await enqueueOne(store), await enqueueOne(store)]
      const child = await enqueueOne(store, { after: parents, onParentFailure: 'cancel' })
      await first.fail(await first.reserveOne())

      assert.equal(await stateOf(admin, child), 'cancelled')
    },
  },
  {
    name: 'run: a job runs when its parent fails, is cancelled, or is flushed',
    needs: ['continuations', 'failed jobs', 'cancels'],
    async run(context) {
      const { store, admin, first, second } = context
      const { child } = await failParent(context, 'run')
      assert.deepEqual(idsOf(await first.reserve()), [child])

      const parent = await enqueueOne(store)
      const other = await enqueueOne(store, { after: [parent], onParentFailure: 'run' })
      await admin.cancel([parent])
      assert.deepEqual(await second.recover(), aRecovery({ released: 1 }))
      assert.deepEqual(idsOf(await first.reserve()), [other])
    },
  },
  {
    name: 'a job after one that has failed already waits for it, is cancelled or runs, as it says itself',
    needs,
    async run({ store, admin, first }) {
      const parent = await enqueueOne(store)
      await first.fail(await first.reserveOne())
      const after = { after: [parent] }
      const waiting = await enqueueOne(store, { ...after, onParentFailure: 'wait' })
      const cancelled = await enqueueOne(store, { ...after, onParentFailure: 'cancel' })
      const runs = await enqueueOne(store, { ...after, onParentFailure: 'run' })

      assert.deepEqual(idsOf(await first.reserve()), [runs])
      assert.deepEqual([await stateOf(admin, waiting), await stateOf(admin, cancelled)], ['scheduled', 'cancelled'])
    },
  },
]
