import { stripVTControlCharacters } from 'node:util'
import { expect, it } from 'vitest'
import { describe as inWords } from '../../src/cli/lines.ts'
import { Screen } from '../../src/cli/screen.ts'
import { paintFor } from '../../src/cli/style.ts'
import type { Events } from '../../src/core/events.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

const facts = { id: 1042, job: 'send-welcome', queue: 'default', attempt: 1, tries: 3 }
const missing = { type: 'Error', message: "ENOENT: no such file 'in/7.png'", stack: null }

/** A screen on paper: what it wrote, in order. */
function onPaper({ columns = 120, footer = '', color = false } = {}) {
  const clock = new ManualClock()
  const written: string[] = []
  const screen = new Screen({
    out: (text) => written.push(text),
    err: (text) => written.push(`2| ${text}`),
    columns: () => columns,
    paint: paintFor(color),
    timeOf: () => '14:02:11',
    footer: () => footer,
    widths: { queue: 7 },
    clock,
  })
  const show = <Name extends keyof Events>(name: Name, event: Events[Name]): void => {
    const shown = inWords(name, event, { version: '0.1.0', database: 'sqlite:./khepri.db' })
    if (shown) screen.show(shown, clock.now())
  }
  return { clock, screen, show, text: () => written.join(''), written }
}

it('lines are aligned: time, id, job, queue, try, dots, duration, verb, then the rest', () => {
  const { screen, show, text } = onPaper()
  show('job.retry', {
    ...facts,
    id: 4,
    job: 'resize-image',
    queue: 'high',
    tries: 5,
    ms: 1_210,
    delayMs: 10_000,
    error: missing,
  })
  show('job.done', { ...facts, ms: 83, waitMs: 1 })
  screen.close()
  expect(text()).toBe(
    "14:02:11  4        resize-image  high     try 1/5 ................  1.21s  RETRY in 10s  ENOENT: no such file 'in/7.png'\n" +
      '14:02:11  1042     send-welcome  default  try 1/3 ................   83ms  DONE\n',
  )
})

it('a column grows with a longer name and never narrows again', () => {
  const { screen, show, text } = onPaper()
  show('job.done', { ...facts, job: 'a-name-of-25-characters-x', ms: 1, waitMs: 0 })
  show('job.done', { ...facts, ms: 1, waitMs: 0 })
  screen.close()
  const [long, short] = text().split('\n')
  expect(short?.indexOf('default')).toBe(long?.indexOf('default'))
})

it('an error that does not fit stands on a line of its own, cut to the 100 columns and its loss marked', () => {
  const { screen, show, text } = onPaper({ columns: 100 })
  show('job.failed', { ...facts, ms: 1, reason: 'tries', error: { ...missing, message: 'x'.repeat(300) } })
  screen.close()
  const [line, error] = text().split('\n')
  expect(line).toMatch(/FAILED$/)
  expect(error).toBe(`          ${'x'.repeat(89)}…`)
})

it('80 columns do not cost a RETRY its verb, its delay, its error or its colour', () => {
  const { screen, show, text } = onPaper({ columns: 80, color: true })
  show('job.retry', { ...facts, queue: 'critical', ms: 1_210, delayMs: 10_000, error: missing })
  screen.close()
  expect(text()).toContain('\u001b[33mRETRY\u001b[39m in 10s')
  const lines = stripVTControlCharacters(text()).trimEnd().split('\n')
  expect(lines).toEqual([
    '14:02:11  1042     send-welcome  critical  try 1/3 ........  1.21s  RETRY in 10s',
    "          ENOENT: no such file 'in/7.png'",
  ])
})

it('50 columns do not cost a FAILED its verb or its error', () => {
  const { screen, show, text } = onPaper({ columns: 50 })
  show('job.failed', { ...facts, job: 'a-job-with-a-long-name', ms: 83, reason: 'tries', error: missing })
  screen.close()
  expect(text().trimEnd().split('\n')).toEqual([
    '14:02:11  1042     a-job-with-a-long-name  default',
    '          try 1/3    83ms  FAILED',
    "          ENOENT: no such file 'in/7.png'",
  ])
})

