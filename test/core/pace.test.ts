import { expect, it } from 'vitest'
import { Pace } from '../../src/core/pace.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

function aPace(ceilingMs = 1_000) {
  const clock = new ManualClock()
  return { clock, pace: new Pace(clock, ceilingMs) }
}

it('the first look is at once', () => {
  expect(aPace().pace.waitMs).toBe(0)
})

it('empty looks wait 50, 100, 200, 400, 800 ms and then 1 s', () => {
  const { pace } = aPace(1_000)
  const waits = Array.from({ length: 8 }, () => {
    pace.foundNothing(null)
    return pace.waitMs
  })
  expect(waits).toEqual([50, 100, 200, 400, 800, 1_000, 1_000, 1_000])
})

it('the 2,000th empty look waits no longer than the ceiling', () => {
  const { pace } = aPace(30_000)
  for (let look = 0; look < 2_000; look++) pace.foundNothing(null)
  expect(pace.waitMs).toBe(30_000)
})

it('a job due in 300 ms ends the wait of 1 s', () => {
  const { pace } = aPace()
  for (let look = 0; look < 6; look++) pace.foundNothing(null)
  pace.foundNothing(300)
  expect(pace.waitMs).toBe(300)
})

it('a job due in a week does not lengthen the wait', () => {
  const { pace } = aPace()
  pace.foundNothing(604_800_000)
  expect(pace.waitMs).toBe(50)
})

it('a look that came back empty is never repeated within 50 ms, though a job should be due', () => {
  const { pace } = aPace(10)
  pace.foundNothing(0)
  expect(pace.waitMs).toBe(50)
})

it('a look that found all it asked for is repeated at once, one that found some after 50 ms', () => {
  const { pace } = aPace()
  pace.foundNothing(null)
  pace.found(true)
  expect(pace.waitMs).toBe(0)
  pace.found(false)
  expect(pace.waitMs).toBe(50)
})

it('finding something starts the waits from 50 ms again', () => {
  const { pace } = aPace()
  for (let look = 0; look < 5; look++) pace.foundNothing(null)
  pace.found(true)
  pace.foundNothing(null)
  expect(pace.waitMs).toBe(50)
})

it('a wait runs out, and lookNow ends it', async () => {
  const { clock, pace } = aPace()
  pace.foundNothing(null)
  await clock.advance(30)
  expect(pace.waitMs).toBe(20)
  await clock.advance(30)
  expect(pace.waitMs).toBe(0)
  pace.foundNothing(null)
  pace.lookNow()
  expect(pace.waitMs).toBe(0)
})
