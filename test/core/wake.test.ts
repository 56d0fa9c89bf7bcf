import { expect, it } from 'vitest'
import { Wake } from '../../src/core/wake.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

function aWake() {
  const clock = new ManualClock()
  const wake = new Wake(clock)
  const woken: string[] = []
  const wait = (name: string, ms: number | null): void => void wake.wait(ms).then(() => woken.push(name))
  return { clock, wake, woken, wait }
}

it('a wait of 500 ms ends after 500 ms', async () => {
  const { clock, woken, wait } = aWake()
  wait('a', 500)
  await clock.advance(499)
  expect(woken).toEqual([])
  await clock.advance(1)
  expect(woken).toEqual(['a'])
})

it('a ring ends a wait at once and leaves no timer behind', async () => {
  const { clock, wake, woken, wait } = aWake()
  wait('a', 500)
  wake.ring()
  await clock.advance(0)
  expect(woken).toEqual(['a'])
  expect(clock.pending).toBe(0)
})

it('a ring while nobody waits ends the next wait, and only that one', async () => {
  const { clock, wake, woken, wait } = aWake()
  wake.ring()
  wake.ring()
  wait('first', null)
  await clock.advance(0)
  wait('second', null)
  await clock.advance(1_000_000)
  expect(woken).toEqual(['first'])
})

it('a wait that ran out does not swallow the next ring', async () => {
  const { clock, wake, woken, wait } = aWake()
  wait('a', 10)
  await clock.advance(10)
  wake.ring()
  wait('b', null)
  await clock.advance(0)
  expect(woken).toEqual(['a', 'b'])
})
