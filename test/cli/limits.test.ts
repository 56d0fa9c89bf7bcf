import { describe, expect, it } from 'vitest'
import { excessError, excesses, type Limits } from '../../src/cli/limits.ts'
import type { QueueCounts } from '../../src/core/store/admin.ts'

const now = 10_000_000

const queue = (name: string, parts: Partial<QueueCounts>): QueueCounts => ({
  ...{ queue: name, ready: 0, running: 0, scheduled: 0, failed: 0, oldestReadyAt: null, paused: false },
  ...parts,
})

const queues = [
  queue('mail', { ready: 9, failed: 1, oldestReadyAt: now - 423_000 }),
  queue('images', { ready: 1_200, failed: 4, oldestReadyAt: now - 1_000 }),
  queue('idle', {}),
]

const limits = (parts: Partial<Limits>): Limits => ({
  'max-ready': undefined,
  'max-wait': undefined,
  'max-failed': undefined,
  ...parts,
})

/** What is said of the limits that these queues exceed. */
const said = (parts: Partial<Limits>, counts: readonly QueueCounts[] = queues): readonly string[] =>
  excesses(counts, limits(parts), now).map((excess) => excessError(excess).message)

describe('limits', () => {
  it.each<[Partial<Limits>, string[]]>([
    [{}, []],
    [{ 'max-ready': 1_209, 'max-wait': 423_000, 'max-failed': 5 }, []],
    [{ 'max-ready': 1_208 }, ['--max-ready allows 1,208: 1,209 jobs are ready (1,200 on images)']],
    [{ 'max-wait': 300_000 }, ['--max-wait allows 5m: a job on mail has been ready for 7m 3s']],
    [{ 'max-failed': 0 }, ['--max-failed allows 0: 5 jobs have failed (4 on images)']],
    [
      { 'max-ready': 0, 'max-failed': 4 },
      [
        '--max-ready allows 0: 1,209 jobs are ready (1,200 on images)',
        '--max-failed allows 4: 5 jobs have failed (4 on images)',
      ],
    ],
  ])('%j of 1,209 ready, 5 failed and a wait of 7m 3s: %j', (parts, sentences) => {
    expect(said(parts)).toEqual(sentences)
  })

  it('hold where there is no queue at all', () => {
    expect(said({ 'max-ready': 0, 'max-wait': 0, 'max-failed': 0 }, [])).toEqual([])
  })

  it('speak of one job in the singular', () => {
    const one = [queue('mail', { ready: 1, failed: 1 })]
    expect(said({ 'max-ready': 0, 'max-failed': 0 }, one)).toEqual([
      '--max-ready allows 0: 1 job is ready (1 on mail)',
      '--max-failed allows 0: 1 job has failed (1 on mail)',
    ])
  })

  it('a job that is ready by a clock ahead of ours has waited for nothing', () => {
    expect(said({ 'max-wait': 0 }, [queue('mail', { ready: 1, oldestReadyAt: now + 5_000 })])).toEqual([])
  })
})
