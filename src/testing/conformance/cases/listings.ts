import assert from 'node:assert/strict'
import type { Admin, JobFilter, StoredJob } from '../../../core/store/admin.ts'
import { aJob, enqueueAll, enqueueOne, gather, jobs, leaseMs } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'
import { failOne } from '../steps.ts'
import { idsOf } from '../test-worker.ts'

async function list(admin: Admin, filter: JobFilter = {}, limit: number | null = null): Promise<readonly StoredJob[]> {
  return gather(admin.jobs(filter, limit))
}

/** One job in each state, on a queue named like it. */
async function oneOfEach(context: Context): Promise<Readonly<Record<StoredJob['state'], number>>> {
  const { store, admin, first } = context
  const one = (state: string) => ({ queue: state, job: `${state}-job` })
  const failed = await failOne(context, one('failed'))
  const done = await enqueueOne(store, one('done'))
  await first.keep(await first.reserveOne({ queues: [['done']] }))
  const cancelled = await enqueueOne(store, one('cancelled'))
  await admin.cancel([cancelled])
  const scheduled = await enqueueOne(store, { ...one('scheduled'), due: { delayMs: 60_000 } })
  const ready = await enqueueOne(store, one('ready'))
  const running = await enqueueOne(store, one('running'))
  await first.reserveOne({ queues: [['running']] })
  return { failed, done, cancelled, scheduled, ready, running }
}

