import { describe, expect, it } from 'vitest'
import { snapshots } from '../../src/cli/snapshots.ts'
import { paintFor } from '../../src/cli/style.ts'
import { firstView, press } from '../../src/cli/watch-keys.ts'
import { frameLines, sparkline, targetsOf, type View } from '../../src/cli/watch-view.ts'
import { KhepriError } from '../../src/core/errors.ts'
import type { Admin } from '../../src/core/store/admin.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

const queue = (name: string, paused = false) => ({
  ...{ queue: name, ready: 3, running: 1, scheduled: 0, failed: 1, oldestReadyAt: 1_000, paused },
})

const failure = (id: number, error = 'it broke') => ({
  ...{ id, fence: 1, job: 'note', queue: 'mail', priority: 0, failures: 1, crashes: 0, enqueuedAt: 0, failedAt: 2_000 },
  ...{ reason: 'tries' as const, errorType: 'Error', error, uniqueKey: null, envelope: '{}' },
})

const snapshot = {
  ...{ at: 61_000, workers: [], fresh: [] },
  queues: [queue('high'), queue('mail', true)],
  running: [{ id: 7, job: 'resize', queue: 'high', holder: { worker: 1, name: 'web1' }, runningMs: 12_000 }],
  failures: [failure(4, 'in/7.png: no such file\u001b[31m\nat line 2')],
}

function drawn(view: Partial<View> = {}, size: { width?: number; height?: number } = {}): readonly string[] {
  return frameLines({
    ...{ label: 'sqlite:./khepri.db', snapshot, trends: new Map([['high', [0, 1, 2]]]), paint: paintFor(false) },
    view: { ...firstView, ...view },
    ...{ width: 80, height: 24, ...size },
  })
}

describe('the screen of khepri watch', () => {
  it('shows queues with their trend, running jobs and failures, and the keys', () => {
    expect(drawn()).toEqual([
      'khepri  sqlite:./khepri.db  workers none',
      '',
      'Queue          Ready  Running  Scheduled  Failed  Oldest wait  Waiting',
      'high           3      1        0          1       1m           ▁▅█',
      'mail (paused)  3      1        0          1       1m',
      '',
      'Running  Job     Queue  For  Worker',
      '7        resize  high   12s  web1',
      '',
      'Failed  Job   Queue  When     Error',
      '4       note  mail   59s ago  in/7.png: no such file at line 2',
      '',
      '↑↓ select   r retry   c cancel   p pause or resume   / filter   q quit',
    ])
  })

  it('is never wider or higher than the terminal', () => {
    const lines = drawn({ note: 'n'.repeat(200) }, { width: 40, height: 8 })
    expect(lines.length).toBeLessThanOrEqual(8)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40)
  })

  it('a filter leaves what has its text in the name of a queue or a job', () => {
    expect(targetsOf(snapshot, 'mail')).toEqual([
      { kind: 'queue', queue: 'mail', paused: true },
      { kind: 'failed', id: 4, fence: 1 },
    ])
  })

  it('a sparkline is as high as its largest number', () => {
    expect(sparkline([0, 50, 100])).toBe('▁▅█')
    expect(sparkline([0, 0])).toBe('▁▁')
  })
})

describe('the keys of khepri watch', () => {
  const targets = targetsOf(snapshot, '')

  it('select a row, and act on what is selected', () => {
    expect(press(firstView, 'p', targets).order).toMatchObject({ kind: 'pause', target: { queue: 'high' } })
    const second = press(firstView, '\u001b[B', targets).view
    expect(press(second, 'p', targets).order).toMatchObject({ kind: 'resume', target: { queue: 'mail' } })
    expect(press({ ...firstView, at: 2 }, 'c', targets).order).toMatchObject({ kind: 'cancel', target: { id: 7 } })
    expect(press({ ...firstView, at: 3 }, 'r', targets).order).toMatchObject({ kind: 'retry', target: { id: 4 } })
    expect(press({ ...firstView, at: 3 }, 'j', targets).view.at).toBe(3)
    expect(press(firstView, 'k', targets).view.at).toBe(0)
  })

  it('do nothing to what they do not fit, and say so', () => {
    const { view, order } = press(firstView, 'r', targets)
    expect({ order, note: view.note }).toEqual({ order: null, note: 'select a failed job first' })
  })

  it('type a filter, in which q is a letter; Return keeps it, Escape drops it', () => {
    const filtered = ['/', 'q', 'x', '\u007f'].reduce((view, key) => press(view, key, targets).view, firstView)
    expect(filtered).toMatchObject({ filter: 'q', isTyping: true })
    expect(press(filtered, '\r', targets).view).toMatchObject({ filter: 'q', isTyping: false })
    expect(press(filtered, '\u001b', targets).view).toMatchObject({ filter: '', isTyping: false })
  })

  it('q and Ctrl-C leave', () => {
    expect(press(firstView, 'q', targets).order).toEqual({ kind: 'quit' })
    expect(press({ ...firstView, isTyping: true }, '\u0003', targets).order).toEqual({ kind: 'quit' })
  })
})

describe('snapshots', () => {
  it('tell each failure once, and none of those before; an outage is told once and waited for', async () => {
    const clock = new ManualClock()
    const failures = [failure(1)]
    const faults = [null, null, 'down', 'down', null]
    const outages: (string | null)[] = []
    const admin = {
      counts: async () => {
        const message = faults.shift()
        if (message != null) throw new KhepriError('STORE_UNREACHABLE', message)
        return []
      },
      workers: async () => [],
      busy: async () => [],
      failed: async function* () {
        yield* [...failures].reverse()
      },
    } as unknown as Admin
    const stopped = new AbortController()
    const found: number[][] = []
    const watching = (async () => {
      const onOutage = (error: Error | null): void => void outages.push(error?.message ?? null)
      for await (const each of snapshots({ admin, clock, everyMs: 1_000, signal: stopped.signal, onOutage }))
        found.push(each.fresh.map(({ id }) => id))
    })()
    await clock.advance(0)
    failures.push(failure(2))
    await clock.advance(1_000)
    failures.push(failure(3))
    await clock.advance(3_000)
    stopped.abort()
    await watching
    expect(found).toEqual([[], [2], [3]])
    expect(outages).toEqual(['down', null])
  })
})
