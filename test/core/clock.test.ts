import { expect, it } from 'vitest'
import { sleep, systemClock } from '../../src/core/clock.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

it.each([2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY])('a timer of %d ms does not fire at once', async (ms) => {
  let isFired = false
  const timer = systemClock.after(ms, () => {
    isFired = true
  })
  await new Promise<void>((resolve) => systemClock.after(5, resolve))
  timer.cancel()
  expect(isFired).toBe(false)
})

it('a timer of NaN ms is refused instead of firing at once', () => {
  expect(() => systemClock.after(Number.NaN, () => {})).toThrow(RangeError)
})

it('a timer of -5 ms fires in the next turn, not in this one', async () => {
  const order: string[] = []
  const fired = new Promise<void>((resolve) => {
    systemClock.after(-5, () => {
      order.push('timer')
      resolve()
    })
  })
  order.push('this turn')
  await fired
  expect(order).toEqual(['this turn', 'timer'])
})

it('a cancelled timer never fires, and cancelling twice does nothing', async () => {
  let isFired = false
  const timer = systemClock.after(0, () => {
    isFired = true
  })
  timer.cancel()
  timer.cancel()
  await new Promise<void>((resolve) => systemClock.after(5, resolve))
  expect(isFired).toBe(false)
})

it('a sleep of 10 s ends after 10 s, or at once when its signal aborts, and leaves no timer', async () => {
  const clock = new ManualClock()
  const controller = new AbortController()
  const ended: string[] = []
  void sleep(clock, 10_000).then(() => ended.push('whole'))
  void sleep(clock, 10_000, controller.signal).then(() => ended.push('cut short'))
  controller.abort()
  await clock.advance(0)
  expect(ended).toEqual(['cut short'])
  await sleep(clock, 10_000, controller.signal)
  await clock.advance(10_000)
  expect(ended).toEqual(['cut short', 'whole'])
  expect(clock.pending).toBe(0)
})

it('a fake clock that user code leaves behind does not stop the system clock', async () => {
  const { setTimeout, Date: real } = globalThis
  const before = systemClock.now()
  try {
    globalThis.setTimeout = (() => 0) as never
    globalThis.Date = class extends real {
      static override now = (): number => 0
    } as DateConstructor
    await new Promise<void>((resolve) => systemClock.after(1, resolve))
    expect(systemClock.now()).toBeGreaterThanOrEqual(before)
  } finally {
    Object.assign(globalThis, { setTimeout, Date: real })
  }
})

it.each(['now', 'monotonic'] as const)('%s goes on where a function of the clock itself is replaced', (name) => {
  const { now } = Date
  const before = systemClock[name]()
  const spied = performance.now
  try {
    Date.now = () => Number.NaN
    performance.now = () => Number.NaN
    expect(systemClock[name]()).toBeGreaterThanOrEqual(before)
  } finally {
    Date.now = now
    performance.now = spied
  }
})
