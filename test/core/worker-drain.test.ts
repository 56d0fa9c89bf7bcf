import { expect, it } from 'vitest'
import { AttemptTimeout, Interrupted } from '../../src/core/attempt.ts'
import { release } from '../../src/core/job.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import { FaultyStore } from './support/faulty-store.ts'
import { Gate, Workshop } from './support/workshop.ts'

const none = { kind: 'none' } as const

it('a timeout of 1 s aborts the signal after 1 s, and the attempt has failed', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ slow: gate.obeying })
  const id = await shop.add('slow', { timeoutMs: 1_000 })
  const worker = await shop.work()
  const signal = await gate.entered
  await shop.clock.advance(999)
  expect(signal.aborted).toBe(false)
  await shop.clock.advance(1)
  expect(signal.reason).toBeInstanceOf(AttemptTimeout)
  expect(shop.state.failed.get(id)).toMatchObject({
    reason: 'tries',
    errorType: 'AttemptTimeout',
    error: 'timed out after 1s',
  })
  await shop.drain(worker)
})

it('the worker bounds jobs that bring no timeout, and the envelope outranks it', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ slow: gate.obeying })
  await shop.add('slow')
  await shop.add('slow', { timeoutMs: 9_000 })
  const worker = await shop.work({ timeoutMs: 2_000, concurrency: 2 })
  await shop.clock.advance(10_000)
  expect(shop.timesOf('job.failed')).toEqual([2_000, 9_000])
  await shop.drain(worker)
})

it('without a timeout a handler runs for 3 hours, far beyond its lease of 90 s', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ slow: gate.obeying })
  await shop.add('slow')
  const worker = await shop.work({ retryAfterMs: 90_000 })
  await shop.clock.advance(3 * 3_600_000)
  gate.open()
  expect(await shop.drain(worker)).toMatchObject({ done: 1 })
})

it.each<[string, () => unknown]>([
  ['returns', () => 'fine'],
  ['throws something else', () => Promise.reject(new Error('cleaned up'))],
  ['releases', () => release('1h')],
])('a handler that %s after its timeout has timed out all the same', async (_, end) => {
  const shop = await Workshop.open({
    slow: (_payload, { signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', resolve)).then(() => end()),
  })
  const id = await shop.add('slow', { timeoutMs: 1_000 })
  const worker = await shop.work()
  await shop.clock.advance(1_000)
  expect(shop.state.failed.get(id)?.error).toBe('timed out after 1s')
  await shop.drain(worker)
})

it('a handler that answers its timeout within 4,999 ms is not stuck', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ slow: gate.ignoring })
  await shop.add('slow', { timeoutMs: 1_000 })
  const worker = await shop.work()
  await shop.clock.advance(5_999)
  gate.open()
  await shop.clock.advance(10_000)
  expect(shop.all('job.stuck')).toEqual([])
  expect(shop.all('job.failed')).toMatchObject([{ ms: 5_999, error: { message: 'timed out after 1s' } }])
  await shop.drain(worker)
})

it('a handler that ignores its timeout for 5 s is stuck: settled as failed, its slot still busy', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ stuck: gate.ignoring, note: () => {} })
  const id = await shop.add('stuck', { timeoutMs: 1_000 })
  const worker = await shop.work({ concurrency: 2 })
  await shop.clock.advance(6_000)
  expect(shop.all('job.stuck')).toMatchObject([{ id, ms: 6_000 }])
  expect(shop.state.failed.get(id)).toMatchObject({ reason: 'tries', errorType: 'AttemptTimeout' })
  const store = shop.state
  for (let count = 0; count < 4; count++) await shop.add('note')
  await shop.clock.advance(2_000)
  expect(store.jobs.size).toBe(0)
  expect(worker.counts()).toMatchObject({ running: 0, done: 4, failed: 1 })
  gate.open()
  expect(await shop.drain(worker)).toMatchObject({ done: 4, failed: 1, lost: 0 })
})

it('the retry of a stuck handler does not run in this process while it runs, and does when it has returned', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ stuck: gate.ignoring })
  const id = await shop.add('stuck', { timeoutMs: 1_000, tries: 2, backoff: none })
  const worker = await shop.work({ concurrency: 2 })
  await shop.clock.advance(60_000)
  expect(gate.runs).toBe(1)
  expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, failures: 1 })
  gate.open()
  await shop.clock.advance(1_000)
  expect(gate.runs).toBe(2)
  expect(shop.all('job.done')).toMatchObject([{ id, attempt: 2 }])
  await shop.drain(worker)
})

