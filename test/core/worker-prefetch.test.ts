import { describe, expect, it } from 'vitest'
import type { Round } from '../../src/core/store/store.ts'
import { FaultyStore } from './support/faulty-store.ts'
import { Gate, Workshop } from './support/workshop.ts'

/** A worker that has learnt from quick jobs to hold some in advance. */
async function aQuickWorker(jobs: Parameters<typeof Workshop.open>[0] = {}) {
  const shop = await Workshop.open({ note: () => {}, ...jobs })
  const store = new FaultyStore(shop.store)
  for (let count = 0; count < 100; count++) await shop.add('note')
  const worker = await shop.work({}, store)
  await shop.clock.advance(1_000)
  return { shop, store, worker }
}

const releasesIn = ({ settle }: Round): number => settle.filter(({ kind }) => kind === 'release').length

describe('held in advance', () => {
  it('10,000 no-op jobs take at most 200 transactions, and all end', async () => {
    const shop = await Workshop.open({ note: () => {} })
    const store = new FaultyStore(shop.store)
    for (let count = 0; count < 10_000; count++) await shop.add('note')
    expect(await shop.workUntilEmpty({ concurrency: 10 }, { withinMs: 10_000, store })).toMatchObject({ done: 10_000 })
    expect(store.rounds.length).toBeLessThanOrEqual(200)
  })

  it('what a long job keeps waiting goes back within 50 ms, at no cost, without a word, its place in the order kept', async () => {
    const gate = new Gate()
    const { shop, worker } = await aQuickWorker({ long: gate.ignoring })
    await shop.add('long')
    const ids = [await shop.add('note'), await shop.add('note')]
    const before = ids.map((id) => ({ ...shop.state.jobs.get(id) }))
    await shop.clock.advance(1_060)
    expect(shop.all('job.started').at(-1)).toMatchObject({ job: 'long' })
    for (const [index, id] of ids.entries())
      expect(shop.state.jobs.get(id)).toMatchObject({
        ...{ worker: null, startedAt: null, failures: 0, crashes: 0, suspect: false },
        availableAt: before[index]?.availableAt,
      })
    expect(shop.all('job.released')).toEqual([])
    gate.open()
    expect(await shop.drain(worker, 1_000)).toMatchObject({ released: 0 })
  })

  it.each(['drain', 'quiet'] as const)('%s gives back at once what has not started', async (stop) => {
    const gate = new Gate()
    const { shop, store, worker } = await aQuickWorker({ long: gate.ignoring })
    await shop.add('long')
    const ids = [await shop.add('note'), await shop.add('note')]
    const rounds = store.rounds.length
    await shop.clock.advance(1_000)
    worker[stop]()
    await shop.clock.advance(0)
    expect(ids.map((id) => shop.state.jobs.get(id)?.worker)).toEqual([null, null])
    expect(store.rounds.slice(rounds).reduce((sum, round) => sum + releasesIn(round), 0)).toBe(2)
    gate.open()
    await shop.drain(worker, 1_000)
  })

  it('a job that starts out of what was held is marked as started within 5 ms', async () => {
    const gate = new Gate()
    const { shop, store, worker } = await aQuickWorker({ long: gate.ignoring })
    await shop.add('note')
    const id = await shop.add('long')
    await shop.clock.advance(1_005)
    expect(shop.state.jobs.get(id)?.startedAt).toEqual(expect.any(Number))
    expect(store.rounds.some(({ start }) => start.some((held) => held.id === id))).toBe(true)
    gate.open()
    await shop.drain(worker, 1_000)
  })

  it('jobs whose maxCrashes is 0 are never held: they go back until a slot is free', async () => {
    const { shop, worker } = await aQuickWorker()
    await shop.add('note')
    const ids = [await shop.add('note', { maxCrashes: 0 }), await shop.add('note', { maxCrashes: 0 })]
    await shop.clock.advance(2_000)
    const reserved = shop.all('job.done').map(({ id }) => id)
    expect(reserved.slice(-2)).toEqual(ids)
    await shop.drain(worker)
  })

  it.each([{ once: true }, { maxJobs: 5 }, { restMs: 1 }, { queueLimits: new Map([['default', 1]]) }])(
    'a worker with %o asks for no more than it has slots',
    async (options) => {
      const shop = await Workshop.open({ note: () => {} })
      const store = new FaultyStore(shop.store)
      for (let count = 0; count < 20; count++) await shop.add('note')
      await shop.workUntilEmpty(options, { withinMs: 60_000, store })
      expect(store.rounds.every(({ reserve }) => reserve === null || reserve.limit <= 1)).toBe(true)
    },
  )

  it('after a reservation was lost to another worker nothing of it is started here', async () => {
    const { shop, store, worker } = await aQuickWorker()
    store.exchangeFault = (_, { reserve }) => (reserve ? 'unknown, done' : 'none')
    for (let count = 0; count < 10; count++) await shop.add('note')
    const done = shop.all('job.done').length
    await shop.clock.advance(1_000)
    expect(shop.all('job.done')).toHaveLength(done)
    store.mend()
    await shop.clock.advance(20_000)
    expect(shop.all('job.done')).toHaveLength(done + 10)
    await shop.drain(worker)
  })
})

describe('two rounds at a time', () => {
  it('never ask for more slots than there are, and run every job once', async () => {
    const running = new Set<number>()
    let most = 0
    const shop = await Workshop.open({
      nap: async (_, { id }) => {
        running.add(id)
        most = Math.max(most, running.size)
        await new Promise<void>((resolve) => void shop.clock.after(id % 7, resolve))
        running.delete(id)
      },
    })
    for (let count = 0; count < 200; count++) await shop.add('nap')
    const store = Object.assign(new FaultyStore(shop.store), { flights: 2 })
    const worker = await shop.work({ concurrency: 8, stopWhenEmpty: true }, store)
    store.holdAnswer = () => new Promise((resolve) => void shop.clock.after(2, resolve))
    expect(await shop.finished(worker, 20_000)).toMatchObject({ done: 200, lost: 0 })
    expect(most).toBeLessThanOrEqual(8)
    expect(new Set(shop.all('job.started').map(({ id }) => id)).size).toBe(200)
  })
})

it('a stuck handler does not keep a suspect from running: its attempt is settled, and the worker holds nothing', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ never: gate.ignoring, note: () => {} })
  await shop.add('never', { timeoutMs: 1_000 })
  const worker = await shop.work({ concurrency: 2 })
  await shop.clock.advance(7_000)
  expect(shop.all('job.stuck')).toHaveLength(1)
  const suspect = await shop.add('note')
  Object.assign(shop.state.jobs.get(suspect) ?? {}, { suspect: true })
  const innocent = await shop.add('note')
  await shop.clock.advance(15_000)
  expect(shop.all('job.done').map(({ id }) => id)).toEqual(expect.arrayContaining([suspect, innocent]))
  gate.open()
  await shop.drain(worker, 10_000)
})

it('a queue whose whole limit is stuck ends its worker: nothing of it would ever run here again', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ never: gate.ignoring })
  await shop.add('never', { timeoutMs: 1_000, queue: 'mail' })
  const worker = await shop.work({ concurrency: 2, queueLimits: new Map([['mail', 1]]) })
  expect(await shop.finished(worker, 20_000)).toMatchObject({ reason: 'stuck' })
  gate.open()
})

it('a store that has not looked everywhere is asked again at once, also where it found nothing', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  store.looksAway = (number) => number <= 2
  await shop.add('note')
  const worker = await shop.work({}, store)
  await shop.clock.advance(10)
  expect(shop.all('job.done')).toHaveLength(1)
  await shop.drain(worker)
})
