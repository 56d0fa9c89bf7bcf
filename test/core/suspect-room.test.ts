import { expect, it } from 'vitest'
import { SuspectRoom } from '../../src/core/suspect-room.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

/** Looks once a second at a suspect that has been waiting all the time; the seconds in which room was made. */
async function secondsOpen(room: SuspectRoom, clock: ManualClock, seconds: number): Promise<readonly number[]> {
  const open: number[] = []
  for (let second = 1; second <= seconds; second++) {
    await clock.advance(1_000)
    room.see(second * 1_000)
    if (room.isOpen) open.push(second)
  }
  return open
}

it('no job waits longer than 10 s, 20 s, 40 s for a suspect that cannot come: in between work goes on for as long', async () => {
  const clock = new ManualClock()
  const open = await secondsOpen(new SuspectRoom(clock, () => 0), clock, 150)
  const runs = open.filter((second, index) => open[index - 1] !== second - 1)
  const ends = open.filter((second, index) => open[index + 1] !== second + 1)
  expect(runs).toEqual([5, 25, 65, 145])
  expect(ends.slice(0, 3)).toEqual([14, 44, 104])
})

it('without a suspect, and for one that has waited less than 5 s, no room is made', async () => {
  const clock = new ManualClock()
  const room = new SuspectRoom(clock, () => 0)
  room.see(null)
  expect(room.isOpen).toBe(false)
  room.see(4_999)
  expect(room.isOpen).toBe(false)
  room.see(5_000)
  expect(room.isOpen).toBe(true)
  room.see(null)
  expect(room.isOpen).toBe(false)
})
