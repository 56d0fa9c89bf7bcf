import assert from 'node:assert/strict'
import { aRecord, enqueueAll, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'

const fullRecord = aRecord({
  attempt: 3,
  worker: 'mailer "ä" 🐸',
  startedAt: 1_700_000_000_123,
  endedAt: 1_700_000_009_456,
  errorType: 'TypeError',
  message: "can't read '%_\\' of\nnothing 🐸",
  stack: 'TypeError: x\n    at y (z.ts:1:2)',
  output: 'line 1\r\nline 2\t\\',
})

/** The history of a job: one record for each attempt that did not succeed. */
export const attemptCases: readonly ConformanceCase[] = [
  {
    name: 'a retry is recorded with every field as it was given',
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.retry(await first.reserveOne(), 0, fullRecord)

      assert.deepEqual(
        (await admin.attempts(id)).map((record) => ({ ...record })),
        [fullRecord],
      )
    },
  },
  {
    name: 'a failure for good is recorded with every field as it was given',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.fail(await first.reserveOne(), fullRecord)

      assert.deepEqual(
        (await admin.attempts(id)).map((record) => ({ ...record })),
        [fullRecord],
      )
    },
  },
  {
    name: 'records come oldest first',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      for (const attempt of [1, 2, 3]) await first.retry(await first.reserveOne(), 0, { attempt })
      await first.fail(await first.reserveOne(), { attempt: 4 })

      assert.deepEqual(
        (await admin.attempts(id)).map(({ attempt }) => attempt),
        [1, 2, 3, 4],
      )
    },
  },
  {
    name: 'the records of one job are not mixed with those of another',
    async run({ store, admin, first }) {
      const ids = await enqueueAll(store, jobs(3))
      for (const held of await first.reserve()) await first.retry(held, 60_000, { message: `of ${held.id}` })

      for (const id of ids)
        assert.deepEqual(
          (await admin.attempts(id)).map(({ message }) => message),
          [`of ${id}`],
        )
    },
  },
  {
    name: 'a job nobody knows has no records',
    async run({ admin }) {
      assert.deepEqual(await admin.attempts(123_456), [])
    },
  },
  {
    name: 'of 150 attempts the first 10 and the last 90 are kept',
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      for (let attempt = 1; attempt <= 150; attempt += 1) await first.retry(await first.reserveOne(), 0, { attempt })
      const kept = (await admin.attempts(id)).map(({ attempt }) => attempt)

      assert.deepEqual(kept.slice(0, 10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
      assert.deepEqual(
        kept.slice(10),
        Array.from({ length: 90 }, (_, index) => 61 + index),
      )
    },
  },
  {
    name: 'of exactly 100 attempts every one is kept',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      for (let attempt = 1; attempt < 100; attempt += 1) await first.retry(await first.reserveOne(), 0, { attempt })
      await first.fail(await first.reserveOne(), { attempt: 100 })

      assert.equal((await admin.attempts(id)).length, 100)
    },
  },
  {
    name: 'the records of a job are deleted when it is completed',
    async run({ store, admin, first }) {
      const ids = await enqueueAll(store, jobs(2))
      for (const held of await first.reserve()) await first.retry(held)
      const [done] = await first.reserve()
      assert.ok(done)
      await first.complete(done)

      assert.deepEqual(await admin.attempts(ids[0] ?? 0), [])
      assert.equal((await admin.attempts(ids[1] ?? 0)).length, 1)
    },
  },
  {
    name: 'the records of a job are kept when it is completed and kept',
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.retry(await first.reserveOne())
      await first.keep(await first.reserveOne())

      assert.equal((await admin.attempts(id)).length, 1)
    },
  },
  {
    name: 'the records of a job are kept while it is failed, through a manual retry, and go when it is deleted',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.fail(await first.reserveOne(), { message: 'one' })
      await admin.retryFailed(await admin.selectFailed({}), 0)
      await first.fail(await first.reserveOne(), { message: 'two' })
      assert.deepEqual(
        (await admin.attempts(id)).map(({ message }) => message),
        ['one', 'two'],
      )

      await admin.deleteFailed(await admin.selectFailed({}))
      assert.deepEqual(await admin.attempts(id), [])
    },
  },
]
