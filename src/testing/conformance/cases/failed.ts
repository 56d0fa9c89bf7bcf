import assert from 'node:assert/strict'
import type { FailedFilter } from '../../../core/store/admin.ts'
import type { JobId } from '../../../core/store/store.ts'
import { aRecord, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { failOne, listed } from '../steps.ts'
import { holding, idsOf } from '../test-worker.ts'

const needs = ['failed jobs'] as const

/** What operators see of failed jobs. */
export const failedCases: readonly ConformanceCase[] = [
  {
    name: 'where nothing has failed every list is empty',
    needs,
    async run({ admin }) {
      assert.deepEqual(await listed(admin), [])
      assert.deepEqual(await admin.selectFailed({}), [])
      assert.deepEqual(await admin.failedGroups({}, 'error'), [])
      assert.equal(await admin.findFailed(1), null)
    },
  },
  {
    name: 'failed jobs are listed newest failure first, whatever their ids',
    needs,
    async run({ store, admin, first, clock }) {
      await store.enqueue(jobs(3))
      const [one, two, three] = await first.reserve()
      assert.ok(one && two && three)
      for (const held of [two, three, one]) {
        await first.fail(held)
        await clock.advance(10)
      }

      assert.deepEqual(await listed(admin), [one.id, three.id, two.id])
    },
  },
  {
    name: 'jobs that failed in the same millisecond are listed by id, the newest first, and selected the other way round',
    needs,
    async run({ store, admin, first }) {
      await store.enqueue(jobs(5))
      const held = await first.reserve()
      for (const job of held.toReversed()) await first.fail(job)

      assert.deepEqual(await listed(admin), idsOf(held).toReversed())
      assert.deepEqual(idsOf(await admin.selectFailed({})), idsOf(held))
    },
  },
  {
    name: 'a limit cuts the list after the newest',
    needs,
    async run(context) {
      const ids = []
      for (let count = 0; count < 4; count += 1) ids.push(await failOne(context))

      assert.deepEqual(await listed(context.admin, {}, 2), [ids[3], ids[2]])
      assert.deepEqual(await listed(context.admin, {}, 100), ids.toReversed())
    },
  },
  {
    name: 'a list of 2,500 failed jobs streams past every page, each exactly once, in order',
    needs,
    async run({ store, admin, first, clock }) {
      await store.enqueue(jobs(2_500))
      const held = await first.reserve({ limit: 2_500 })
      for (let from = 0; from < held.length; from += 833) {
        const some = held.slice(from, from + 833)
        await first.settle(some.map((job) => ({ ...holding(job), kind: 'fail', reason: 'tries', attempt: aRecord() })))
        await clock.advance(1)
      }

      assert.deepEqual(await listed(admin), idsOf(held).toReversed())
      assert.deepEqual(await listed(admin, {}, 1_700), idsOf(held).toReversed().slice(0, 1_700))
    },
  },
  {
    name: 'a list that is left early leaves nothing open',
    needs,
    async run(context) {
      for (let count = 0; count < 3; count += 1) await failOne(context)
      for await (const _ of context.admin.failed({}, null)) break

      assert.equal((await listed(context.admin)).length, 3)
    },
  },
  {
    name: 'failed jobs are found by queue and by name, exactly, and by both together',
    needs,
    async run(context) {
      const a = await failOne(context, { queue: 'mail', job: 'send' })
      const b = await failOne(context, { queue: 'mail', job: 'fetch' })
      const c = await failOne(context, { queue: 'mai_', job: 'send' })
      const { admin } = context

      assert.deepEqual(await listed(admin, { queue: 'mail' }), [b, a])
      assert.deepEqual(await listed(admin, { job: 'send' }), [c, a])
      assert.deepEqual(await listed(admin, { queue: 'mail', job: 'send' }), [a])
      assert.deepEqual(await listed(admin, { queue: 'Mail' }), [])
    },
  },
  {
    name: 'failed jobs are found by a part of the error, upper and lower case alike',
    needs,
    async run(context) {
      const a = await failOne(context, {}, 'ENOENT: no such file')
      const b = await failOne(context, {}, 'connect: enoent')
      await failOne(context, {}, 'EACCES')

      assert.deepEqual(await listed(context.admin, { error: 'eNoEnT' }), [b, a])
      assert.deepEqual(await listed(context.admin, { error: '' }).then((all) => all.length), 3)
    },
  },
  {
    name: 'wildcards in the text of an error stand for themselves',
    needs,
    async run(context) {
      await failOne(context, {}, 'plain text')
      const percent = await failOne(context, {}, '100% of_it \\ gone')

      for (const error of ['100%', 'of_it', '\\ ', '%'])
        assert.deepEqual(await listed(context.admin, { error }), [percent], error)
      assert.deepEqual(await listed(context.admin, { error: 'p%t' }), [])
      assert.deepEqual(await listed(context.admin, { error: 'pla_n' }), [])
    },
  },
  {
    name: 'failed jobs are found from a moment on and up to before another',
    needs,
    async run(context) {
      const { admin, clock } = context
      const start = clock.now()
      const ids: JobId[] = []
      for (let count = 0; count < 3; count += 1) {
        ids.push(await failOne(context))
        await clock.advance(1_000)
      }

      assert.deepEqual(await listed(admin, { since: start + 1_000 }), [ids[2], ids[1]])
      assert.deepEqual(await listed(admin, { until: start + 1_000 }), [ids[0]])
      assert.deepEqual(await listed(admin, { since: start + 1, until: start + 2_000 }), [ids[1]])
    },
  },
  {
    name: 'failed jobs are found by ids, in any number, and unknown ones are not there',
    needs,
    async run(context) {
      const a = await failOne(context)
      const b = await failOne(context)
      await failOne(context)
      const many = Array.from({ length: 3_000 }, (_, index) => 1_000_000 + index)

      assert.deepEqual(await listed(context.admin, { ids: [a, b, ...many] }), [b, a])
      assert.deepEqual(await listed(context.admin, { ids: [] }), [])
    },
  },
  {
    name: 'every filter selects what it lists, the oldest failure first',
    needs,
    async run(context) {
      await failOne(context, { queue: 'a', job: 'x' }, 'Alpha')
      await context.clock.advance(5)
      await failOne(context, { queue: 'b', job: 'x' }, 'beta')
      await failOne(context, { queue: 'a', job: 'y' }, 'alphabet')
      const now = context.clock.now()
      const filters = [
        {},
        { queue: 'a' },
        { job: 'x' },
        { error: 'alpha' },
        { since: now },
        { until: now },
        { ids: [1] },
      ]

      for (const filter of filters)
        assert.deepEqual(
          idsOf(await context.admin.selectFailed(filter)).toReversed(),
          await listed(context.admin, filter),
          JSON.stringify(filter),
        )
    },
  },
  {
    name: 'failed jobs are grouped by error, name or queue with counts and the latest failure, most first',
    needs,
    async run(context) {
      const { admin, clock } = context
      await failOne(context, { queue: 'a', job: 'x' }, 'boom')
      await failOne(context, { queue: 'a', job: 'y' }, 'bang')
      await clock.advance(700)
      await failOne(context, { queue: 'b', job: 'y' }, 'bang')
      const [now, before] = [clock.now(), clock.now() - 700]
      const groups = async (by: 'error' | 'job' | 'queue', filter: FailedFilter = {}) =>
        (await admin.failedGroups(filter, by)).map(({ key, count, latestAt }) => [key, count, latestAt])

      assert.deepEqual(await groups('error'), [
        ['bang', 2, now],
        ['boom', 1, before],
      ])
      assert.deepEqual(await groups('job'), [
        ['y', 2, now],
        ['x', 1, before],
      ])
      assert.deepEqual(await groups('queue'), [
        ['a', 2, before],
        ['b', 1, now],
      ])
      assert.deepEqual(await groups('error', { queue: 'b' }), [['bang', 1, now]])
    },
  },
]
