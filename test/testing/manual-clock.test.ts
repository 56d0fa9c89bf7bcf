import assert from 'node:assert/strict'
import { test } from 'vitest'
import { sleep } from '../../src/core/clock.ts'
import { ManualClock } from '../../src/testing/index.ts'

test('a manual clock stands still until it is advanced, and then both its times move', async () => {
  const clock = new ManualClock(1_000)
  assert.deepEqual([clock.now(), clock.monotonic()], [1_000, 0])

  await clock.advance(250)
  assert.deepEqual([clock.now(), clock.monotonic()], [1_250, 250])
})

test('timers fire in the order in which they are due, each at its own moment', async () => {
  const clock = new ManualClock(0)
  const fired: [string, number][] = []
  for (const [name, ms] of [
    ['c', 30],
    ['a', 10],
    ['b', 20],
    ['a2', 10],
  ] as const)
    clock.after(ms, () => fired.push([name, clock.now()]))
  await clock.advance(25)

  assert.deepEqual(fired, [
    ['a', 10],
    ['a2', 10],
    ['b', 20],
  ])
  assert.equal(clock.pending, 1)
})

test('a timer that a timer starts fires in the same advance if it is due by then', async () => {
  const clock = new ManualClock(0)
  const fired: number[] = []
  const tick = (): void => {
    fired.push(clock.now())
    clock.after(10, tick)
  }
  clock.after(10, tick)
  await clock.advance(35)

  assert.deepEqual(fired, [10, 20, 30])
})

test('promises settle between two timers', async () => {
  const clock = new ManualClock(0)
  const steps: string[] = []
  clock.after(10, () => steps.push('timer 10'))
  clock.after(20, () => steps.push('timer 20'))
  const sleeper = sleep(clock, 10)
    .then(() => steps.push('slept'))
    .then(() => sleep(clock, 5))
    .then(() => steps.push('slept again'))
  await clock.advance(20)
  await sleeper

  assert.deepEqual(steps, ['timer 10', 'slept', 'slept again', 'timer 20'])
})

test('a cancelled timer does not fire, and cancelling twice or after it fired does nothing', async () => {
  const clock = new ManualClock(0)
  const fired: string[] = []
  const cancelled = clock.after(5, () => fired.push('cancelled'))
  const kept = clock.after(5, () => fired.push('kept'))
  cancelled.cancel()
  cancelled.cancel()
  await clock.advance(5)
  kept.cancel()

  assert.deepEqual([fired, clock.pending], [['kept'], 0])
})

test('zero, a negative wait and 3e9 ms are waits like any other, and NaN is refused', async () => {
  const clock = new ManualClock(0)
  const fired: number[] = []
  for (const ms of [0, -5, 3e9]) clock.after(ms, () => fired.push(ms))
  await clock.advance(0)
  assert.deepEqual(fired, [0, -5])

  await clock.advance(3e9)
  assert.deepEqual(fired, [0, -5, 3e9])
  assert.throws(() => clock.after(Number.NaN, () => {}), RangeError)
})

test('setting the wall clock back by an hour moves no timer and no duration', async () => {
  const clock = new ManualClock(10_000_000)
  const fired: number[] = []
  clock.after(100, () => fired.push(clock.now()))
  clock.set(6_400_000)
  assert.deepEqual([clock.now(), clock.monotonic()], [6_400_000, 0])

  await clock.advance(100)
  assert.deepEqual([fired, clock.monotonic()], [[6_400_100], 100])
})
