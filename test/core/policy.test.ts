import fc from 'fast-check'
import { expect, it } from 'vitest'
import { NonRetryable, nonRetryable, Release, RetryAfter } from '../../src/core/job.ts'
import { type AttemptTerms, callsFailedHook, decide, type Outcome, type Verdict } from '../../src/core/policy.ts'

const boom = new Error('boom')
const fixed = { kind: 'fixed', delayMs: 7_000 } as const
const terms = (attempt: number, tries: number): AttemptTerms => ({ attempt, tries, backoff: fixed })
const threw = (error: unknown): Outcome => ({ kind: 'threw', error })

it('a handler that returns completes its job', () => {
  expect(decide({ kind: 'done' }, terms(1, 1), 0)).toEqual({ kind: 'complete' })
})

it('a handler that throws on attempt 1 of 3 and 2 of 3 is retried after its backoff', () => {
  const retry: Verdict = { kind: 'retry', delayMs: 7_000, error: boom }
  expect(decide(threw(boom), terms(1, 3), 0)).toEqual(retry)
  expect(decide(threw(boom), terms(2, 3), 0)).toEqual(retry)
})

it('a handler that throws on attempt 3 of 3 fails with that error', () => {
  expect(decide(threw(boom), terms(3, 3), 0)).toEqual({ kind: 'fail', reason: 'tries', error: boom })
})

it('with tries 1 the first error is the last', () => {
  expect(decide(threw(boom), terms(1, 1), 0)).toEqual({ kind: 'fail', reason: 'tries', error: boom })
})

it('an attempt beyond tries fails, it does not run on', () => {
  expect(decide(threw(boom), terms(9, 3), 0)).toEqual({ kind: 'fail', reason: 'tries', error: boom })
})

it('the retry of attempt n waits for what the backoff says of attempt n', () => {
  const backoff = { kind: 'exponential', baseMs: 1_000, maxMs: 60_000, jitter: false } as const
  const delays = [1, 2, 3].map((attempt) => decide(threw(boom), { attempt, tries: 9, backoff }, 0))
  expect(delays).toMatchObject([{ delayMs: 1_000 }, { delayMs: 2_000 }, { delayMs: 4_000 }])
})

it('the random number reaches the jitter', () => {
  const backoff = { kind: 'exponential', baseMs: 1_000, maxMs: 60_000, jitter: true } as const
  expect(decide(threw(boom), { attempt: 1, tries: 9, backoff }, 0.25)).toMatchObject({ delayMs: 250 })
})

it.each([
  ['the class', new NonRetryable('no such user')],
  ['a branded error', nonRetryable(new TypeError('no such user'))],
  ['the brand of another copy', Object.assign(new Error('x'), { [Symbol.for('khepri.nonRetryable')]: true })],
  ['a branded object that is no error', { [Symbol.for('khepri.nonRetryable')]: true }],
])('NonRetryable as %s fails at once on attempt 1 of 5', (_, error) => {
  expect(decide(threw(error), terms(1, 5), 0)).toEqual({ kind: 'fail', reason: 'refused', error })
})

it.each([
  ['2m', 120_000],
  [0, 0],
  [1.5, 1_500],
  ['0s', 0],
] as const)('RetryAfter(%j) outranks the backoff', (delay, delayMs) => {
  expect(decide(threw(new RetryAfter(delay)), terms(1, 3), 0)).toMatchObject({ kind: 'retry', delayMs })
})

it.each([['soon'], [-1], [Number.NaN], [Number.POSITIVE_INFINITY], ['9999999d'], [null], [{}], [10n]])(
  'RetryAfter(%s) is a failed attempt with the default delay',
  (delay) => {
    const error = new RetryAfter(delay as unknown as string)
    expect(decide(threw(error), terms(1, 3), 0)).toEqual({ kind: 'retry', delayMs: 7_000, error })
  },
)

it('RetryAfter uses an attempt: on the last one the job fails', () => {
  const error = new RetryAfter('2m')
  expect(decide(threw(error), terms(3, 3), 0)).toEqual({ kind: 'fail', reason: 'tries', error })
})

