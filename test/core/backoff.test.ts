import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Backoff, backoffDelay, parseBackoff } from '../../src/core/backoff.ts'
import { defaults } from '../../src/core/defaults.ts'

const tenYearsMs = defaults.maxDelayMs
const delaysOf = (policy: Backoff, attempts: number, random = 0): readonly number[] =>
  Array.from({ length: attempts }, (_, index) => backoffDelay(policy, index + 1, random))

it('exponential backoff waits 1 s, 2 s, 4 s, 8 s when jitter is off, and stops growing at its max', () => {
  const policy: Backoff = { kind: 'exponential', baseMs: 1_000, maxMs: 5_000, jitter: false }
  expect(delaysOf(policy, 5)).toEqual([1_000, 2_000, 4_000, 5_000, 5_000])
})

it('linear backoff waits 2 s, 4 s, 6 s when jitter is off, and stops growing at its max', () => {
  const policy: Backoff = { kind: 'linear', baseMs: 2_000, maxMs: 7_000, jitter: false }
  expect(delaysOf(policy, 5)).toEqual([2_000, 4_000, 6_000, 7_000, 7_000])
})

it('the last delay of a list repeats', () => {
  expect(delaysOf({ kind: 'list', delaysMs: [10, 20, 30] }, 5)).toEqual([10, 20, 30, 30, 30])
})

it('a fixed backoff waits the same each time, and none waits 0 ms', () => {
  expect(delaysOf({ kind: 'fixed', delayMs: 700 }, 3)).toEqual([700, 700, 700])
  expect(delaysOf({ kind: 'none' }, 3)).toEqual([0, 0, 0])
})

it('jitter spreads a delay of 4 s over everything from 0 ms to 4,000 ms', () => {
  const policy: Backoff = { kind: 'exponential', baseMs: 1_000, maxMs: 60_000, jitter: true }
  expect(backoffDelay(policy, 3, 0)).toBe(0)
  expect(backoffDelay(policy, 3, 0.5)).toBe(2_000)
  expect(backoffDelay(policy, 3, 1 - 2 ** -53)).toBe(4_000)
})

it('the 5,000th attempt does not overflow', () => {
  const policy: Backoff = { kind: 'exponential', baseMs: 1_000, maxMs: 3_600_000, jitter: false }
  expect(backoffDelay(policy, 5_000, 0)).toBe(3_600_000)
})

it('a delay that only a hand-written row can hold is cut to ten years', () => {
  const absurd = Number.MAX_SAFE_INTEGER
  expect(backoffDelay({ kind: 'fixed', delayMs: absurd }, 1, 0)).toBe(tenYearsMs)
  expect(backoffDelay({ kind: 'list', delaysMs: [absurd] }, 9, 0)).toBe(tenYearsMs)
  expect(backoffDelay({ kind: 'linear', baseMs: absurd, maxMs: absurd, jitter: false }, 9, 0)).toBe(tenYearsMs)
})

it.each([0, -1, Number.NaN])('attempt %d is refused', (attempt) => {
  expect(() => backoffDelay({ kind: 'none' }, attempt, 0)).toThrow(RangeError)
})

const anyDelay = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const growing = fc.record({
  kind: fc.constantFrom('linear' as const, 'exponential' as const),
  baseMs: anyDelay,
  maxMs: anyDelay,
  jitter: fc.boolean(),
})
const anyPolicy: fc.Arbitrary<Backoff> = fc.oneof(
  fc.constant({ kind: 'none' as const }),
  fc.record({ kind: fc.constant('fixed' as const), delayMs: anyDelay }),
  fc.record({ kind: fc.constant('list' as const), delaysMs: fc.array(anyDelay, { minLength: 1 }) }),
  growing,
)
const anyAttempt = fc.integer({ min: 1, max: 2 ** 31 })
const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

it('every policy, attempt and random number gives a whole number of milliseconds within ten years', () => {
  fc.assert(
    fc.property(anyPolicy, anyAttempt, anyRandom, (policy, attempt, random) => {
      const delayMs = backoffDelay(policy, attempt, random)
      return Number.isSafeInteger(delayMs) && delayMs >= 0 && delayMs <= tenYearsMs
    }),
  )
})

it('a growing backoff never passes its own max, and jitter only shortens it', () => {
  fc.assert(
    fc.property(growing, anyAttempt, anyRandom, (policy, attempt, random) => {
      const plainMs = backoffDelay({ ...policy, jitter: false }, attempt, random)
      return plainMs <= policy.maxMs && backoffDelay({ ...policy, jitter: true }, attempt, random) <= plainMs
    }),
  )
})

it.each([
  ['30s', { kind: 'fixed', delayMs: 30_000 }],
  [2, { kind: 'fixed', delayMs: 2_000 }],
  [['10s', '1m', 5], { kind: 'list', delaysMs: [10_000, 60_000, 5_000] }],
  [{ kind: 'none' }, { kind: 'none' }],
  [
    { kind: 'fixed', delay: '1h' },
    { kind: 'fixed', delayMs: 3_600_000 },
  ],
  [
    { kind: 'list', delays: ['1s', '2s'] },
    { kind: 'list', delaysMs: [1_000, 2_000] },
  ],
  [{ kind: 'exponential' }, { kind: 'exponential', baseMs: 1_000, maxMs: 3_600_000, jitter: true }],
  [
    { kind: 'linear', base: '2s', max: '1m', jitter: false },
    { kind: 'linear', baseMs: 2_000, maxMs: 60_000, jitter: false },
  ],
])('%j is read as a backoff', (input, policy) => {
  expect(parseBackoff(input, 'backoff')).toEqual(policy)
})

it.each([
  [null, 'backoff must be a duration, a list of durations or an object with a kind'],
  [{}, 'backoff.kind must be one of none, fixed, list, linear, exponential'],
  [{ kind: 'constructor' }, 'backoff.kind must be one of'],
  [[], 'backoff must be a list of 1 to 100 durations'],
  [Array.from({ length: 101 }, () => 1), 'backoff must be a list of 1 to 100 durations'],
  [['1s', -1], 'backoff[1] must be a duration'],
  [{ kind: 'fixed' }, 'backoff.delay must be a duration'],
  [{ kind: 'exponential', base: Number.NaN }, 'backoff.base must be a duration'],
  [{ kind: 'exponential', max: '20000d' }, 'backoff.max must be at most 3650d, got "20000d"'],
  [{ kind: 'linear', jitter: 'yes' }, 'backoff.jitter must be true or false'],
  [{ kind: 'fixed', delay: '1s', jitter: true }, 'backoff of kind fixed has no "jitter"'],
])('%j is refused with its path', (input, message) => {
  expect(() => parseBackoff(input, 'backoff')).toThrow(
    expect.objectContaining({ code: 'DATA_INVALID', message: expect.stringContaining(message) }),
  )
})
