import assert from 'node:assert/strict'
import { aFollowUp, aJob, aRecord, aRecovery, enqueueAll, enqueueOne, jobs, leaseMs } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'
import { listed, loseFirst, stateOf } from '../steps.ts'
import { holding, idsOf } from '../test-worker.ts'

const needs = ['cancels'] as const

/** Dispatches a job that the first worker runs and that somebody cancels meanwhile. */
async function cancelledWhileRunning({ store, admin, first }: Context) {
  const id = await enqueueOne(store, { uniqueKey: 'k' })
  const held = await first.reserveOne()
  assert.deepEqual(await admin.cancel([id]), { cancelled: [], marked: [id], missing: [] })
  return held
}

/** How jobs end that nobody wants any more. */
export const cancelCases: readonly ConformanceCase[] = [
  {
    name: 'a job that nobody holds is cancelled at once, due or not, and is never reserved',
    needs,
    async run({ store, admin, first }) {
      const [ready, scheduled, other] = await enqueueAll(store, [
        ...jobs(1),
        ...jobs(1, { due: { delayMs: 60_000 } }),
        ...jobs(1),
      ])
      const ids = [scheduled, ready] as number[]

      assert.deepEqual(await admin.cancel(ids), { cancelled: ids, marked: [], missing: [] })
      assert.deepEqual([await stateOf(admin, ready), await stateOf(admin, scheduled)], ['cancelled', 'cancelled'])
      assert.deepEqual(idsOf(await first.reserve()), [other])
    },
  },
  {
    name: 'a job that somebody holds is marked, again and again, and stays with its worker',
    needs,
    async run({ store, admin, first }) {
      const ids = await enqueueAll(store, jobs(2))
      await first.reserve({ started: 1 })
      for (const attempt of [1, 2])
        assert.deepEqual(await admin.cancel(ids), { cancelled: [], marked: ids, missing: [] }, `call ${attempt}`)

      assert.deepEqual([await stateOf(admin, ids[0]), await stateOf(admin, ids[1])], ['running', 'ready'])
      assert.equal((await admin.find(ids[0] ?? 0))?.isMarked, true)
    },
  },
  {
    name: 'what is not alive, or was cancelled before, is missing; a job that is named twice is answered once',
    needs,
    async run(context) {
      const { store, admin, first } = context
      const done = await enqueueOne(store)
      await first.complete(await first.reserveOne())
      const live = await enqueueOne(store)

      assert.deepEqual(await admin.cancel([404, live, live, done]), {
        cancelled: [live],
        marked: [],
        missing: [404, done],
      })
      assert.deepEqual(await admin.cancel([live]), { cancelled: [], marked: [], missing: [live] })
      assert.deepEqual(await admin.cancel([]), { cancelled: [], marked: [], missing: [] })
    },
  },
  {
    name: 'of 6,000 jobs every second one is cancelled in one call',
    needs,
    async run({ store, admin, first }) {
      const ids = await enqueueAll(store, jobs(6_000))
      const [even, odd] = [ids.filter((_, index) => index % 2 === 0), ids.filter((_, index) => index % 2 === 1)]

      assert.deepEqual((await admin.cancel(even)).cancelled, even)
      assert.deepEqual(idsOf(await first.reserve({ limit: 10_000 })), odd)
    },
  },
  {
    name: 'a cancelled job frees its unique key',
    needs: ['cancels', 'unique keys'],
    async run({ store, admin }) {
      const id = await enqueueOne(store, { uniqueKey: 'k' })
      await admin.cancel([id])

      assert.notEqual(await enqueueOne(store, { uniqueKey: 'k' }), id)
    },
  },
  {
    name: 'a worker that cancels what it holds ends the job and keeps the attempt it was told of',
    needs,
    async run({ store, admin, first }) {
      const [one, two] = (await enqueueAll(store, jobs(2))) as [number, number]
      const [started, unstarted] = (await first.reserve()).map(holding)
      assert.ok(started && unstarted)
      assert.deepEqual(await first.cancel(started, aRecord({ message: 'stopped' })), [])
      assert.deepEqual(await first.cancel(unstarted), [])

      assert.deepEqual([await stateOf(admin, one), await stateOf(admin, two)], ['cancelled', 'cancelled'])
      assert.deepEqual(
        (await admin.attempts(one)).map(({ message }) => message),
        ['stopped'],
      )
      assert.deepEqual(await admin.attempts(two), [])
    },
  },
  {
    name: 'a retry of a cancelled job is a cancellation, its attempt is kept, and its unique key is free at once',
    needs: ['cancels', 'unique keys'],
    async run(context) {
      const { store, admin, first } = context
      const { id, fence } = await cancelledWhileRunning(context)
      const attempt = aRecord({ message: 'aborted' })
      const { lost, cancelled } = await first.exchange({ settle: [{ id, fence, kind: 'retry', delayMs: 0, attempt }] })

      assert.deepEqual({ lost, cancelled }, { lost: [], cancelled: [id] })
      assert.deepEqual([await stateOf(admin, id), (await admin.attempts(id)).length], ['cancelled', 1])
      assert.notEqual(await enqueueOne(store, { uniqueKey: 'k' }), id)
    },
  },
  {
    name: 'a failure of a cancelled job is a cancellation and not among the failed jobs',
    needs: ['cancels', 'failed jobs'],
    async run(context) {
      const { admin, first } = context
      const { id, fence } = await cancelledWhileRunning(context)
      const settle = [{ id, fence, kind: 'fail', reason: 'tries', attempt: aRecord() }] as const
      const { lost, cancelled } = await first.exchange({ settle })

      assert.deepEqual({ lost, cancelled }, { lost: [], cancelled: [id] })
      assert.deepEqual([await stateOf(admin, id), await listed(admin)], ['cancelled', []])
      assert.equal((await admin.attempts(id)).length, 1)
    },
  },
  {
    name: 'of four settlements in one round only the retry and the failure of cancelled jobs are named as cancelled',
    needs,
    async run({ store, admin, first }) {
      const ids = await enqueueAll(store, jobs(4))
      const [done, failing, retried, given] = (await first.reserve()).map(holding)
      assert.ok(done && failing && retried && given)
      await admin.cancel(ids)
      const { lost, cancelled } = await first.exchange({
        settle: [
          { ...retried, kind: 'retry', delayMs: 0, attempt: aRecord() },
          { ...done, kind: 'complete', keep: true },
          { ...given, kind: 'cancel', attempt: null },
          { ...failing, kind: 'fail', reason: 'tries', attempt: aRecord() },
        ],
      })

      assert.deepEqual({ lost, cancelled }, { lost: [], cancelled: [retried.id, failing.id] })
      const states = await Promise.all(ids.map((id) => stateOf(admin, id)))
      assert.deepEqual(states, ['done', 'cancelled', 'cancelled', 'cancelled'])
    },
  },
  {
    name: 'a completion of a cancelled job is done, with its follow-up',
    needs: ['cancels', 'follow-ups'],
    async run(context) {
      const { admin, first } = context
      const held = await cancelledWhileRunning(context)
      const settle = [{ ...holding(held), kind: 'complete', keep: true }] as const
      const { cancelled, ids } = await first.exchange({ settle, enqueue: [aFollowUp(held)] })

      assert.deepEqual([cancelled, await stateOf(admin, held.id)], [[], 'done'])
      assert.equal(await stateOf(admin, ids[0] ?? 0), 'ready')
    },
  },
  {
    name: 'a follow-up may take the unique key of a job that is cancelled in the same round',
    needs: ['cancels', 'follow-ups', 'unique keys'],
    async run({ store, first }) {
      await enqueueAll(store, [...jobs(1), ...jobs(1, { uniqueKey: 'k' })])
      const [parent, other] = (await first.reserve()).map(holding)
      assert.ok(parent && other)
      const { ids } = await first.exchange({
        settle: [
          { ...parent, kind: 'complete', keep: false },
          { ...other, kind: 'cancel', attempt: null },
        ],
        enqueue: [aFollowUp(parent, { uniqueKey: 'k' })],
      })

      assert.equal(typeof ids[0], 'number')
    },
  },
  {
    name: 'a cancelled job that was given back, disowned or left behind is not reserved, not due, and ended by a recovery',
    needs,
    async run({ store, admin, first, second }) {
      const ids = await enqueueAll(store, jobs(3))
      await first.join()
      const released = await first.reserveOne({ batch: 1 })
      await first.reserveOne({ batch: 2 })
      await first.reserveOne({ batch: 3 })
      await admin.cancel(ids)
      await first.release(released)
      await first.exchange({ disown: [2] })
      await first.beat('leaving')

      assert.deepEqual([await second.reserve(), await second.dueMs()], [[], null])
      assert.deepEqual(await second.recover({ silent: false }), aRecovery({ cancelled: 3 }))
      assert.deepEqual(await Promise.all(ids.map((id) => stateOf(admin, id))), Array(3).fill('cancelled'))
      assert.deepEqual(await second.recover(), aRecovery())
    },
  },
  {
    name: 'a cancelled job whose worker died is ended by the recovery that frees it',
    needs,
    async run(context) {
      const { store, admin, first, second } = context
      const [marked, other] = (await enqueueAll(store, jobs(2))) as [number, number]
      await first.join()
      await first.prefetch()
      await admin.cancel([marked])

      assert.deepEqual(await loseFirst(context), aRecovery({ dead: [first.id], freed: 2, cancelled: 1 }))
      assert.deepEqual([await stateOf(admin, marked), idsOf(await second.reserve())], ['cancelled', [other]])
    },
  },
  {
    name: '1,200 cancelled jobs that a worker left behind are ended by one recovery',
    needs,
    async run({ store, admin, first, second }) {
      const ids = await enqueueAll(store, jobs(1_200))
      await first.join()
      await first.prefetch({ limit: 2_000 })
      await admin.cancel(ids)
      await first.beat('leaving')

      assert.deepEqual(await second.recover(), aRecovery({ cancelled: 1_200 }))
    },
  },
  {
    name: 'a job that fails, is retried by hand and reserved again is not cancelled any more',
    needs: ['cancels', 'failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.fail(await first.reserveOne())
      assert.deepEqual((await admin.cancel([id])).missing, [id])
      await admin.retryFailed(await admin.selectFailed({}), 0)
      const held = await first.reserveOne()

      assert.deepEqual((await first.look({ held: [id] })).cancelled, [])
      assert.deepEqual(
        (await first.exchange({ settle: [{ ...holding(held), kind: 'retry', delayMs: 0, attempt: aRecord() }] }))
          .cancelled,
        [],
      )
    },
  },
  {
    name: 'live jobs are selected by id, queue, job and state, in the order of their ids',
    needs,
    async run({ store, admin, first, clock }) {
      const ids = await enqueueAll(store, [
        ...jobs(2),
        ...jobs(1, { queue: 'mail' }),
        ...jobs(1, { job: 'sum' }),
        ...jobs(1, { due: { delayMs: 60_000 } }),
      ])
      await first.reserve({ limit: 2, started: 1 })
      const [running, held, mail, sum, scheduled] = ids

      assert.deepEqual(await admin.selectLive({}), ids)
      assert.deepEqual(await admin.selectLive({ ids: [sum ?? 0, 404, held ?? 0] }), [held, sum])
      assert.deepEqual(await admin.selectLive({ queue: 'mail' }), [mail])
      assert.deepEqual(await admin.selectLive({ job: 'sum', queue: 'default' }), [sum])
      assert.deepEqual(await admin.selectLive({ state: 'running' }), [running])
      assert.deepEqual(await admin.selectLive({ state: 'ready' }), [held, mail, sum])
      assert.deepEqual(await admin.selectLive({ state: 'scheduled' }), [scheduled])
      assert.deepEqual(await admin.selectLive({ state: 'scheduled', queue: 'mail' }), [])
      await clock.advance(60_000)
      assert.deepEqual(await admin.selectLive({ state: 'scheduled' }), [])
    },
  },
  {
    name: 'a job is found wherever it is, with its state and with the worker that holds it',
    needs: ['cancels', 'failed jobs'],
    async run({ store, admin, first, clock, second }) {
      const id = await enqueueOne(store, { queue: 'mail', job: 'send', due: { delayMs: 10 } })
      const facts = { id, job: 'send', queue: 'mail', isMarked: false, holder: null }
      assert.deepEqual(await admin.find(id), { ...facts, home: 'live', state: 'scheduled' })
      await clock.advance(10)
      assert.deepEqual(await admin.find(id), { ...facts, home: 'live', state: 'ready' })

      await first.join({ name: 'mailer' })
      const [held] = await first.prefetch({ queues: 'all' })
      assert.ok(held)
      const holder = { worker: first.id, name: 'mailer' }
      assert.deepEqual(await admin.find(id), { ...facts, home: 'live', state: 'ready', holder })
      await first.start(held)
      assert.deepEqual(await admin.find(id), { ...facts, home: 'live', state: 'running', holder })
      await first.fail(held)
      assert.deepEqual(await admin.find(id), { ...facts, home: 'failed', state: 'failed' })

      await admin.retryFailed(await admin.selectFailed({}), 0)
      await second.keep(await second.reserveOne({ queues: 'all' }))
      assert.deepEqual(await admin.find(id), { ...facts, home: 'ended', state: 'done' })
      assert.equal(await admin.find(404), null)
    },
  },
  {
    name: 'the states of 3,000 ids are one question: those of jobs that are nowhere are left out',
    needs: ['cancels', 'failed jobs'],
    async run({ store, admin, first }) {
      const [failing, keeping, cancelled, running, scheduled] = await enqueueAll(store, [
        ...jobs(4),
        aJob({ due: { delayMs: 60_000 } }),
      ])
      const [one, two] = await first.reserve({ limit: 2 })
      assert.ok(one && two)
      await first.fail(one)
      await first.keep(two)
      await admin.cancel([cancelled as number])
      await first.reserveOne()
      const ready = await enqueueOne(store)

      const ids = Array.from({ length: 3_000 }, (_, index) => index + 1)
      assert.deepEqual(
        [...(await admin.states(ids))].sort(([a], [b]) => a - b),
        [
          [failing, 'failed'],
          [keeping, 'done'],
          [cancelled, 'cancelled'],
          [running, 'running'],
          [scheduled, 'scheduled'],
          [ready, 'ready'],
        ],
      )
      assert.equal((await admin.states([])).size, 0)
    },
  },
  {
    name: 'a holder without a row has no name',
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.reserveOne()

      assert.deepEqual((await admin.find(id))?.holder, { worker: first.id, name: null })
    },
  },
  {
    name: 'a worker that is declared dead does not bring a cancelled job back by settling late',
    needs,
    async run(context) {
      const { admin, first, clock, second } = context
      await first.join()
      const held = await cancelledWhileRunning(context)
      await clock.advance(leaseMs + 1)
      await second.recover()
      const { lost, cancelled } = await first.exchange({
        settle: [{ ...holding(held), kind: 'retry', delayMs: 0, attempt: aRecord() }],
      })

      assert.deepEqual([idsOf(lost), cancelled, await stateOf(admin, held.id)], [[held.id], [], 'cancelled'])
    },
  },
]