it('release without a delay gives back for 1 s and costs nothing, also on the last attempt', () => {
  const verdict = { kind: 'release', delayMs: 1_000, why: 'asked' }
  expect(decide({ kind: 'released', delay: null }, terms(1, 1), 0)).toEqual(verdict)
  expect(decide({ kind: 'released', delay: null }, terms(3, 3), 0)).toEqual(verdict)
})

it.each([
  ['10m', 600_000],
  [0, 0],
] as const)('release(%j) gives back for that long', (delay, delayMs) => {
  expect(decide({ kind: 'released', delay }, terms(1, 1), 0)).toEqual({ kind: 'release', delayMs, why: 'asked' })
})

it.each([['soon'], [-1], [Number.NaN], [{}], [10n], [new Date(0)]])(
  'release(%s) is a failed attempt that says so',
  (delay) => {
    const message = expect.stringContaining('the delay of release() must be a duration')
    const error = expect.objectContaining({ code: 'DATA_INVALID', message })
    expect(decide({ kind: 'released', delay }, terms(1, 2), 0)).toEqual({ kind: 'retry', delayMs: 7_000, error })
    expect(decide({ kind: 'released', delay }, terms(2, 2), 0)).toEqual({ kind: 'fail', reason: 'tries', error })
  },
)

it('an interrupted attempt and one without its module go back at no cost and keep their place', () => {
  expect(decide({ kind: 'interrupted' }, terms(3, 3), 0)).toEqual({
    kind: 'release',
    delayMs: null,
    why: 'interrupted',
  })
  const unloadable = { kind: 'unloadable', source: './jobs/a.ts', message: 'no' } as const
  expect(decide(unloadable, terms(3, 3), 0)).toEqual({ kind: 'release', delayMs: null, why: 'module' })
})

it.each(['poison', 'unknown', 'crashes'] as const)('a job refused as %s fails at once on attempt 1 of 5', (reason) => {
  const outcome: Outcome = { kind: 'refused', reason, error: boom }
  expect(decide(outcome, terms(1, 5), 0)).toEqual({ kind: 'fail', reason, error: boom })
})

it('nothing is written for a job that somebody else holds', () => {
  expect(decide({ kind: 'lost' }, terms(1, 1), 0)).toEqual({ kind: 'drop' })
})

it('the failed() hook follows tries, refused and crashes, and not poison and unknown', () => {
  const fail = (reason: 'tries' | 'refused' | 'crashes' | 'poison' | 'unknown'): Verdict => ({
    kind: 'fail',
    reason,
    error: boom,
  })
  const hooked = (['tries', 'refused', 'crashes', 'poison', 'unknown'] as const).filter((reason) =>
    callsFailedHook(fail(reason)),
  )
  expect(hooked).toEqual(['tries', 'refused', 'crashes'])
  expect(callsFailedHook({ kind: 'complete' })).toBe(false)
})

const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('do not look')
    },
  },
)

it.each([
  ['a proxy that throws', hostile],
  ['null', null],
  ['undefined', undefined],
  ['a text', 'boom'],
  ['a symbol', Symbol('boom')],
  ['a function', () => 1],
  ['a Release that was caught and kept', new Release(null)],
])('%s may be thrown like any error', (_, thrown) => {
  expect(decide(threw(thrown), terms(1, 2), 0)).toMatchObject({ kind: 'retry', delayMs: 7_000 })
  expect(decide(threw(thrown), terms(2, 2), 0)).toMatchObject({ kind: 'fail', reason: 'tries' })
})

it('whatever is thrown, attempts never exceed tries and delays are valid', () => {
  const attempt = fc.integer({ min: 1, max: 20 })
  const thrown = fc.oneof(
    fc.anything(),
    fc.anything().map((delay) => new RetryAfter(delay as string)),
  )
  fc.assert(
    fc.property(thrown, attempt, attempt, (error, ran, tries) => {
      const verdict = decide(threw(error), terms(ran, tries), 0.5)
      if (verdict.kind === 'retry') return ran < tries && Number.isSafeInteger(verdict.delayMs) && verdict.delayMs >= 0
      return verdict.kind === 'fail' && ran >= tries
    }),
  )
})
