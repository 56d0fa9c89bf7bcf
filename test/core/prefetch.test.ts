import { expect, it } from 'vitest'
import { Prefetch } from '../../src/core/prefetch.ts'
import type { Reservation } from '../../src/core/store/store.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

const reservations = (count: number, first = 1): readonly Reservation[] =>
  Array.from({ length: count }, (_, index) => ({ id: first + index, fence: 1 }) as Reservation)

function aPrefetch(concurrency: number) {
  const clock = new ManualClock()
  return { clock, prefetch: new Prefetch(clock, concurrency, 400) }
}

/** Reserves until the target no longer grows, after jobs of a duration. */
function grown(concurrency: number, durationMs: number): Prefetch {
  const { prefetch } = aPrefetch(concurrency)
  for (let round = 0; round < 12; round++) {
    prefetch.ended(durationMs)
    prefetch.reserved()
  }
  return prefetch
}

it('before the first job has ended nothing is held in advance', () => {
  const { prefetch } = aPrefetch(4)
  prefetch.reserved()
  expect(prefetch.room).toBe(0)
})

it('the target doubles with each reservation, up to 400, while jobs take no time', () => {
  const { prefetch } = aPrefetch(1)
  const rooms = Array.from({ length: 11 }, () => {
    prefetch.ended(0)
    prefetch.reserved()
    return prefetch.room
  })
  expect(rooms).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 400, 400, 400])
})

it.each([
  [1, 5, 5],
  [10, 5, 50],
  [10, 25, 0],
  [10, 200, 0],
  [4, 0.1, 400],
])('%d slots and jobs of %d ms hold %d in advance: what starts within 25 ms', (concurrency, durationMs, room) => {
  expect(grown(concurrency, durationMs).room).toBe(room)
})

it('one job of 5 s among quick ones ends holding at once', () => {
  const prefetch = grown(4, 1)
  expect(prefetch.room).toBe(100)
  prefetch.ended(5_000)
  prefetch.reserved()
  expect(prefetch.room).toBe(0)
})

it('what waits for 50 ms goes back, unlike what came later; then nothing is held until a job has ended', async () => {
  const { clock } = aPrefetch(1)
  const prefetch = new Prefetch(clock, 1, 400)
  for (const _ of [1, 2, 3]) {
    prefetch.ended(1)
    prefetch.reserved()
  }
  prefetch.add(reservations(3))
  expect(prefetch.next()?.id).toBe(1)
  await clock.advance(20)
  prefetch.add(reservations(2, 10))
  expect(prefetch.staleInMs).toBe(30)
  await clock.advance(30)
  prefetch.giveBackStale()
  expect(prefetch.takeReturns()).toEqual([2, 3].map((id) => ({ id, fence: 1, kind: 'release', delayMs: null })))
  expect(prefetch.size).toBe(2)
  expect(prefetch.room).toBe(0)
  prefetch.ended(1)
  expect(prefetch.room).toBeGreaterThan(0)
  expect([prefetch.next()?.id, prefetch.next()?.id, prefetch.next()]).toEqual([10, 11, undefined])
})

it('returns that the store has not heard of are told again, before later ones', () => {
  const { prefetch } = aPrefetch(1)
  prefetch.refuse(reservations(1))
  const lost = prefetch.takeReturns()
  prefetch.refuse(reservations(1, 2))
  prefetch.putBack(lost)
  expect(prefetch.takeReturns().map(({ id }) => id)).toEqual([1, 2])
  expect(prefetch.hasReturns).toBe(false)
})
