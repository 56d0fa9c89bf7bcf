import assert from 'node:assert/strict'
import type { Enqueued, NewJob } from '../../../core/store/store.ts'
import { aJob, enqueueOne } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'

const needs = ['unique keys'] as const

/** Enqueues a job under the key "k" that replaces whoever holds it. */
async function replace({ store }: Pick<Context, 'store'>, parts: Partial<NewJob> = {}): Promise<Enqueued | undefined> {
  const [answer] = await store.enqueue([aJob({ uniqueKey: 'k', onConflict: 'replace', ...parts })])
  return answer
}

const keyHeld = { code: 'KEY_HELD' }

/** What becomes of a new job whose unique key a live one holds. */
export const conflictCases: readonly ConformanceCase[] = [
  {
    name: 'keep says nothing and changes nothing, as where nothing is said',
    needs,
    async run({ store, first }) {
      const id = await enqueueOne(store, { uniqueKey: 'k', envelope: '{"old":1}' })
      const [answer] = await store.enqueue([aJob({ uniqueKey: 'k', onConflict: 'keep', envelope: '{"new":1}' })])

      assert.deepEqual(answer, { id, duplicate: true })
      assert.equal((await first.reserveOne()).envelope, '{"old":1}')
    },
  },
  {
    name: 'error refuses a job whose key is held, and writes nothing of the whole call',
    needs,
    async run({ store, first }) {
      await enqueueOne(store, { uniqueKey: 'k', job: 'old' })
      const call = [aJob({ job: 'other' }), aJob({ uniqueKey: 'k', onConflict: 'error' }), aJob({ job: 'another' })]

      await assert.rejects(store.enqueue(call), keyHeld)
      await assert.rejects(store.enqueue([aJob({ uniqueKey: 'k', onConflict: 'error' })]), keyHeld)
      assert.deepEqual(
        (await first.reserve()).map(({ job }) => job),
        ['old'],
      )
    },
  },
  {
    name: 'error refuses the second of two equal keys in one call, and writes neither',
    needs,
    async run({ store, first }) {
      const one = aJob({ uniqueKey: 'k', onConflict: 'error' })

      await assert.rejects(store.enqueue([one, { ...one }]), keyHeld)
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'error and replace write a job whose key is free',
    needs,
    async run({ store }) {
      const answers = await store.enqueue([
        aJob({ uniqueKey: 'a', onConflict: 'error' }),
        aJob({ uniqueKey: 'b', onConflict: 'replace' }),
      ])

      assert.deepEqual(
        answers.map(({ duplicate, replaced }) => [duplicate, replaced]),
        [
          [false, undefined],
          [false, undefined],
        ],
      )
    },
  },
  {
    name: 'replace puts the new job in the place of one that waits, under its id',
    needs,
    async run({ store, first }) {
      const id = await enqueueOne(store, { uniqueKey: 'k', queue: 'elsewhere', priority: 9 })
      const wanted = { job: 'new', queue: 'default', priority: -3, envelope: '{"job":"new"}' }

      assert.deepEqual(await replace({ store }, wanted), { id, duplicate: true, replaced: true })
      const [held, ...others] = await first.reserve({ queues: [['default'], ['elsewhere']] })
      assert.deepEqual(others, [])
      assert.deepEqual({ ...held, ...wanted, id }, held)
    },
  },
  {
    name: 'replace moves a job to another time, sooner and later, by a delay and by a moment',
    needs,
    async run({ store, first, clock }) {
      await enqueueOne(store, { uniqueKey: 'k', due: { delayMs: 60_000 } })
      await replace({ store }, { due: { delayMs: 5_000 } })
      assert.equal(await first.dueMs(), 5_000)
      await replace({ store }, { due: { at: clock.now() + 90_000 } })
      assert.equal(await first.dueMs(), 90_000)
      await replace({ store }, { due: { delayMs: 0 } })
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'replace keeps a job that is held, started or not, and says so',
    needs,
    async run({ store, first }) {
      const id = await enqueueOne(store, { uniqueKey: 'k', envelope: '{"old":1}' })
      const [held] = await first.prefetch()
      assert.ok(held)

      assert.deepEqual(await replace({ store }), { id, duplicate: true, replaced: false })
      await first.release(held)
      assert.equal((await first.reserveOne()).envelope, '{"old":1}')
      assert.deepEqual(await replace({ store }), { id, duplicate: true, replaced: false })
    },
  },
  {
    name: 'replace keeps a job that waits for a retry: a run of it has counted',
    needs,
    async run({ store, first }) {
      const id = await enqueueOne(store, { uniqueKey: 'k' })
      await first.retry(await first.reserveOne(), 60_000)

      assert.deepEqual(await replace({ store }, { due: { delayMs: 0 } }), { id, duplicate: true, replaced: false })
      assert.equal(await first.dueMs(), 60_000)
    },
  },
  {
    name: 'of several jobs of one call that replace each other the last one stays',
    needs,
    async run({ store, first }) {
      const answers = await store.enqueue(
        ['a', 'b', 'c'].map((job) => aJob({ uniqueKey: 'k', onConflict: 'replace', job })),
      )

      assert.deepEqual(
        answers.map(({ duplicate, replaced }) => [duplicate, replaced]),
        [
          [false, undefined],
          [true, true],
          [true, true],
        ],
      )
      assert.equal(new Set(answers.map(({ id }) => id)).size, 1)
      assert.deepEqual(
        (await first.reserve()).map(({ job }) => job),
        ['c'],
      )
    },
  },
  {
    name: 'replace leaves the key taken: the next job meets the new one',
    needs,
    async run({ store }) {
      const id = await enqueueOne(store, { uniqueKey: 'k' })
      await replace({ store })

      assert.deepEqual(await store.enqueue([aJob({ uniqueKey: 'k' })]), [{ id, duplicate: true }])
    },
  },
]