it('60 DONE lines of one job in a second become 50 and one that counts the other 10', async () => {
  const { clock, screen, show, text } = onPaper()
  for (let index = 0; index < 60; index++) show('job.done', { ...facts, id: index, ms: 10, waitMs: 0 })
  await clock.advance(1_000)
  screen.close()
  const lines = text().trimEnd().split('\n')
  expect(lines).toHaveLength(51)
  expect(lines[50]).toBe('14:02:11  ×10      send-welcome  default  on average .............   10ms  DONE')
})

it('folded lines come before the sentence that sums them up', () => {
  const { screen, show, text } = onPaper()
  for (let index = 0; index < 60; index++) show('job.done', { ...facts, id: index, ms: 10, waitMs: 0 })
  show('worker.stopped', {
    worker: 'w',
    reason: 'empty',
    done: 60,
    retried: 0,
    failed: 0,
    released: 0,
    cancelled: 0,
    lost: 0,
    abandoned: 0,
    unwritten: [],
    ms: 900,
  })
  screen.close()
  expect(text().trimEnd().split('\n').at(-1)).toBe('stopped: 60 done, 0 retried, 0 failed in 900ms')
})

it('RETRY and FAILED never fold, however many', async () => {
  const { clock, screen, show, text } = onPaper()
  for (let index = 0; index < 60; index++) show('job.retry', { ...facts, id: index, ms: 1, delayMs: 1, error: missing })
  for (let index = 0; index < 60; index++)
    show('job.failed', { ...facts, id: index, ms: 1, reason: 'tries', error: missing })
  await clock.advance(1_000)
  screen.close()
  expect(text().match(/RETRY/g)).toHaveLength(60)
  expect(text().match(/FAILED/g)).toHaveLength(60)
})

it('after a quiet second every DONE has its own line again', async () => {
  const { clock, screen, show, text } = onPaper()
  for (let index = 0; index < 60; index++) show('job.done', { ...facts, id: index, ms: 10, waitMs: 0 })
  await clock.advance(2_000)
  show('job.done', { ...facts, id: 777, ms: 10, waitMs: 0 })
  screen.close()
  expect(text()).toMatch(/\n14:02:11 {2}777 .* DONE\n$/)
})

it('the footer is drawn below the lines, taken away before the next, and gone at the end', async () => {
  const { clock, screen, show, text } = onPaper({ footer: '  3 running   ^C stops' })
  show('job.done', { ...facts, id: 1, ms: 10, waitMs: 0 })
  await clock.advance(0)
  show('job.done', { ...facts, id: 2, ms: 10, waitMs: 0 })
  screen.close()
  const [first, second, ...rest] = text().split('\r\u001b[K')
  expect(first).toMatch(/^14:02:11 {2}1 .*DONE\n {2}3 running {3}\^C stops$/)
  expect(second).toMatch(/^14:02:11 {2}2 .*DONE\n$/)
  expect(rest).toEqual([])
})

it('sentences for stderr go there, between the lines around them', () => {
  const { screen, show, written } = onPaper()
  show('job.done', { ...facts, ms: 10, waitMs: 0 })
  show('worker.draining', { worker: 'w', reason: 'signal', running: 2 })
  show('job.done', { ...facts, ms: 10, waitMs: 0 })
  screen.close()
  expect(written.map((text) => text.slice(0, 12))).toEqual(['14:02:11  10', '2| stopping:', '14:02:11  10'])
})

it('colour adds codes and no characters', () => {
  const plain = onPaper()
  const coloured = onPaper({ color: true })
  for (const { screen, show } of [plain, coloured]) {
    show('job.failed', { ...facts, ms: 10, reason: 'tries', error: missing })
    screen.close()
  }
  expect(coloured.text()).not.toBe(plain.text())
  expect(stripVTControlCharacters(coloured.text())).toBe(plain.text())
})
