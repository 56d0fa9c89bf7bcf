import { expect, it } from 'vitest'
import { formatRate, Progress } from '../../src/cli/progress.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

function onPaper(mode: 'bar' | 'lines' | 'none') {
  const clock = new ManualClock()
  const written: string[] = []
  const progress = new Progress({
    label: 'dispatching',
    unit: 'line',
    mode,
    write: (text) => written.push(text),
    clock,
  })
  return { clock, progress, written }
}

it('a bar shows the count, the share, the rate and the time left', async () => {
  const { clock, progress, written } = onPaper('bar')
  progress.update(0, 0)
  await clock.advance(3_599)
  progress.update(481_000, 0.48)
  await clock.advance(1)
  expect(written.at(-1)).toBe('\rdispatching  ████████████░░░░░░░░░░░░░  481,000 lines  48%  134k/s  eta 4s\u001b[K')
  progress.end()
})

it('work that ends within 200 ms shows nothing', async () => {
  const { clock, progress, written } = onPaper('bar')
  progress.update(10, 0.5)
  await clock.advance(199)
  progress.end()
  await clock.advance(10_000)
  expect(written).toEqual([])
  expect(clock.pending).toBe(0)
})

it('the bar is taken away at the end', async () => {
  const { clock, progress, written } = onPaper('bar')
  await clock.advance(300)
  progress.end()
  expect(written.at(-1)).toBe('\r\u001b[K')
})

it('without a terminal it is one line every 5 s, with no bar and no escape codes', async () => {
  const { clock, progress, written } = onPaper('lines')
  progress.update(1_000, 0.1)
  await clock.advance(12_000)
  progress.end()
  expect(written).toEqual([
    'dispatching  1,000 lines  10%  200/s  eta 45s\n',
    'dispatching  1,000 lines  10%  100/s  eta 1m 30s\n',
  ])
})

it('quiet work shows nothing, however long it takes', async () => {
  const { clock, progress, written } = onPaper('none')
  progress.update(5)
  await clock.advance(60_000)
  progress.end()
  expect(written).toEqual([])
})

it('a whole that is not known leaves the bar, the share and the time left out', async () => {
  const { clock, progress, written } = onPaper('bar')
  progress.update(50)
  await clock.advance(200)
  progress.end()
  expect(written[0]).toBe('\rdispatching  50 lines  250/s\u001b[K')
})

it.each([
  [980, '980'],
  [9_500, '9.5k'],
  [131_578, '132k'],
  [1_200_000, '1.2M'],
])('%d a second is written %s', (count, text) => expect(formatRate(count, 1_000)).toBe(text))