it('another worker may run the retry meanwhile; the late result of the stuck handler changes nothing', async () => {
  const gate = new Gate()
  let runs = 0
  const shop = await Workshop.open({ stuck: (...call) => (++runs === 1 ? gate.ignoring(...call) : 'fine') })
  const id = await shop.add('stuck', { timeoutMs: 1_000, tries: 2, backoff: none })
  const first = await shop.work({ concurrency: 2 })
  await shop.clock.advance(6_000)
  const second = await shop.work({ name: 'beta' }, openMemoryStore({ clock: shop.clock, state: shop.state }).store)
  await shop.clock.advance(1_000)
  expect(shop.all('job.done')).toMatchObject([{ id, attempt: 2 }])
  gate.breakWith(new Error('late'))
  await shop.clock.advance(10_000)
  expect(shop.state.failed.size).toBe(0)
  expect(shop.all('job.failed')).toEqual([])
  expect(await shop.drain(first)).toMatchObject({ done: 0, retried: 1, failed: 0 })
  await shop.drain(second)
})

it('a worker whose 2 slots are both stuck drains with the reason stuck, though their handlers still run', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ stuck: gate.ignoring, note: () => {} })
  await shop.add('stuck', { timeoutMs: 1_000 })
  await shop.add('stuck', { timeoutMs: 2_000 })
  await shop.add('note')
  const worker = await shop.work({ concurrency: 2 })
  await shop.clock.advance(6_999)
  expect(shop.all('worker.draining')).toEqual([])
  expect(await shop.finished(worker, 1)).toMatchObject({ reason: 'stuck', failed: 2, done: 0 })
  expect(shop.state.jobs.size).toBe(1)
})

it('a drain takes nothing new, finishes what runs, and ends with its reason', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying, note: () => {} })
  await shop.add('long')
  const worker = await shop.work({ concurrency: 2 })
  worker.drain('signal')
  await shop.add('note')
  await shop.clock.advance(3_600_000)
  expect((await gate.entered).aborted).toBe(false)
  expect(shop.all('worker.draining')).toEqual([{ worker: 'alpha', reason: 'signal', running: 1 }])
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ reason: 'signal', done: 1, released: 0 })
  expect(shop.state.jobs.size).toBe(1)
})

it('only the first reason of a drain counts', async () => {
  const shop = await Workshop.open()
  const worker = await shop.work()
  worker.drain('parent')
  worker.drain('signal')
  worker.abort()
  expect(await shop.finished(worker)).toMatchObject({ reason: 'parent' })
  expect(shop.all('worker.draining')).toHaveLength(1)
})

it('an idle worker drains without time passing, also in the middle of its sleep', async () => {
  const shop = await Workshop.open()
  const worker = await shop.work({ sleepMs: 60_000 })
  await shop.clock.advance(500_000)
  expect(await shop.drain(worker)).toMatchObject({ reason: 'asked' })
})

it('the store hears of a drain at once, so that a kill from then on costs the jobs nothing', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  const id = await shop.add('long')
  const worker = await shop.work()
  worker.drain()
  await shop.clock.advance(0)
  expect([...shop.state.workers.values()]).toMatchObject([{ state: 'draining' }])
  expect(shop.state.jobs.get(id)?.worker).not.toBeNull()
  gate.open()
  await shop.finished(worker)
})

it('beats outlive the drain: a job that takes 10 leases more is not taken away', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  await shop.add('long')
  const worker = await shop.work({ retryAfterMs: 90_000 })
  worker.drain()
  const other = await shop.work({ name: 'beta' }, openMemoryStore({ clock: shop.clock, state: shop.state }).store)
  await shop.clock.advance(900_000)
  expect(shop.all('workers.dead')).toEqual([])
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ done: 1, lost: 0 })
  await shop.drain(other)
})

