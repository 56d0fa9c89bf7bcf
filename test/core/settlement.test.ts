import { expect, it } from 'vitest'
import type { Attempt } from '../../src/core/attempt.ts'
import { settlementOf } from '../../src/core/settlement.ts'
import { Workshop } from './support/workshop.ts'

const attempt = {
  ...{ reservation: { id: 7, fence: 3 }, attempt: 2, startedAt: 1_000, ms: 83, output: 'last\0line' },
} as unknown as Attempt
const keeping = { keepDoneMs: null }

it('every settlement carries the id and the fence of its reservation', () => {
  const error = new Error('boom')
  expect(settlementOf(attempt, { kind: 'complete' }, 'alpha', keeping)).toEqual({
    id: 7,
    fence: 3,
    kind: 'complete',
    keep: false,
  })
  expect(settlementOf(attempt, { kind: 'complete' }, 'alpha', { keepDoneMs: 0 })).toMatchObject({ keep: true })
  expect(settlementOf(attempt, { kind: 'release', delayMs: null, why: 'asked' }, 'alpha', keeping)).toEqual({
    id: 7,
    fence: 3,
    kind: 'release',
    delayMs: null,
  })
  expect(settlementOf(attempt, { kind: 'retry', delayMs: 5, error }, 'alpha', keeping)).toMatchObject({
    id: 7,
    fence: 3,
    kind: 'retry',
    delayMs: 5,
  })
  expect(settlementOf(attempt, { kind: 'fail', reason: 'tries', error }, 'alpha', keeping)).toMatchObject({
    id: 7,
    fence: 3,
    kind: 'fail',
    reason: 'tries',
  })
})

it('a failed attempt is recorded with its number, worker, times, error and cleaned output', () => {
  const settlement = settlementOf(
    attempt,
    { kind: 'fail', reason: 'tries', error: new TypeError('boom') },
    'web1-4121',
    keeping,
  )
  expect(settlement).toMatchObject({
    attempt: {
      ...{ attempt: 2, worker: 'web1-4121', startedAt: 1_000, endedAt: 1_083, output: 'last\ufffdline' },
      ...{ errorType: 'TypeError', message: 'boom', stack: expect.stringContaining('TypeError: boom') },
    },
  })
})

it('an error of a megabyte with NUL and lone surrogates is recorded cut and clean', async () => {
  const shop = await Workshop.open({
    loud: () => {
      throw new Error(`\0\ud800${'x'.repeat(1_000_000)}`)
    },
  })
  const id = await shop.add('loud')
  await shop.workUntilEmpty()
  const [record] = shop.attempts(id)
  expect(record?.message).toHaveLength(8_192)
  expect(record?.message.startsWith('\ufffd\ufffdxxx')).toBe(true)
  expect(record?.stack?.length).toBeLessThanOrEqual(16_384)
})
