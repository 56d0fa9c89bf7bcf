import assert from 'node:assert/strict'
import { aJob, aWish, enqueueAll, enqueueOne, gather } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { idsOf } from '../test-worker.ts'

const oddNames: readonly string[] = [
  "o'brien",
  '"quoted"',
  '`tick`; drop table jobs; --',
  '100%',
  'under_score',
  'back\\slash',
  '$1',
  '?',
  ':me',
  '{a,b}',
  '["json"]',
  'null',
  'constructor',
  '__proto__',
  'toString',
  'two\nlines\tand\rmore',
  ' blanks ',
  '',
  '漢字',
  '🐸👩‍👩‍👧',
  'e\u0301 is not \u00e9',
  'x'.repeat(255),
  '🐸'.repeat(127),
]

/** Names are text and nothing else. */
export const nameCases: readonly ConformanceCase[] = [
  {
    name: 'odd names of queues come back unchanged, and each queue is reserved from by its name alone',
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        oddNames.map((queue) => aJob({ queue })),
      )
      for (const [index, queue] of oddNames.entries()) {
        const reserved = await first.reserve({ queues: [[queue]] })
        assert.deepEqual(
          reserved.map((job) => [job.id, job.queue]),
          [[ids[index], queue]],
        )
      }
    },
  },
  {
    name: 'odd names of queues work in one merged group and in "all"',
    needs: ['merged queues'],
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        oddNames.map((queue) => aJob({ queue })),
      )
      const merged = await first.reserve({ queues: [oddNames] })
      for (const job of merged) await first.release(job)

      assert.deepEqual(idsOf(merged), ids)
      assert.deepEqual(idsOf(await first.reserve({ queues: 'all' })), ids)
    },
  },
  {
    name: 'odd names of jobs come back unchanged and work in every filter',
    needs: ['filters'],
    async run({ store, first }) {
      const ids = await enqueueAll(
        store,
        oddNames.map((job) => aJob({ job })),
      )
      for (const [index, job] of oddNames.entries()) {
        const [held, ...none] = await first.reserve({ only: [job] })
        assert.ok(held)
        assert.deepEqual([held.id, held.job, none.length], [ids[index], job, 0])
        await first.release(held)
      }

      assert.deepEqual(await first.reserve({ except: oddNames }), [])
    },
  },
  {
    name: 'odd unique keys are kept apart, and each is found again',
    needs: ['unique keys'],
    async run({ store }) {
      const all = oddNames.map((uniqueKey) => aJob({ uniqueKey }))
      const ids = await enqueueAll(store, all)

      assert.equal(new Set(ids).size, oddNames.length)
      assert.deepEqual(
        await store.enqueue(all),
        ids.map((id) => ({ id, duplicate: true })),
      )
    },
  },
  {
    name: 'queues with odd names are paused, resumed and counted one by one',
    needs: ['pauses'],
    async run({ store, admin, first }) {
      await store.enqueue(oddNames.map((queue) => aJob({ queue })))
      await admin.pause(oddNames, null, "it's a % \\ reason")
      assert.equal(await store.nextDue(aWish({ queues: 'all' })), null)
      assert.ok((await admin.counts()).every(({ paused }) => paused))

      for (const queue of oddNames) {
        await admin.resume([queue])
        assert.deepEqual(
          (await first.reserve({ queues: 'all' })).map((job) => job.queue),
          [queue],
        )
      }
    },
  },
  {
    name: 'failed jobs with odd names are found, grouped and retried by them',
    needs: ['failed jobs', 'unique keys'],
    async run({ store, admin, first }) {
      const ids = await enqueueAll(
        store,
        oddNames.map((name) => aJob({ queue: name, job: name, uniqueKey: name })),
      )
      for (const held of await first.reserve({ queues: 'all' })) await first.fail(held, { message: held.job })
      for (const [index, name] of oddNames.entries()) {
        const found = await gather(admin.failed({ queue: name, job: name, error: name }, null))
        assert.deepEqual(
          found.map((job) => [job.id, job.uniqueKey, job.error]),
          [[ids[index], name, name]],
        )
      }
      const groups = await admin.failedGroups({}, 'queue')

      assert.deepEqual(new Set(groups.map(({ key }) => key)), new Set(oddNames))
      assert.equal((await admin.retryFailed(await admin.selectFailed({}), 0)).retried.length, oddNames.length)
    },
  },
  {
    name: 'an odd error is stored and grouped as it is',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const message = `can't "read" \\ 100% of_it\n🐸 ${'é'.repeat(8_000)}`
      const id = await enqueueOne(store)
      await first.fail(await first.reserveOne(), { message, errorType: "O'Error" })

      assert.deepEqual(await admin.findFailed(id).then((job) => [job?.errorType, job?.error]), ["O'Error", message])
      assert.deepEqual(
        (await admin.failedGroups({}, 'error')).map(({ key }) => key),
        [message],
      )
    },
  },
]
