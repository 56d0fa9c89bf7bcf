import { expect, it } from 'vitest'
import { Pruner } from '../../src/core/pruner.ts'
import type { Admin } from '../../src/core/store/admin.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import { aJob, enqueueAll } from '../../src/testing/conformance/builders.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

const minute = 60_000

/** A memory store with a pruner that keeps cancelled jobs for an hour, and first comes after 15 minutes. */
function opened(open: (admin: Admin) => Promise<Admin> = async (admin) => admin) {
  const clock = new ManualClock()
  const { store, admin, state } = openMemoryStore({ clock })
  const retention = { done: null, failed: null, cancelled: 60 * minute }
  const pruner = new Pruner({ admin: () => open(admin), retention, clock, random: () => 0.5 })
  const cancelSome = async (count: number): Promise<void> => {
    await admin.cancel(
      await enqueueAll(
        store,
        Array.from({ length: count }, () => aJob()),
      ),
    )
  }
  return { clock, state, pruner, cancelSome }
}

it('what is old enough goes at the first time, and what has grown old since an hour later', async () => {
  const { clock, state, pruner, cancelSome } = opened()
  await cancelSome(1_200)
  await clock.advance(15 * minute)
  expect(state.ended.size).toBe(1_200)
  await cancelSome(3)
  await clock.advance(60 * minute)
  expect(state.ended.size).toBe(0)
  pruner.stop()
})

it('a stopped one prunes no more', async () => {
  const { clock, state, pruner, cancelSome } = opened()
  await cancelSome(1)
  pruner.stop()
  await clock.advance(600 * minute)
  expect(state.ended.size).toBe(1)
})

it('a store that cannot be opened is asked again an hour later', async () => {
  let calls = 0
  const { clock, state, pruner, cancelSome } = opened(async (admin) => {
    calls += 1
    if (calls === 1) throw new Error('not now')
    return admin
  })
  await cancelSome(1)
  await clock.advance(15 * minute)
  expect(calls).toBe(1)
  await clock.advance(60 * minute)
  expect([calls, state.ended.size]).toEqual([2, 0])
  pruner.stop()
})
