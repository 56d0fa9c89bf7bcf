import assert from 'node:assert/strict'
import { aRecord, enqueueOne, jobs, sorted } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { failOne, listed } from '../steps.ts'
import { holding, idsOf } from '../test-worker.ts'

const needs = ['failed jobs'] as const

/** Failed jobs that are put back on their queues, or deleted. */
export const failedAgainCases: readonly ConformanceCase[] = [
  {
    name: 'a retried failed job is back on its queue with its id and envelope, at attempt one and without crashes',
    needs,
    async run(context) {
      const { store, admin, first, clock } = context
      const before = await enqueueOne(store, { queue: 'mail', priority: -4, envelope: '{"b":1,"a":1.10}' })
      const mail = { queues: [['mail']] }
      await first.retry(await first.reserveOne(mail))
      await first.fail(await first.reserveOne(mail))
      await clock.advance(60_000)
      const answer = await admin.retryFailed(await admin.selectFailed({}), 0)
      const { id, queue, priority, envelope, failures, crashes, suspect, availableAt } = await first.reserveOne(mail)

      assert.deepEqual(answer, { retried: [before], missing: [], blocked: [] })
      assert.deepEqual(
        { id, queue, priority, envelope },
        { id: before, queue: 'mail', priority: -4, envelope: '{"b":1,"a":1.10}' },
      )
      assert.deepEqual(
        { failures, crashes, suspect, availableAt },
        { failures: 0, crashes: 0, suspect: false, availableAt: clock.now() },
      )
      assert.equal(await admin.findFailed(before), null)
    },
  },
  {
    name: 'a failed job is retried after the delay given',
    needs,
    async run(context) {
      const { admin, first, clock } = context
      const id = await failOne(context)
      await admin.retryFailed(await admin.selectFailed({}), 3_000)
      await clock.advance(2_999)
      assert.deepEqual(await first.reserve(), [])

      await clock.advance(1)
      assert.equal((await first.reserveOne()).id, id)
    },
  },
  {
    name: 'ids that have not failed are named as missing and the others are retried all the same',
    needs,
    async run(context) {
      const { store, admin, first } = context
      const failed = await failOne(context)
      const waiting = await enqueueOne(store, { due: { delayMs: 60_000 } })
      const [selected] = await admin.selectFailed({})
      assert.ok(selected)
      const answer = await admin.retryFailed([{ id: waiting, fence: 0 }, selected, { id: 5_000, fence: 1 }], 0)

      assert.deepEqual([answer.retried, sorted(answer.missing), answer.blocked], [[failed], [waiting, 5_000], []])
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'retrying the same selection twice puts every job back once',
    needs,
    async run(context) {
      const { admin, first } = context
      const ids = [await failOne(context), await failOne(context)]
      const selected = await admin.selectFailed({})
      await admin.retryFailed(selected, 0)

      assert.deepEqual(sorted((await admin.retryFailed(selected, 0)).missing), ids)
      assert.deepEqual(idsOf(await first.reserve()), ids)
    },
  },
  {
    name: '2,000 failed jobs are retried in one call',
    needs,
    async run({ store, admin, first }) {
      await store.enqueue(jobs(2_000))
      const held = await first.reserve({ limit: 2_000 })
      await first.settle(held.map((job) => ({ ...holding(job), kind: 'fail', reason: 'tries', attempt: aRecord() })))
      const { retried } = await admin.retryFailed(await admin.selectFailed({}), 0)

      assert.equal(retried.length, 2_000)
      assert.deepEqual(idsOf(await first.reserve({ limit: 5_000 })), idsOf(held))
    },
  },
  {
    name: 'a failed job whose unique key a live job holds stays failed and names the holder',
    needs: ['failed jobs', 'unique keys'],
    async run(context) {
      const { store, admin } = context
      const blocked = await failOne(context, { uniqueKey: 'k' })
      const free = await failOne(context)
      const holder = await enqueueOne(store, { uniqueKey: 'k', due: { delayMs: 60_000 } })
      const answer = await admin.retryFailed(await admin.selectFailed({}), 0)

      assert.deepEqual(answer, { retried: [free], missing: [], blocked: [{ id: blocked, holder }] })
      assert.deepEqual(await listed(admin), [blocked])
    },
  },
  {
    name: 'of two failed jobs with one unique key one is retried and blocks the other',
    needs: ['failed jobs', 'unique keys'],
    async run(context) {
      const { admin } = context
      const ids = [await failOne(context, { uniqueKey: 'k' }), await failOne(context, { uniqueKey: 'k' })]
      const { retried, missing, blocked } = await admin.retryFailed(await admin.selectFailed({}), 0)
      const [lucky] = retried
      const other = ids.find((id) => id !== lucky)

      assert.deepEqual([retried.length, missing, blocked], [1, [], [{ id: other, holder: lucky }]])
      assert.deepEqual(await listed(admin), [other])
    },
  },
  {
    name: 'a retried job holds its unique key again',
    needs: ['failed jobs', 'unique keys'],
    async run(context) {
      const { store, admin, first } = context
      const id = await failOne(context, { uniqueKey: 'k' })
      await admin.retryFailed(await admin.selectFailed({}), 0)
      const [answer] = await store.enqueue(jobs(1, { uniqueKey: 'k' }))

      assert.deepEqual(answer, { id, duplicate: true })
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'deleted failed jobs are gone, and those that were not there are not answered',
    needs,
    async run(context) {
      const { admin, first } = context
      const ids = [await failOne(context), await failOne(context), await failOne(context)]
      const [one, two] = await admin.selectFailed({})
      assert.ok(one && two)

      assert.deepEqual(sorted(await admin.deleteFailed([one, two, { id: 7_777, fence: 1 }])), ids.slice(0, 2))
      assert.deepEqual(await admin.deleteFailed([one]), [])
      assert.deepEqual(await listed(admin), ids.slice(2))
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'a job that failed anew since it was selected is neither deleted nor retried',
    needs,
    async run(context) {
      const { admin, first } = context
      const id = await failOne(context)
      const seen = await admin.selectFailed({})
      await admin.retryFailed(seen, 0)
      await first.fail(await first.reserveOne(), { message: 'nobody has seen this' })

      assert.deepEqual(await admin.deleteFailed(seen), [])
      assert.deepEqual(await admin.retryFailed(seen, 0), { retried: [], missing: [id], blocked: [] })
      assert.equal((await admin.findFailed(id))?.error, 'nobody has seen this')
    },
  },
  {
    name: 'a selection is not touched by failures that come after it',
    needs,
    async run(context) {
      const early = await failOne(context)
      const selected = await context.admin.selectFailed({})
      const late = await failOne(context)

      assert.deepEqual(await context.admin.deleteFailed(selected), [early])
      assert.deepEqual(await listed(context.admin), [late])
    },
  },
  {
    name: 'retrying and deleting nothing does nothing',
    needs,
    async run({ admin }) {
      assert.deepEqual(await admin.retryFailed([], 0), { retried: [], missing: [], blocked: [] })
      assert.deepEqual(await admin.deleteFailed([]), [])
    },
  },
]
