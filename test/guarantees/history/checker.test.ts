import { describe, expect, it } from 'vitest'
import { violationsIn } from './checker.ts'
import { playDay } from './day.ts'
import type { Client, History, LedgerLine, WorkerProcess } from './history.ts'
import { plantedFaults } from './planted-faults.ts'
import type { PromiseName } from './violation.ts'

describe('the history checker', () => {
  it('finds nothing to say about a day on which everything goes right', async () => {
    const history = await playDay()
    expect(violationsIn(history)).toEqual([])
    expect(history.ledger.length).toBeGreaterThan(250)
  })

  it('blames nobody for a start that a worker had reserved before it stood still', async () => {
    const day = await playDay()
    const frozen = day.ledger.find(({ key }) => key === 'frozen-1')
    const wokenAt = day.workers
      .find(({ name }) => name === frozen?.worker)
      ?.signals.find(({ signal }) => signal === 'SIGCONT')?.at
    const ledger = day.ledger.map((line) => (line === frozen ? { ...line, ms: wokenAt ?? 0 } : line))
    expect(violationsIn({ ...day, ledger })).toEqual([])
    expect(wokenAt).toBeGreaterThan(frozen?.ms ?? 0)
  })

  it.each(plantedFaults)('sees $name', async ({ breaks, ...tampering }) => {
    const violations = violationsIn(await playDay(tampering))
    expect(violations.map(({ promise }) => promise)).toContain(breaks)
  })
})

/** Something that a process does wrong, written into the record of a good day. */
interface Forgery {
  readonly name: string
  readonly breaks: PromiseName
  readonly forge: (history: History) => History
}

const forgeries: readonly Forgery[] = [
  {
    name: 'a worker that ends with 1 after a SIGTERM',
    breaks: 'graceful',
    forge: (history) =>
      withWorker(
        history,
        ({ signals }) => signals[0]?.signal === 'SIGTERM',
        (worker) => ({ ...worker, code: 1 }),
      ),
  },
  {
    name: 'a worker that stops in the middle of a job',
    breaks: 'graceful',
    forge: (history) => ({
      ...history,
      ledger: history.ledger.filter((line) => line.key !== 'i3' || line.event === 'start'),
    }),
  },
  {
    name: 'a worker that starts a job 10 s after its SIGTERM',
    breaks: 'graceful',
    forge: (history) =>
      withWorker(
        history,
        ({ name }) => name === 'w2',
        (worker) => ({ ...worker, signals: [{ signal: 'SIGTERM', at: worker.startedAt - 10_000 }] }),
      ),
  },
  {
    name: 'a worker that ends by itself when its late result is refused',
    breaks: 'fenced',
    forge: (history) =>
      withWorker(
        history,
        ({ stdout }) => stdout.includes(' LOST '),
        (worker) => ({ ...worker, signals: worker.signals.filter(({ signal }) => signal !== 'SIGTERM'), code: 70 }),
      ),
  },
  {
    name: 'a job that a living worker lost',
    breaks: 'needless',
    forge: (history) =>
      withWorker(
        history,
        () => true,
        (worker) => ({ ...worker, signals: worker.signals.filter(({ signal }) => !/STOP|CONT/.test(signal)) }),
      ),
  },
  {
    name: 'a pause shorter than the lease that costs a job',
    breaks: 'needless',
    forge: (history) =>
      withWorker(
        history,
        () => true,
        (worker) => ({
          ...worker,
          signals: worker.signals.map((sent, n, all) =>
            sent.signal === 'SIGCONT' ? { ...sent, at: (all[n - 1]?.at ?? 0) + 300 } : sent,
          ),
        }),
      ),
  },
  {
    name: 'a dispatch that shows a stack trace',
    breaks: 'quiet',
    forge: (history) =>
      withClient(history, 'dispatch', (client) => ({ ...client, stderr: 'Error: no\n    at run (dist/cli.js:1:2)\n' })),
  },
  {
    name: 'a retry that ends with 70',
    breaks: 'quiet',
    forge: (history) => withClient(history, 'retry', (client) => ({ ...client, code: 70 })),
  },
  {
    name: 'a dispatch that prints one id for several jobs',
    breaks: 'durable',
    forge: (history) => withClient(history, 'dispatch', (client) => ({ ...client, stdout: '1\n' })),
  },
  {
    name: 'a job that is judged by the tries of the worker',
    breaks: 'terms',
    forge: (history) =>
      withWorker(
        history,
        () => true,
        (worker) => ({ ...worker, stdout: worker.stdout.replaceAll('try=1/1', 'try=1/50') }),
      ),
  },
  {
    name: 'a history without a listing of what failed',
    breaks: 'sound',
    forge: (history) => ({ ...history, clients: history.clients.filter(({ argv }) => argv[0] !== 'failed') }),
  },
  {
    name: 'a line of the ledger that belongs to nobody',
    breaks: 'sound',
    forge: (history) => ({
      ...history,
      ledger: [...history.ledger, { ...(history.ledger[0] as LedgerLine), worker: 'w99' }],
    }),
  },
]

describe('the history checker, of a record that was changed,', () => {
  it.each(forgeries)('sees $name', async ({ breaks, forge }) => {
    const violations = violationsIn(forge(await playDay()))
    expect(violations.map(({ promise }) => promise)).toContain(breaks)
  })
})

function withWorker(
  history: History,
  fits: (worker: WorkerProcess) => boolean,
  change: (worker: WorkerProcess) => WorkerProcess,
): History {
  return { ...history, workers: history.workers.map((worker) => (fits(worker) ? change(worker) : worker)) }
}

function withClient(history: History, command: string, change: (client: Client) => Client): History {
  return {
    ...history,
    clients: history.clients.map((client) => (client.argv[0] === command ? change(client) : client)),
  }
}
