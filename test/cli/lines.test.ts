import { describe, expect, it } from 'vitest'
import { describe as inWords, isShown, journalLine, jsonLine, pipeLine } from '../../src/cli/lines.ts'
import type { Events } from '../../src/core/events.ts'

const at = Date.UTC(2026, 10, 30, 14, 2, 11, 83)
const worker = { version: '0.1.0', database: 'sqlite:./khepri.db' }
const facts = { id: 1042, job: 'send-welcome', queue: 'default', attempt: 1, tries: 3 }
const done = { ...facts, ms: 83.4, waitMs: 12 }
const missing = { type: 'Error', message: "ENOENT: no such file 'in/7.png'", stack: 'Error: ENOENT\n    at resize' }

function inPipe<Name extends keyof Events>(name: Name, event: Events[Name]): string | null {
  const shown = inWords(name, event, worker)
  return shown && pipeLine(shown, at)
}

describe('a line in a pipe', () => {
  it('has the time first, the verb second, then the job and key=value pairs', () => {
    expect(inPipe('job.done', done)).toBe('2026-11-30T14:02:11.083Z DONE 1042 send-welcome queue=default try=1/3 ms=83')
  })

  it('quotes an error and says in how long the job runs again', () => {
    expect(inPipe('job.retry', { ...facts, ms: 1210, delayMs: 10_000, error: missing })).toBe(
      `2026-11-30T14:02:11.083Z RETRY 1042 send-welcome queue=default try=1/3 ms=1210 in=10s error="ENOENT: no such file 'in/7.png'"`,
    )
  })

  it('does not say "refused" of a job whose handler said that it will never succeed', () => {
    const event = { ...facts, ms: 5, reason: 'refused', error: missing } as const
    expect(inPipe('job.failed', event)).toContain(' reason=nonretryable ')
    expect(JSON.parse(jsonLine('job.failed', event, { at, worker: 'w', stacks: false })).reason).toBe('nonretryable')
  })

  it('does not speak of the signals of 1 job', () => {
    expect(inPipe('worker.aborting', { worker: 'w', running: 1 })).toContain('abandoning 1 job: its signal is aborted')
    expect(inPipe('worker.aborting', { worker: 'w', running: 2 })).toContain('2 jobs: their signals are aborted')
  })

  it('names the reason beside the error of a job that failed for good', () => {
    expect(inPipe('job.failed', { ...facts, ms: 5, reason: 'tries', error: missing })).toContain(
      ' FAILED 1042 send-welcome queue=default try=1/3 ms=5 reason=tries error="ENOENT',
    )
  })

  it('stays one line of seven words before the error whatever names and errors hold', () => {
    const odd = { ...facts, job: 'two words', queue: 'a="b"\n2026 DONE 1 x' }
    const line = inPipe('job.retry', {
      ...odd,
      ms: 1,
      delayMs: 0,
      error: { ...missing, message: 'a\r\nb\u001b[31mred\u0007' },
    })
    expect(line).toBe(
      String.raw`2026-11-30T14:02:11.083Z RETRY 1042 "two words" queue="a=\"b\" 2026 DONE 1 x" try=1/3 ms=1 in=0ms error="a bred\\x07"`,
    )
  })

  it('shows what a job logged', () => {
    expect(inPipe('job.log', { ...facts, text: 'greeting user 7' })).toBe(
      '2026-11-30T14:02:11.083Z LOG 1042 send-welcome queue=default try=1/3 text="greeting user 7"',
    )
  })

  it('does not show that a job has started', () => {
    expect(inPipe('job.started', { ...facts, waitMs: 1 })).toBeNull()
  })
})

describe('a line for the journal', () => {
  it.each([
    ['job.done', done, '<6>DONE 1042 send-welcome queue=default try=1/3 ms=83'],
    ['job.lost', { ...facts, ms: 2 }, '<4>LOST 1042 send-welcome queue=default try=1/3 ms=2'],
    [
      'job.failed',
      { ...facts, ms: 2, reason: 'poison', error: missing },
      `<3>FAILED 1042 send-welcome queue=default try=1/3 ms=2 reason=poison error="ENOENT: no such file 'in/7.png'"`,
    ],
  ] as const)('of %s has its priority in front and no time', (name, event, line) => {
    const shown = inWords(name, event as never, worker)
    expect(shown && journalLine(shown)).toBe(line)
  })
})

