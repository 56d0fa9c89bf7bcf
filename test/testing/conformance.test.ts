import assert from 'node:assert/strict'
import { test } from 'vitest'
import type { Enqueued, NewJob, Store } from '../../src/core/store/store.ts'
import { type Harness, type Opened, storeConformance } from '../../src/testing/index.ts'
import { openMemory } from '../support/stores.ts'

/** A store with one fault: it forgets the second job of every call. */
async function openForgetful(): Promise<Opened> {
  const opened = await openMemory()
  const [store, other] = opened.stores
  const enqueue = (jobs: readonly NewJob[]): Promise<readonly Enqueued[]> => store.enqueue(jobs.toSpliced(1, 1))
  const forgetful: Store = {
    enqueue,
    exchange: (round) => store.exchange(round),
    beat: (beat) => store.beat(beat),
    look: (look) => store.look(look),
    recover: (observation) => store.recover(observation),
    nextDue: (filter) => store.nextDue(filter),
    close: () => store.close(),
  }
  return { ...opened, stores: [forgetful, other] }
}

async function failuresOf(harness: Harness): Promise<readonly string[]> {
  const failures: string[] = []
  for (const { name, skip, run } of storeConformance(harness))
    if (skip === null) await run().catch(() => failures.push(name))
  return failures
}

test('the suite has at least 150 cases and every one has a name of its own', () => {
  const names = storeConformance({ open: openMemory, lacks: {} }).map(({ name }) => name)

  assert.ok(names.length >= 150, `${names.length} cases`)
  assert.equal(new Set(names).size, names.length)
})

test('a store that forgets jobs fails cases of the suite', async () => {
  assert.ok(
    (await failuresOf({ open: openForgetful, lacks: {} })).includes('ids come back in the order given and grow'),
  )
})

test('cases that need what a store lacks are skipped with its reason, and no others', () => {
  const reason = 'this broker knows one priority'
  const cases = storeConformance({ open: openMemory, lacks: { priorities: reason } })
  const skipped = cases.filter(({ skip }) => skip !== null)

  assert.ok(skipped.length > 5 && skipped.length < cases.length / 2, `${skipped.length} skipped`)
  assert.ok(skipped.every(({ skip }) => skip === reason))
  assert.ok(skipped.some(({ name }) => name === 'a lower priority runs first, and a negative one before zero'))
})

test('a case closes what it opened, also when it fails', async () => {
  let open = 0
  const counting = (from: () => Promise<Opened>) => async (): Promise<Opened> => {
    const opened = await from()
    open += 1
    const close = async (): Promise<void> => {
      open -= 1
    }
    return { ...opened, close }
  }
  await failuresOf({ open: counting(openForgetful), lacks: {} })

  assert.equal(open, 0)
})