it.each(['drain', 'quiet'] as const)(
  'a job whose reservation comes back after %s was called goes back unstarted',
  async (stop) => {
    const shop = await Workshop.open({ note: () => expect.unreachable() })
    const store = new FaultyStore(shop.store)
    const worker = await shop.work({ maxJobs: 1 }, store)
    const answer = Promise.withResolvers<void>()
    store.holdAnswer = () => answer.promise
    const id = await shop.add('note')
    await shop.clock.advance(1_000)
    expect(shop.state.jobs.get(id)?.worker).not.toBeNull()
    worker[stop]()
    answer.resolve()
    await shop.clock.advance(0)
    expect(shop.state.jobs.get(id)).toMatchObject({
      worker: null,
      failures: 0,
      crashes: 0,
      availableAt: expect.any(Number),
    })
    expect(shop.all('job.released')).toEqual([])
    expect(shop.all('job.started')).toEqual([])
    expect(await shop.drain(worker)).toMatchObject({ reason: 'asked', released: 0, abandoned: 0 })
  },
)

it('a job that was given back by quiet does not count for max-jobs 1', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({ maxJobs: 1 }, store)
  const answer = Promise.withResolvers<void>()
  store.holdAnswer = () => answer.promise
  await shop.add('note')
  await shop.clock.advance(1_000)
  worker.quiet()
  answer.resolve()
  await shop.clock.advance(0)
  worker.resume()
  expect(await shop.finished(worker)).toMatchObject({ reason: 'max-jobs', done: 1, released: 0 })
})

it('abort interrupts what runs, at no cost, and keeps its place in the order', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  const id = await shop.add('long', { tries: 1 })
  const { availableAt } = shop.state.jobs.get(id) as { availableAt: number }
  await shop.clock.advance(5_000)
  const worker = await shop.work()
  worker.abort()
  expect((await gate.entered).reason).toBeInstanceOf(Interrupted)
  expect(await shop.finished(worker)).toMatchObject({ reason: 'asked', released: 1, abandoned: 0, failed: 0 })
  expect(shop.all('worker.aborting')).toEqual([{ worker: 'alpha', running: 1 }])
  expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, failures: 0, crashes: 0, availableAt })
  expect(shop.attempts(id)).toEqual([])
})

it('a job that returns after abort is done', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.ignoring })
  await shop.add('long')
  const worker = await shop.work()
  worker.abort()
  await shop.clock.advance(4_999)
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ done: 1, released: 0 })
})

it('after an abort a job that ignores its signal for 5 s is given back and counts as abandoned', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.ignoring })
  const id = await shop.add('long')
  const worker = await shop.work()
  worker.drain('signal')
  await shop.clock.advance(60_000)
  worker.abort()
  await shop.clock.advance(4_999)
  expect(shop.state.jobs.get(id)?.worker).not.toBeNull()
  expect(await shop.finished(worker, 1)).toMatchObject({ reason: 'signal', released: 1, abandoned: 1 })
  expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, failures: 0, crashes: 0 })
})

it('a second abort does nothing', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.ignoring })
  await shop.add('long')
  const worker = await shop.work()
  worker.abort()
  await shop.clock.advance(3_000)
  worker.abort()
  expect(await shop.finished(worker, 2_000)).toMatchObject({ abandoned: 1 })
  expect(shop.all('worker.aborting')).toHaveLength(1)
})

it('a drain time-out of 30 s gives back what still runs after 30 s and its 5 s of grace', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ obeying: gate.obeying, ignoring: gate.ignoring })
  await shop.add('obeying')
  await shop.add('ignoring')
  const worker = await shop.work({ concurrency: 2, drainTimeoutMs: 30_000 })
  worker.drain('signal')
  await shop.clock.advance(29_999)
  expect(shop.all('job.released')).toEqual([])
  await shop.clock.advance(1)
  expect(shop.all('job.released')).toMatchObject([{ job: 'obeying' }])
  expect(await shop.finished(worker, 5_000)).toMatchObject({ reason: 'signal', released: 2, abandoned: 1 })
})

it('a drain waits for the beat that is under way, so that no row of a worker that has left comes back', async () => {
  const shop = await Workshop.open()
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  const answer = Promise.withResolvers<void>()
  store.beatFault = ({ kind }) => {
    store.holdAnswer = async () => {
      if (kind === 'draining') await answer.promise
    }
    return 'none'
  }
  worker.drain()
  await shop.clock.advance(5_000)
  expect(store.beats.at(-1)?.kind).toBe('draining')
  expect(shop.all('worker.stopped')).toEqual([])
  answer.resolve()
  await shop.finished(worker)
  expect(store.beats.map(({ kind }) => kind)).toEqual(['joining', 'draining', 'leaving'])
  expect(shop.state.workers.size).toBe(0)
})
