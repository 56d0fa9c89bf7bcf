import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatDuration, parseDuration } from '../../src/core/duration.ts'

const tenYearsMs = 3_650 * 86_400_000

it.each([
  ['250ms', 250],
  ['30s', 30_000],
  ['1.5s', 1_500],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['7d', 604_800_000],
  ['1w', 604_800_000],
  [' 30s ', 30_000],
  ['30', 30_000],
  [30, 30_000],
  [0.25, 250],
  [0, 0],
  ['0', 0],
])('%j is %d ms', (input, ms) => {
  expect(parseDuration(input, 'delay', tenYearsMs)).toBe(ms)
})

it.each([
  [-1],
  [Number.NaN],
  [Number.POSITIVE_INFINITY],
  ['-5s'],
  ['abc'],
  [''],
  ['5 minutes'],
  ['5M'],
  ['1e3s'],
  ['5s5s'],
  ['٥s'],
  [null],
  [undefined],
  [true],
  [[]],
  [{}],
  [10n],
  [Symbol('x')],
  [new Date(0)],
])('%s is refused as a duration', (input) => {
  expect(() => parseDuration(input, 'delay', tenYearsMs)).toThrow(
    expect.objectContaining({
      code: 'DATA_INVALID',
      message: expect.stringContaining('delay must be a duration such as "30s", "5m" or "2h"'),
    }),
  )
})

it.each([['3651d'], [1e300], ['9'.repeat(400)]])('%s is refused as longer than ten years', (input) => {
  expect(() => parseDuration(input, 'delay', tenYearsMs)).toThrow(
    expect.objectContaining({ code: 'DATA_INVALID', message: expect.stringContaining('delay must be at most 3650d') }),
  )
})

it.each([
  [0, '0ms'],
  [83, '83ms'],
  [999.6, '1s'],
  [1_210, '1.21s'],
  [30_000, '30s'],
  [59_999, '1m'],
  [60_000, '1m'],
  [90_000, '1m 30s'],
  [5_400_000, '1h 30m'],
  [86_400_000, '1d'],
  [90_000_000, '1d 1h'],
  [tenYearsMs, '3650d'],
])('%d ms is shown as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

it('what is shown of whole milliseconds below one second, or of whole minutes, is read back the same', () => {
  const readBack = (ms: number): number =>
    formatDuration(ms)
      .split(' ')
      .reduce((sum, part) => sum + parseDuration(part, 'part', tenYearsMs), 0)
  fc.assert(fc.property(fc.integer({ min: 0, max: 999 }), (ms) => readBack(ms) === ms))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_439 }), (minutes) => readBack(minutes * 60_000) === minutes * 60_000),
  )
})
