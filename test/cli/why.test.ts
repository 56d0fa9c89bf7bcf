import { describe, expect, it } from 'vitest'
import { type Surroundings, whyNot } from '../../src/cli/why.ts'
import type { Parent, WholeJob, WorkerRow } from '../../src/core/store/admin.ts'

const at = 1_000_000

/** A ready job that nobody holds. */
function aJob(parts: Partial<WholeJob> = {}): WholeJob {
  return {
    ...{ id: 4, fence: 0, job: 'note', queue: 'default', state: 'ready', priority: 0, failures: 0, crashes: 0 },
    ...{ isSuspect: false, uniqueKey: null, enqueuedAt: at, availableAt: at, startedAt: null, cancelledAt: null },
    ...{ endedAt: null, holder: null, failure: null, version: 1, envelope: '{}' },
    ...parts,
  }
}

/** A worker that serves "default" and has a free slot. */
function aWorker(parts: Partial<WorkerRow> = {}): WorkerRow {
  return {
    ...{ id: 1, name: 'web1', version: '1.0.0', host: 'here', pid: 1, queues: 'default', concurrency: 2, running: 1 },
    ...{ held: 1, state: 'working', startedAt: 0, beatAt: at, leaseMs: 90_000 },
    ...parts,
  }
}

function why(job: Partial<WholeJob>, around: Partial<Surroundings> = {}): string {
  const nothing = {
    at,
    pauses: [],
    ahead: 0,
    workers: [aWorker()],
    queues: [],
    parents: [],
    moment: (moment: number) => `@${moment}`,
  }
  return whyNot(aJob(job), { ...nothing, ...around })
}

const holder = { worker: 1, name: 'web1', leaseUntil: at + 5_000 }

describe('why a job is not running', () => {
  it('is its time, before everything else', () => {
    const pauses = [{ queue: 'default', pausedAt: 0, until: null, reason: null }]
    expect(why({ state: 'scheduled', availableAt: at + 90_000 }, { pauses })).toBe('not due for 1m 30s, at @1090000')
  })

  it('is what it waits for, the first five of them named, and how to lead on', () => {
    const waiting = { state: 'scheduled', availableAt: null } as const
    const parent = (id: number, state: Parent['state']): Parent => ({ id, onFailure: 'wait', state, isLost: false })
    expect(why(waiting, { parents: [parent(2, 'running'), parent(3, null), parent(9, 'done')] })).toBe(
      'waits for job 2 (running)',
    )
    expect(why(waiting, { parents: [parent(2, 'failed'), parent(3, 'ready')] })).toBe(
      'waits for jobs 2 (failed), 3 (ready); khepri retry 2 leads on',
    )
    expect(why(waiting, { parents: [1, 2, 3, 4, 5, 6, 7].map((id) => parent(id, 'ready')) })).toBe(
      'waits for jobs 1 (ready), 2 (ready), 3 (ready), 4 (ready), 5 (ready) and 2 more jobs',
    )
    expect(why(waiting, { parents: [parent(3, null)] })).toBe(
      'the jobs that it waited for are gone; the next look of a worker decides',
    )
  })

  it('is its backoff, where it has failed before', () => {
    const envelope = '{"v":1,"job":"note","dispatchedAt":0,"maxCrashes":3,"tries":5,"payload":{}}'
    const waiting = { state: 'scheduled', availableAt: at + 10_000, failures: 1 } as const
    expect(why({ ...waiting, envelope })).toBe('next retry in 10s, at @1010000 (try 2/5)')
    expect(why({ ...waiting, envelope: 'poison' })).toBe('next retry in 10s, at @1010000 (try 2)')
  })

  it('is a pause of its queue, with reason and end', () => {
    const pauses = [{ queue: 'default', pausedAt: 7, until: at + 9, reason: 'deploy' }]
    expect(why({}, { pauses })).toBe('its queue default is paused since @7, until @1000009: deploy')
    expect(why({ queue: 'other' }, { pauses })).toBe('no live worker serves its queue other')
  })

  it.each<[string, Partial<WorkerRow>]>([
    ['drains', { state: 'draining' }],
    ['is dead', { state: 'dead' }],
    ['is silent', { beatAt: at - 90_001 }],
    ['serves other queues', { queues: 'high,mail' }],
  ])('is that no worker serves its queue, where the only one %s', (_, parts) => {
    expect(why({}, { workers: [aWorker(parts)] })).toBe('no live worker serves its queue default')
  })

  it('is not that, where a worker serves every queue', () => {
    expect(why({}, { workers: [aWorker({ queues: '*' })] })).toBe('ready: worker web1 takes it next')
  })

  it('is an envelope that is too new, or its being a suspect', () => {
    expect(why({ version: 2 })).toBe('its envelope is of version 2, which only a newer khepri can read')
    expect(why({ isSuspect: true })).toMatch(/^it was running when its worker died: it waits to run alone/)
  })

  it('is what comes before it, on its queue or on one that every worker prefers', () => {
    expect(why({}, { ahead: 12 })).toBe('waiting behind 12 jobs on default of a better priority or a longer wait')
    const ready = { running: 0, scheduled: 0, failed: 0, oldestReadyAt: 0, paused: false }
    const queues = [{ queue: 'high', ready: 3, ...ready }]
    const workers = [aWorker({ queues: 'high,default' })]
    expect(why({}, { workers, queues })).toBe('waiting behind 3 ready jobs on the better queue high')
    expect(why({}, { workers: [...workers, aWorker()], queues })).toBe('ready: worker web1 takes it next')
    const pausedOnes = queues.map((each) => ({ ...each, paused: true }))
    expect(why({}, { workers, queues: pausedOnes })).toBe('ready: worker web1 takes it next')
  })

  it('is a lack of free slots, or a worker that does not want it', () => {
    const full = [aWorker({ running: 2 }), aWorker({ name: 'web2', running: 2 })]
    expect(why({}, { workers: full })).toBe('waiting for a free slot on web1, web2')
    expect(why({ availableAt: at - 5_000 })).toBe(
      'worker web1 has a free slot and leaves it alone: does it know the job note, and do --job and --except-job let it in?',
    )
  })

  it('is its worker, where one holds it, alive or silent, and the cancellation that it has yet to obey', () => {
    expect(why({ holder })).toBe('held by worker web1, lease until @1005000')
    expect(why({ state: 'running', startedAt: at - 720_000, holder })).toBe(
      'running on worker web1 for 12m, lease until @1005000',
    )
    expect(why({ holder: { ...holder, leaseUntil: at - 1 } })).toBe(
      'held by worker web1, which is silent; it is freed as soon as another worker looks',
    )
    expect(why({ holder, cancelledAt: at - 3_000 })).toBe(
      'held by worker web1, lease until @1005000; cancelled 3s ago, its worker aborts its signal',
    )
  })

  it('is its end', () => {
    const failure = { reason: 'crashes', errorType: 'Error', error: 'x' } as const
    expect(why({ state: 'failed', failure })).toBe(
      'failed: it killed its worker too often; khepri retry 4 puts it back',
    )
    expect(why({ state: 'done' })).toBe('it is done')
    expect(why({ state: 'cancelled' })).toBe('it was cancelled')
  })
})