/** What operators see of all jobs, and of one. */
export const listingCases: readonly ConformanceCase[] = [
  {
    name: 'an empty store lists no job and knows none',
    async run({ admin }) {
      assert.deepEqual(await list(admin), [])
      assert.equal(await admin.stored(1), null)
      assert.equal(await admin.ahead(1), 0)
    },
  },
  {
    name: 'jobs of every state are listed together, the newest id first',
    needs: ['failed jobs', 'cancels'],
    async run(context) {
      const ids = await oneOfEach(context)
      const listed = await list(context.admin)

      assert.deepEqual(idsOf(listed), [ids.running, ids.ready, ids.scheduled, ids.cancelled, ids.done, ids.failed])
      for (const { id, state } of listed) assert.equal(id, ids[state])
    },
  },
  {
    name: 'jobs are found by state, by queue, by name, and by all together',
    needs: ['failed jobs', 'cancels'],
    async run(context) {
      const ids = await oneOfEach(context)
      for (const [state, id] of Object.entries(ids) as [StoredJob['state'], number][]) {
        assert.deepEqual(idsOf(await list(context.admin, { state })), [id], state)
        assert.deepEqual(idsOf(await list(context.admin, { queue: state })), [id], state)
        assert.deepEqual(idsOf(await list(context.admin, { state, queue: state, job: `${state}-job` })), [id], state)
        assert.deepEqual(await list(context.admin, { state, queue: 'Other' }), [], state)
        assert.deepEqual(await list(context.admin, { state, job: 'other' }), [], state)
      }
    },
  },
  {
    name: 'a limit cuts the list after the newest, across states',
    needs: ['failed jobs', 'cancels'],
    async run(context) {
      const ids = await oneOfEach(context)

      assert.deepEqual(idsOf(await list(context.admin, {}, 4)), [ids.running, ids.ready, ids.scheduled, ids.cancelled])
      assert.equal((await list(context.admin, {}, 100)).length, 6)
    },
  },
  {
    name: 'a list of 1,700 jobs streams past every page, each exactly once, in order',
    async run({ store, admin, first }) {
      const ids = await enqueueAll(store, jobs(1_700))
      await first.reserve({ limit: 300 })

      assert.deepEqual(idsOf(await list(admin)), ids.toReversed())
      assert.deepEqual(idsOf(await list(admin, { state: 'ready' }, 1_000)), ids.toReversed().slice(0, 1_000))
    },
  },
  {
    name: 'jobs that end while they are listed are met at most once, and the others all the same',
    async run({ store, admin, first }) {
      const ids = await enqueueAll(store, jobs(1_200))
      const met: number[] = []
      for await (const { id } of admin.jobs({}, null)) {
        met.push(id)
        if (met.length === 1) await first.keep(...(await first.reserve({ limit: 400 })))
      }

      assert.deepEqual(met, ids.toReversed())
    },
  },
  {
    name: 'a waiting job is shown with its place in the order, its key and its failures',
    needs: ['unique keys', 'priorities'],
    async run({ store, admin, first, clock }) {
      const enqueuedAt = clock.now()
      const envelope = '{"job":"note","payload":{"text":"as it was"}}'
      const id = await enqueueOne(store, { priority: -3, uniqueKey: 'k', envelope })
      await first.retry(await first.reserveOne(), 5_000)

      assert.deepEqual(await admin.stored(id), {
        ...{ id, fence: 1, job: 'note', queue: 'default', state: 'scheduled', priority: -3, version: 1, envelope },
        ...{ failures: 1, crashes: 0, isSuspect: false, uniqueKey: 'k', enqueuedAt, availableAt: enqueuedAt + 5_000 },
        ...{ startedAt: null, cancelledAt: null, endedAt: null, holder: null, failure: null },
      })
    },
  },
  {
    name: 'a held job is shown with its worker and until when that one counts as alive; only a started one is running',
    needs: ['cancels'],
    async run({ store, admin, first, clock }) {
      await first.join()
      const [one, two] = await enqueueAll(store, jobs(2))
      await first.reserve({ started: 1 })
      const startedAt = clock.now()
      await clock.advance(10)
      await admin.cancel([two ?? 0])

      const holder = { worker: first.id, name: 'first', leaseUntil: startedAt + leaseMs }
      const [second, started] = await list(admin)
      assert.deepEqual(
        [started?.id, started?.state, started?.startedAt, started?.cancelledAt, started?.holder],
        [one, 'running', startedAt, null, holder],
      )
      assert.deepEqual(
        [second?.id, second?.state, second?.startedAt, second?.cancelledAt, second?.holder],
        [two, 'ready', null, clock.now(), holder],
      )
    },
  },
  {
    name: 'a job whose worker left no row is shown as held by somebody unknown',
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.reserveOne()

      assert.deepEqual((await admin.stored(id))?.holder, { worker: first.id, name: null, leaseUntil: null })
    },
  },
  {
    name: 'a failed job is shown with the reason, a done one and a cancelled one with their end',
    needs: ['failed jobs', 'cancels'],
    async run(context) {
      const { admin, clock } = context
      const ids = await oneOfEach(context)
      const failed = await admin.stored(ids.failed)

      assert.deepEqual(failed?.failure, { reason: 'tries', errorType: 'Error', error: 'it broke' })
      assert.deepEqual([failed?.failures, failed?.availableAt, failed?.holder], [1, null, null])
      for (const state of ['failed', 'done', 'cancelled'] as const)
        assert.equal((await admin.stored(ids[state]))?.endedAt, clock.now(), state)
      assert.equal((await admin.stored(ids.done))?.envelope, aJob({ job: 'done-job' }).envelope)
      assert.equal((await admin.stored(ids.cancelled))?.failure, null)
    },
  },
  {
    name: 'the jobs ahead of one are the free ready ones of its queue with a better place',
    needs: ['priorities'],
    async run({ store, admin, first, clock }) {
      const [older, later] = await enqueueAll(store, jobs(2, { priority: 5 }))
      const better = await enqueueOne(store, { priority: 1 })
      await enqueueOne(store, { priority: 0, due: { delayMs: 1_000 } })
      await enqueueOne(store, { priority: 0, queue: 'other' })
      const aheadOf = (...ids: (number | undefined)[]) => Promise.all(ids.map((id) => admin.ahead(id ?? 0)))
      assert.deepEqual(await aheadOf(older, later, better), [1, 2, 0])

      await clock.advance(1_000)
      assert.deepEqual(await aheadOf(older, later, better), [2, 3, 1])

      await first.reserve({ limit: 2 })
      assert.deepEqual(await aheadOf(older, later, better), [0, 1, 0], 'what is held is out of the way')
    },
  },
]
