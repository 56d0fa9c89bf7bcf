import { expect, it } from 'vitest'
import { compareIn, emptyTally, type Window } from './compare.ts'
import { planted } from './planted.ts'
import { run } from './run.ts'

const hourMs = 3_600_000

/** A machine that many share: nothing here waits for time to pass. */
const timeoutMs = 240_000

it(
  'at a change of every zone that changed since 2000, more than 5,000 slots are those of a clock that was watched minute by minute',
  async () => {
    const figures = await run('sample', () => {})
    expect(figures['zones that changed since 2000']).toBeGreaterThan(200)
    expect(figures['(expression, zone, instant) triples']).toBeGreaterThan(5_000)
    expect(figures['of them for times in a gap']).toBeGreaterThan(30)
    expect(figures['of them at a time that occurs twice']).toBeGreaterThan(30)
  },
  timeoutMs,
)

const osloChanges: readonly Window[] = ['2026-03-29T01:00Z', '2026-10-25T01:00Z'].map((at) => ({
  zone: 'Europe/Oslo',
  at: Date.parse(at),
  beforeMs: 6 * hourMs,
  afterMs: 26 * hourMs,
}))

it.each(Object.entries(planted))('a cadence that %s is found out at two changes of Oslo', (_, subject) => {
  const tally = emptyTally()
  for (const window of osloChanges) compareIn(window, { expressions: 150, instants: 2 }, 1, tally, subject)
  expect(tally.triples).toBe(600)
  expect(tally.differences.length).toBeGreaterThan(0)
})

it('the right cadence has no difference there', () => {
  const tally = emptyTally()
  for (const window of osloChanges) compareIn(window, { expressions: 150, instants: 2 }, 1, tally)
  expect(tally).toMatchObject({ triples: 600, differences: [] })
})
