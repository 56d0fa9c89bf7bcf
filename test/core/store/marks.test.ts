import { expect, test } from 'vitest'
import { Marks, mayPassMarks } from '../../../src/core/store/postgres/marks.ts'
import type { Reservation, Round } from '../../../src/core/store/store.ts'
import { aJob, aWish } from '../../../src/testing/conformance/builders.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { ask, postgresSkipReason } from '../../support/postgres.ts'
import { inTransaction, migratedDatabase, openStore } from './postgres-support.ts'

const aRound = (parts: Partial<Round> = {}): Round => ({
  ...{ worker: 1, settle: [], enqueue: [], disown: [], start: [], reserve: null },
  ...parts,
})

const wish = aWish({ queues: [['a'], ['b']], limit: 50 })

/** So many jobs as a reservation brings them, due at 1,000, 1,001 and so on. */
function aHaul(count: number, parts: Partial<Reservation> = {}): readonly Reservation[] {
  return Array.from({ length: count }, (_, n) => ({
    ...{ id: n + 1, fence: 1, job: 'note', queue: 'a', priority: 0, availableAt: 1_000 + n, enqueuedAt: 0 },
    ...{ failures: 0, crashes: 0, suspect: false, envelope: '{}' },
    ...parts,
  }))
}

const full = { marked: false, ms: 5 }
const quick = { marked: true, ms: 5 }

function afterAHaul() {
  const clock = new ManualClock()
  const marks = new Marks(clock)
  marks.found(wish, aHaul(50), full)
  return { clock, marks }
}

test('a reservation starts behind the last job of each level, once the first has brought all that was asked', () => {
  const marks = new Marks(new ManualClock())
  expect(marks.for(wish)).toBeNull()
  marks.found(wish, [...aHaul(30), ...aHaul(20, { queue: 'b', priority: 2, availableAt: 7 })], full)
  expect(marks.for(wish)).toEqual([
    { group: 0, queue: 'a', priority: 0, availableAt: 1_029, id: 30 },
    { group: 1, queue: 'b', priority: 2, availableAt: 7, id: 20 },
  ])
})

test('a mark never goes back, in whatever order the answers of two rounds come', () => {
  const { marks } = afterAHaul()
  marks.found(wish, aHaul(50, { availableAt: 1_049, id: 7 }), quick)
  expect(marks.for(wish)).toMatchObject([{ availableAt: 1_049, id: 50 }])
})

test('a queue that gives less than was asked is looked at as a whole again', () => {
  const { marks } = afterAHaul()
  marks.found(wish, aHaul(49), quick)
  expect(marks.for(wish)).toBeNull()
})

test('every 250 ms a reservation looks everywhere, or in twenty times what that costs', async () => {
  const { clock, marks } = afterAHaul()
  await clock.advance(249)
  expect(marks.for(wish)).not.toBeNull()
  await clock.advance(1)
  expect(marks.for(wish)).toBeNull()
  marks.found(wish, aHaul(50), { marked: false, ms: 100 })
  marks.found(wish, aHaul(50), { marked: true, ms: 20 })
  marks.forget()
  marks.found(wish, aHaul(50), { marked: false, ms: 100 })
  await clock.advance(1_599)
  expect(marks.for(wish)).not.toBeNull()
  await clock.advance(1)
  expect(marks.for(wish)).toBeNull()
})

test.each([
  ['is small', aWish({ ...wish, limit: 49 })],
  ['looks for suspects', aWish({ ...wish, suspects: true })],
  ['serves other queues', aWish({ ...wish, queues: [['a']] })],
  ['wants other jobs', aWish({ ...wish, only: ['note'] })],
  ['excludes no job any more', aWish({ ...wish, exclude: [3] })],
])('a wish that %s starts from no mark', (_, other) => {
  expect(afterAHaul().marks.for(other)).toBeNull()
})

test('a job of our own at a time of its own, or in another level, lets the next reservation look everywhere', () => {
  const added = (parts: Parameters<typeof aJob>[0]) => {
    const { marks } = afterAHaul()
    marks.added([aJob({ queue: 'a', ...parts })])
    return marks.for(wish)
  }
  expect(added({ due: { delayMs: 0 } })).not.toBeNull()
  expect(added({ due: { at: 5 } })).toBeNull()
  expect(added({ priority: -1 })).toBeNull()
  expect(added({ queue: 'b' })).toBeNull()
})

test('a round that gives jobs back, disowns some or brings follow-ups may pass the marks', () => {
  expect(mayPassMarks(aRound({ settle: [{ id: 1, fence: 1, kind: 'complete', keep: false }] }))).toBe(false)
  expect(mayPassMarks(aRound({ settle: [{ id: 1, fence: 1, kind: 'release', delayMs: null }] }))).toBe(true)
  expect(mayPassMarks(aRound({ disown: [3] }))).toBe(true)
  expect(mayPassMarks(aRound({ enqueue: [{ ...aJob(), parent: 1 }] }))).toBe(true)
})

test.skipIf(postgresSkipReason())(
  'a drain under an old snapshot does not walk over the dead entries of all jobs before it, round after round',
  async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)
    const jobs = 10_000
    for (let n = 0; n < jobs; n += 5_000) await store.enqueue(Array.from({ length: 5_000 }, () => aJob()))
    const snapshot = await inTransaction(
      url,
      'set transaction isolation level repeatable read; select from jobs limit 1',
    )
    let done: readonly Reservation[] = []
    let drained = 0
    while (drained < jobs) {
      const settle = done.map(({ id, fence }) => ({ id, fence, kind: 'complete', keep: false }) as const)
      done = (await store.exchange(aRound({ settle, reserve: aWish({ limit: 100 }) }))).reserved
      drained += done.length
    }
    await snapshot`commit`
    await store.close()
    const [row] = await ask(
      url,
      `select idx_tup_read as read from pg_stat_user_indexes where indexrelname = 'jobs_ready'`,
    )
    // Without marks each of a hundred rounds walks twice over the half of all jobs that are dead on average: a million.
    expect(Number(row?.read)).toBeLessThan(20 * jobs)
  },
)