describe('a line of NDJSON', () => {
  const about = { at, worker: 'web1-4121', stacks: false }

  it('has the documented keys in the documented order', () => {
    expect(jsonLine('job.done', done, about)).toBe(
      '{"time":"2026-11-30T14:02:11.083Z","level":"info","event":"job.done","id":1042,"job":"send-welcome","queue":"default","attempt":1,"tries":3,"ms":83,"waitMs":12,"worker":"web1-4121"}',
    )
  })

  it('carries an error as type and message, and its stack only where that is asked for', () => {
    const event = { ...facts, ms: 1, delayMs: 10, error: missing }
    expect(JSON.parse(jsonLine('job.retry', event, about)).error).toEqual({ type: 'Error', message: missing.message })
    expect(JSON.parse(jsonLine('job.retry', event, { ...about, stacks: true })).error).toEqual(missing)
  })

  it('keeps every text exactly and lets no control character out', () => {
    const text = 'a\u001b[2J\u009b31m\u007f\nb'
    const line = jsonLine('job.log', { ...facts, text }, about)
    expect(JSON.parse(line).text).toBe(text)
    expect(line).toMatch(/^[\x20-\x7e]+$/)
  })
})

describe('sentences', () => {
  const text = <Name extends keyof Events>(name: Name, event: Events[Name]): string | undefined =>
    inWords(name, event, worker)?.kind === 'sentence'
      ? (inWords(name, event, worker) as { text: string }).text
      : undefined
  const report: Events['worker.stopped'] = {
    worker: 'web1-4121',
    reason: 'signal',
    done: 3,
    retried: 1,
    failed: 0,
    released: 0,
    cancelled: 0,
    lost: 0,
    abandoned: 0,
    unwritten: [],
    ms: 2_400,
  }

  it('announce the worker, its queues, its concurrency and its database', () => {
    expect(text('worker.started', { worker: 'web1-4121', queues: 'high,default', concurrency: 4 })).toBe(
      'khepri 0.1.0  worker web1-4121  queues high,default  concurrency 4  sqlite:./khepri.db    Ctrl-C stops gently',
    )
  })

  it('say at once what a stop waits for, and how to stop waiting', () => {
    expect(text('worker.draining', { worker: 'w', reason: 'signal', running: 2 })).toBe(
      'stopping: waiting for 2 jobs (Ctrl-C again to abandon them)',
    )
    expect(text('worker.draining', { worker: 'w', reason: 'signal', running: 1 })).toBe(
      'stopping: waiting for 1 job (Ctrl-C again to abandon them)',
    )
  })

  it('say nothing of a stop that waits for nothing, or that was the plan', () => {
    expect(inWords('worker.draining', { worker: 'w', reason: 'signal', running: 0 }, worker)).toBeNull()
    expect(inWords('worker.draining', { worker: 'w', reason: 'once', running: 1 }, worker)).toBeNull()
  })

  it.each([
    [2_400, '2.4s'],
    [83, '83ms'],
    [60_000, '1m'],
    [3_700_000, '1h 1m'],
  ])('sum a run of %d ms up as %s', (ms, shown) => {
    expect(text('worker.stopped', { ...report, ms })).toBe(`stopped: 3 done, 1 retried, 0 failed in ${shown}`)
  })

  it('count what seldom happens only where it did', () => {
    const rare = { ...report, cancelled: 2, released: 0, lost: 1, ms: 83 }
    expect(text('worker.stopped', rare)).toBe('stopped: 3 done, 1 retried, 0 failed, 2 cancelled, 1 lost in 83ms')
  })

  it('name an outage and its length on stderr', () => {
    expect(
      inWords('store.lost', { message: 'cannot reach postgres://app:***@db1:5432/app: connection refused' }, worker),
    ).toMatchObject({ stream: 'err', level: 'warn' })
    expect(text('store.back', { outageMs: 12_000 })).toBe('store back after 12s')
  })
})

describe('--log', () => {
  it.each([
    ['all', true, true, true],
    ['results', false, true, true],
    ['problems', false, false, true],
    ['none', false, false, false],
  ] as const)('%s shows notes: %s, results: %s, problems: %s', (log, notes, results, problems) => {
    expect([isShown('job.log', log), isShown('job.done', log), isShown('job.failed', log)]).toEqual([
      notes,
      results,
      problems,
    ])
  })
})
