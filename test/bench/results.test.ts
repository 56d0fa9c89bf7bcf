import { expect, test } from 'vitest'
import { linesOf, type Outcome } from '../../bench/results.ts'

const subject = { measure: 'add-one', title: 'add', figure: { name: 'rate', unit: 'jobs/s', better: 'more' } } as const
const latency = { measure: 'pick-up', title: 'pick-up', figure: { name: 'p50', unit: 'ms', better: 'less' } } as const

function outcome(
  contestant: string,
  round: number,
  figures: Outcome['figures'],
  parts: Partial<Outcome> = {},
): Outcome {
  const role = contestant === 'khepri' || contestant === 'limit' ? contestant : 'peer'
  const isRival = role === 'peer'
  return { round, measure: 'any', store: 'sqlite', contestant, role, isRival, figures, error: null, ...parts }
}

test('a ratio is taken within its own round, and the median of the rounds is shown', () => {
  const [khepri] = linesOf(subject, [
    outcome('khepri', 1, { rate: 100 }),
    outcome('limit', 1, { rate: 200 }),
    outcome('khepri', 2, { rate: 30 }),
    outcome('limit', 2, { rate: 40 }),
    outcome('khepri', 3, { rate: 9 }),
    outcome('limit', 3, { rate: 10 }),
  ])
  expect(khepri).toMatchObject({ median: 30, min: 9, max: 100, toLimit: 0.75 })
})

test('the best peer is the fastest where more is better and the quickest where less is', () => {
  const [rate] = linesOf(subject, [
    outcome('khepri', 1, { rate: 100 }),
    outcome('slow', 1, { rate: 10 }),
    outcome('fast', 1, { rate: 50 }),
  ])
  const [p50] = linesOf(latency, [
    outcome('khepri', 1, { p50: 4 }),
    outcome('slow', 1, { p50: 80 }),
    outcome('fast', 1, { p50: 8 }),
  ])
  expect([rate?.toPeer, p50?.toPeer]).toEqual([2, 0.5])
})

test('a peer that may lose its adds in a power cut is shown and not compared with', () => {
  const lines = linesOf(subject, [
    outcome('khepri', 1, { rate: 100 }),
    outcome('careless', 1, { rate: 1_000 }, { isRival: false }),
    outcome('durable', 1, { rate: 50 }),
  ])
  expect(lines.map(({ contestant, toPeer }) => [contestant, toPeer])).toEqual([
    ['khepri', 2],
    ['careless', 20],
    ['durable', 1],
  ])
})

test('a round that failed counts in no median and keeps its error', () => {
  const [khepri] = linesOf(subject, [
    outcome('khepri', 1, null, { error: 'no job ran within 10 ms' }),
    outcome('khepri', 2, { rate: 7 }),
  ])
  expect(khepri).toMatchObject({ median: 7, min: 7, max: 7, errors: ['no job ran within 10 ms'] })
})
