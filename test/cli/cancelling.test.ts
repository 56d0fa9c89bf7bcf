import { describe, expect, it } from 'vitest'
import { cancelAll, type Ending, endingsOf } from '../../src/cli/cancelling.ts'
import type { Admin } from '../../src/core/store/admin.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import { aJob, enqueueAll, gather, jobs } from '../../src/testing/conformance/builders.ts'
import { TestWorker } from '../../src/testing/conformance/test-worker.ts'
import { ManualClock } from '../../src/testing/index.ts'

function opened() {
  const { store, admin } = openMemoryStore({ clock: new ManualClock() })
  return { store, admin, worker: new TestWorker(7, store, 'alpha') }
}

async function endings(admin: Admin, marked: readonly number[]): Promise<readonly Ending[]> {
  return gather(endingsOf(admin, marked, async () => {}))
}

describe('the endings of marked jobs', () => {
  it('are cancelled, or done where nothing is left of a job, or its row says so', async () => {
    const { store, admin, worker } = opened()
    const ids = (await enqueueAll(store, jobs(3))) as [number, number, number]
    const [one, two, three] = await worker.reserve()
    await admin.cancel(ids)
    if (one && two && three) await Promise.all([worker.cancel(one), worker.complete(two), worker.keep(three)])
    expect(await endings(admin, ids)).toEqual([
      { id: ids[0], state: 'cancelled' },
      { id: ids[1], state: 'done' },
      { id: ids[2], state: 'done' },
    ])
  })

  it('do not wait for a worker where the job was given back: it is ended here', async () => {
    const { store, admin, worker } = opened()
    const [id] = await enqueueAll(store, [aJob()])
    const held = await worker.reserveOne()
    await admin.cancel([held.id])
    await worker.release(held, 60_000)
    expect(await endings(admin, [held.id])).toEqual([{ id, state: 'cancelled' }])
    expect(await admin.find(held.id)).toMatchObject({ home: 'ended', state: 'cancelled' })
  })

  it('come one by one, as the jobs end', async () => {
    const { store, admin, worker } = opened()
    const ids = await enqueueAll(store, jobs(2))
    const [one, two] = await worker.reserve()
    await admin.cancel(ids)
    if (one) await worker.cancel(one)
    const waiting = endingsOf(admin, ids, async () => {})
    expect((await waiting.next()).value).toEqual({ id: ids[0], state: 'cancelled' })
    if (two) await worker.complete(two)
    expect((await waiting.next()).value).toEqual({ id: ids[1], state: 'done' })
    expect((await waiting.next()).done).toBe(true)
  })

  it('of none end at once', async () => {
    expect(await endings(opened().admin, [])).toEqual([])
  })
})

it('2,500 jobs are cancelled in three transactions, in the order asked', async () => {
  const { store, admin } = opened()
  const ids = await enqueueAll(store, jobs(2_500))
  const progress: number[] = []
  const { cancelled, marked, missing } = await cancelAll(admin, [...ids, 9_999], (done) => progress.push(done))
  expect({ cancelled, marked, missing }).toEqual({ cancelled: ids, marked: [], missing: [9_999] })
  expect(progress).toEqual([1_000, 2_000, 2_501])
})
