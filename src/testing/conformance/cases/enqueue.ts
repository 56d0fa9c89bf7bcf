import assert from 'node:assert/strict'
import { aJob, enqueueAll, enqueueOne, jobs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { idsOf } from '../test-worker.ts'

/** Texts that a store which parses, trims, re-encodes or cuts envelopes would change. */
const awkwardEnvelopes: readonly string[] = [
  '{"n":123456789012345678901234567890.10e-5,"z":-0.0}',
  '{"b":1,"a":2,"a":3}',
  '{"text":"\\u0000 \\ud800 \\/ \\u00e9"}',
  '{"text":"🐸 naïve 漢字 \u2028"}',
  ' {"spaced" : [ 1 ,\r\n\t2 ] } \n',
  '{"__proto__":{"constructor":1},"\'; drop table jobs; --":"%_\\\\$1 ?"}',
  'not json',
  '',
]

/** What dispatching leaves in the store. */
export const enqueueCases: readonly ConformanceCase[] = [
  {
    name: 'ids come back in the order given and grow',
    async run({ store }) {
      const answers = await store.enqueue([aJob({ job: 'a' }), aJob({ job: 'b' }), aJob({ job: 'c' })])
      const ids = idsOf(answers)

      assert.equal(answers.length, 3)
      assert.deepEqual(
        ids,
        [...new Set(ids)].sort((a, b) => a - b),
      )
      assert.ok(answers.every((answer) => answer.duplicate === false))
    },
  },
  {
    name: 'ids grow from one call to the next and between two stores on one database',
    async run({ first, second }) {
      const one = await enqueueOne(first.store)
      const two = await enqueueOne(second.store)
      const three = await enqueueOne(first.store)

      assert.ok(one < two && two < three, `${one} < ${two} < ${three}`)
    },
  },
  {
    name: 'an answer of three jobs belongs to the jobs in their places',
    async run({ store, first }) {
      const ids = await enqueueAll(store, [
        aJob({ job: 'last', priority: 9 }),
        aJob({ job: 'first', priority: -9 }),
        aJob({ job: 'middle' }),
      ])
      const reserved = await first.reserve()

      assert.deepEqual(
        reserved.map(({ id, job }) => [id, job]),
        [
          [ids[1], 'first'],
          [ids[2], 'middle'],
          [ids[0], 'last'],
        ],
      )
    },
  },
  {
    name: 'the id of the newest job is not given out again after it was completed',
    async run({ store, first }) {
      const id = await enqueueOne(store)
      await first.complete(await first.reserveOne())

      assert.ok((await enqueueOne(store)) > id)
    },
  },
  {
    name: 'the id of a failed job is not given out again after it was deleted',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      await first.fail(await first.reserveOne())
      await admin.deleteFailed(await admin.selectFailed({}))

      assert.ok((await enqueueOne(store)) > id)
    },
  },
  {
    name: 'enqueueing no jobs answers nothing and writes nothing',
    async run({ store, first }) {
      assert.deepEqual(await store.enqueue([]), [])
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: '5,000 jobs in one call get 5,000 growing ids and can all be reserved',
    async run({ store, first }) {
      const ids = await enqueueAll(store, jobs(5_000))
      const reserved = await first.reserve({ limit: 10_000 })

      assert.equal(new Set(ids).size, 5_000)
      assert.deepEqual(idsOf(reserved), ids)
    },
  },
  {
    name: 'a new job is reserved with every field as it was dispatched',
    async run({ store, first, clock }) {
      const job = aJob({ job: 'send-welcome', queue: 'mail', priority: -3, envelope: '{"job":"send-welcome"}' })
      const id = await enqueueOne(store, job)
      const reserved = await first.reserve({ queues: [['mail']] })

      assert.deepEqual(
        reserved.map((reservation) => ({ ...reservation })),
        [
          {
            id,
            fence: 1,
            job: 'send-welcome',
            queue: 'mail',
            priority: -3,
            availableAt: clock.now(),
            enqueuedAt: clock.now(),
            failures: 0,
            crashes: 0,
            suspect: false,
            envelope: '{"job":"send-welcome"}',
          },
        ],
      )
    },
  },
  {
    name: 'a job delayed by 10 s is reserved after 10,000 ms and not after 9,999',
    async run({ store, first, clock }) {
      const id = await enqueueOne(store, { due: { delayMs: 10_000 } })
      await clock.advance(9_999)
      assert.deepEqual(await first.reserve(), [])

      await clock.advance(1)
      assert.deepEqual(idsOf(await first.reserve()), [id])
    },
  },
  {
    name: 'a job due at a moment is reserved at that millisecond and not one before',
    async run({ store, first, clock }) {
      const id = await enqueueOne(store, { due: { at: clock.now() + 60_000 } })
      await clock.advance(59_999)
      assert.deepEqual(await first.reserve(), [])

      await clock.advance(1)
      assert.deepEqual(idsOf(await first.reserve()), [id])
    },
  },
  {
    name: 'a job due in the past runs at once and keeps its moment',
    async run({ store, first, clock }) {
      await enqueueOne(store, { due: { at: clock.now() - 3_600_000 } })

      assert.equal((await first.reserveOne()).availableAt, clock.now() - 3_600_000)
    },
  },
  {
    name: 'a job due in ten years waits without overflow',
    async run({ store, first, clock }) {
      const tenYearsMs = 3_650 * 86_400_000
      await enqueueOne(store, { due: { delayMs: tenYearsMs } })
      assert.deepEqual(await first.reserve(), [])

      clock.set(clock.now() + tenYearsMs)
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'the time of dispatch is kept apart from the time at which a job may start',
    async run({ store, first, clock }) {
      const dispatchedAt = clock.now()
      await enqueueOne(store, { due: { delayMs: 5_000 } })
      await clock.advance(8_000)
      const { enqueuedAt, availableAt } = await first.reserveOne()

      assert.deepEqual({ enqueuedAt, availableAt }, { enqueuedAt: dispatchedAt, availableAt: dispatchedAt + 5_000 })
    },
  },
  {
    name: 'envelopes come back byte for byte: big numbers, key order, escapes, emoji, white space, even no JSON at all',
    async run({ store, first }) {
      await store.enqueue(awkwardEnvelopes.map((envelope) => aJob({ envelope })))
      const reserved = await first.reserve()

      assert.deepEqual(
        reserved.map(({ envelope }) => envelope),
        awkwardEnvelopes,
      )
    },
  },
  {
    name: 'an envelope of 1 MiB comes back whole',
    async run({ store, first }) {
      const envelope = JSON.stringify({ job: 'big', payload: 'ä🐸"\\'.repeat(120_000) })
      await enqueueOne(store, { envelope })
      const reserved = await first.reserveOne()

      assert.ok(reserved.envelope === envelope, `${reserved.envelope.length} of ${envelope.length} characters`)
    },
  },
  {
    name: 'what one store enqueues another one on the same database reserves',
    async run({ first, second }) {
      const id = await enqueueOne(first.store)

      assert.deepEqual(idsOf(await second.reserve()), [id])
    },
  },
]
