import { expect, it } from 'vitest'
import { LoopBeating } from '../../src/core/beat.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

/** Beats every 10 s that end when the test says so; `sent` are the moments at which they were sent. */
function beatsHeldOpen() {
  const clock = new ManualClock()
  const sent: number[] = []
  const open: (() => void)[] = []
  const beat = (): Promise<void> => {
    sent.push(clock.monotonic())
    const { promise, resolve } = Promise.withResolvers<void>()
    open.push(resolve)
    return promise
  }
  const beating = new LoopBeating({ clock, everyMs: 10_000, beat })
  return { clock, sent, beating, answer: () => open.shift()?.() }
}

it('beats come every 10 s, the first one after 10 s', async () => {
  const { clock, sent, beating, answer } = beatsHeldOpen()
  for (const _ of [1, 2, 3]) {
    await clock.advance(10_000)
    answer()
  }
  await beating.stop()
  expect(sent).toEqual([10_000, 20_000, 30_000])
})

it('a beat that hangs for 25 s is not joined by a second one; the next comes 10 s after its end', async () => {
  const { clock, sent, beating, answer } = beatsHeldOpen()
  await clock.advance(35_000)
  answer()
  await clock.advance(10_000)
  answer()
  await beating.stop()
  expect(sent).toEqual([10_000, 45_000])
})

it('beatNow sends one at once, and the interval starts again from there', async () => {
  const { clock, sent, beating, answer } = beatsHeldOpen()
  await clock.advance(4_000)
  beating.beatNow()
  await clock.advance(0)
  answer()
  await clock.advance(9_999)
  expect(sent).toEqual([4_000])
  await clock.advance(1)
  expect(sent).toEqual([4_000, 14_000])
  answer()
  await beating.stop()
})

it('beatNow while a beat is under way sends another one after it, and still one a 10 s interval afterwards', async () => {
  const { clock, sent, beating, answer } = beatsHeldOpen()
  await clock.advance(10_000)
  beating.beatNow()
  await clock.advance(1_000)
  expect(sent).toEqual([10_000])
  answer()
  await clock.advance(0)
  answer()
  await clock.advance(10_000)
  answer()
  await clock.advance(10_000)
  answer()
  await beating.stop()
  expect(sent).toEqual([10_000, 11_000, 21_000, 31_000])
})

it('stop waits for the beat that is under way, lets no other follow, and leaves no timer', async () => {
  const { clock, sent, beating, answer } = beatsHeldOpen()
  await clock.advance(10_000)
  beating.beatNow()
  let isStopped = false
  const stopped = beating.stop().then(() => {
    isStopped = true
  })
  await clock.advance(60_000)
  expect(isStopped).toBe(false)
  answer()
  await stopped
  expect(sent).toEqual([10_000])
  expect(clock.pending).toBe(0)
})
