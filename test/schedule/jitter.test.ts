import { expect, it } from 'vitest'
import { jitterOf } from '../../src/schedule/jitter.ts'

it('the jitter of a name is the same in every process and version', () => {
  expect([jitterOf('nightly-rollup', 600_000), jitterOf('blåbær', 600_000)]).toEqual([360_234, 260_396])
})

it('five hundred names spread over ten minutes: each minute gets some, none gets a fifth', () => {
  const perMinute = Array.from({ length: 10 }, () => 0)
  for (let number = 0; number < 500; number++) {
    const minute = Math.floor(jitterOf(`schedule-${number}`, 600_000) / 60_000)
    perMinute[minute] = (perMinute[minute] ?? 0) + 1
  }
  expect(perMinute).toHaveLength(10)
  expect(Math.min(...perMinute)).toBeGreaterThan(25)
  expect(Math.max(...perMinute)).toBeLessThan(100)
})

it('without a bound there is no jitter', () => {
  expect(jitterOf('nightly-rollup', 0)).toBe(0)
})
