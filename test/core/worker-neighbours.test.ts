import { expect, it } from 'vitest'
import { sleep } from '../../src/core/clock.ts'
import type { Fate } from '../../src/core/process-identity.ts'
import type { WorkerId } from '../../src/core/store/store.ts'
import { aWish } from '../../src/testing/conformance/builders.ts'
import { Workshop } from './support/workshop.ts'

/** A neighbour that holds started jobs and has just beaten: only its process can tell that it is dead. */
async function neighbour(shop: Workshop, worker: WorkerId, jobs: number): Promise<void> {
  await shop.store.beat({
    kind: 'joining',
    worker,
    profile: { ...here, name: `neighbour-${worker}`, version: '1', queues: '*', concurrency: jobs, leaseMs: 90_000 },
  })
  const reserve = aWish({ queues: 'all', limit: jobs, maxBytes: 1e9 })
  await shop.store.exchange({ worker, settle: [], enqueue: [], disown: [], start: [], reserve })
}

const here = { host: 'here', bootId: 'boot', pidNamespace: 'ns', pid: 99, pidStart: '7' }

it('jobs of a neighbour whose process is gone start here within 2 s, long before 90 s of silence', async () => {
  const shop = await Workshop.open({ job: () => {} })
  await shop.add('job')
  await neighbour(shop, 5, 1)
  let fate: Fate = 'alive'
  const worker = await shop.work({}, shop.store, { fateOf: () => fate })
  await shop.clock.advance(30_000)
  expect(shop.all('job.started')).toEqual([])
  fate = 'gone'
  await shop.clock.advance(2_000)
  expect(shop.all('workers.dead')).toEqual([{ count: 1, freed: 1 }])
  expect(shop.timesOf('job.started')[0]).toBeLessThanOrEqual(32_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 1 })
})

it.each<Fate>(['alive', 'unknown', 'rebooted'])(
  'a neighbour whose fate is %s keeps its jobs while it beats',
  async (fate) => {
    const shop = await Workshop.open({ job: () => {} })
    await shop.add('job')
    await neighbour(shop, 5, 1)
    const worker = await shop.work({}, shop.store, { fateOf: () => fate })
    for (let second = 0; second < 200; second += 10) {
      await shop.store.beat({ kind: 'working', worker: 5 })
      await shop.clock.advance(10_000)
    }
    expect(shop.all('job.started')).toEqual([])
    await shop.store.beat({ kind: 'leaving', worker: 5 })
    await shop.drain(worker)
  },
)

it('a worker that starts just after its neighbour was killed finds the job before it says that all is done', async () => {
  const shop = await Workshop.open({ job: () => {} })
  await shop.add('job')
  await neighbour(shop, 5, 1)
  const worker = await shop.work({ stopWhenEmpty: true }, shop.store, { fateOf: () => 'gone' })
  expect(await shop.finished(worker)).toMatchObject({ done: 1, reason: 'empty' })
})

it('suspects that have waited 5 to 10 s on a busy queue get the worker to themselves, one after the other', async () => {
  const running = new Set<number>()
  const company: Record<number, number> = {}
  const startedAt: Record<number, number> = {}
  const shop: Workshop = await Workshop.open({
    job: async (_payload, { id }) => {
      running.add(id)
      company[id] = running.size - 1
      startedAt[id] = shop.elapsedMs
      // Of two lengths, so that the slots are hardly ever empty together.
      await sleep(shop.clock, id % 2 === 0 ? 300 : 370)
      running.delete(id)
    },
  })
  const suspects = [await shop.add('job'), await shop.add('job')]
  await neighbour(shop, 5, 2)
  let fate: Fate = 'alive'
  for (let n = 0; n < 150; n++) await shop.add('job')
  const worker = await shop.work({ concurrency: 2 }, shop.store, { fateOf: () => fate })
  await shop.clock.advance(500)
  fate = 'gone'
  await shop.clock.advance(1_500)
  expect(shop.all('workers.dead')).toEqual([{ count: 1, freed: 2 }])
  fate = 'unknown'
  await shop.clock.advance(40_000)
  for (const id of suspects) {
    expect(company[id]).toBe(0)
    expect(startedAt[id]).toBeGreaterThanOrEqual(5_000)
    expect(startedAt[id]).toBeLessThan(14_000)
  }
  expect(await shop.drain(worker)).toMatchObject({ done: 152 })
})

it('a suspect behind 100 better jobs waits its turn, and slows them down by less than a tenth', async () => {
  const shop: Workshop = await Workshop.open({ job: () => sleep(shop.clock, 500) })
  await shop.add('job')
  await shop.add('job')
  await neighbour(shop, 5, 2)
  for (let n = 0; n < 100; n++) await shop.add('job', { priority: -1 })
  let fate: Fate = 'gone'
  const worker = await shop.work({ concurrency: 2 }, shop.store, { fateOf: () => fate })
  fate = 'unknown'
  await shop.clock.advance(27_500)
  expect(shop.all('job.done').length).toBeGreaterThanOrEqual(100)
  await shop.clock.advance(10_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 102 })
})
