import assert from 'node:assert/strict'
import { test } from 'vitest'
import { openMemoryStore } from '../../../src/core/store/memory/store.ts'
import { aJob, aProfile, aWish } from '../../../src/testing/conformance/builders.ts'
import { ManualClock } from '../../../src/testing/index.ts'

const round = { worker: 1, settle: [], enqueue: [], start: [], disown: [], reserve: null }

test('two memory stores opened on one state share its jobs', async () => {
  const one = openMemoryStore({ clock: undefined })
  const two = openMemoryStore({ clock: undefined, state: one.state })
  await one.store.enqueue([aJob()])

  assert.equal((await two.store.exchange({ ...round, reserve: aWish() })).reserved.length, 1)
  assert.equal((await one.admin.counts())[0]?.running, 1)
})

test('two memory stores opened without a state share nothing', async () => {
  await openMemoryStore({ clock: undefined }).store.enqueue([aJob()])

  assert.deepEqual(await openMemoryStore({ clock: undefined }).admin.counts(), [])
})

test('a memory store without a clock takes the time of the system', async () => {
  const { store } = openMemoryStore({ clock: undefined })
  const before = Date.now()
  await store.enqueue([aJob()])
  const { reserved } = await store.exchange({ ...round, reserve: aWish() })

  assert.ok(Number(reserved[0]?.enqueuedAt) >= before && Number(reserved[0]?.enqueuedAt) <= Date.now())
})

test('a frozen clock freezes every notion of now in a memory store', async () => {
  const { store, admin } = openMemoryStore({ clock: new ManualClock(5_000) })
  await store.enqueue([aJob({ due: { delayMs: 1 } })])
  await store.beat({ kind: 'joining', worker: 1, profile: aProfile() })

  assert.equal(await store.nextDue(aWish()), 1)
  assert.deepEqual(await admin.workers().then(([row]) => [row?.startedAt, row?.beatAt]), [5_000, 5_000])
})

test('what a caller does to its objects afterwards does not reach into the store', async () => {
  const { store, admin } = openMemoryStore({ clock: undefined })
  const job = { ...aJob(), envelope: 'as dispatched' }
  const [enqueued] = await store.enqueue([job])
  job.envelope = 'changed'
  const { reserved } = await store.exchange({ ...round, reserve: aWish() })
  const attempt = {
    attempt: 1,
    worker: 'w',
    startedAt: 1,
    endedAt: 2,
    errorType: 'E',
    message: 'm',
    stack: null,
    output: null,
  }
  const settle = reserved.map(({ id, fence }) => ({ id, fence, kind: 'fail', reason: 'tries', attempt }) as const)
  await store.exchange({ ...round, settle })
  attempt.message = 'changed'

  const failed = await admin.findFailed(enqueued?.id ?? 0)
  assert.deepEqual([failed?.envelope, failed?.error], ['as dispatched', 'm'])
  assert.equal((await admin.attempts(enqueued?.id ?? 0))[0]?.message, 'm')
})
