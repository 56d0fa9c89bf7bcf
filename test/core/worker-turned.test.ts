import { expect, it } from 'vitest'
import type { Worker } from '../../src/core/worker.ts'
import { FaultyStore } from './support/faulty-store.ts'
import { Gate, Workshop } from './support/workshop.ts'

/** Tells whether the loop of a worker turns within so much time. */
async function turns(worker: Worker, shop: Workshop, withinMs = 0): Promise<boolean> {
  let isTurned = false
  void worker.turned().then(() => {
    isTurned = true
  })
  await shop.clock.advance(withinMs)
  return isTurned
}

it('the loop turns whenever it is asked: idle, with every slot taken, in an outage, and while it drains', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ hold: gate.ignoring })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  expect(await turns(worker, shop)).toBe(true)
  await shop.add('hold')
  await shop.clock.advance(2_000)
  expect(worker.counts().running).toBe(1)
  expect(await turns(worker, shop)).toBe(true)
  store.cut()
  await shop.clock.advance(600_000)
  expect(await turns(worker, shop)).toBe(true)
  store.mend()
  await shop.clock.advance(60_000)
  worker.drain()
  expect(await turns(worker, shop)).toBe(true)
  gate.open()
  await shop.finished(worker, 60_000)
})

it('a round that has hung for longer than the lease counts as a loop that does not turn, until it is answered', async () => {
  const shop = await Workshop.open()
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({ retryAfterMs: 10_000 }, store)
  const answer = Promise.withResolvers<void>()
  store.holdAnswer = () => answer.promise
  await shop.clock.advance(5_000)
  expect(await turns(worker, shop)).toBe(true)
  await shop.clock.advance(20_000)
  expect(await turns(worker, shop, 30_000)).toBe(false)
  store.holdAnswer = async () => {}
  answer.resolve()
  expect(await turns(worker, shop, 1_000)).toBe(true)
})

it('a worker is ready when the first reservation is answered, and not while nothing gets through', async () => {
  const shop = await Workshop.open()
  const store = new FaultyStore(shop.store)
  store.exchangeFault = () => 'unreachable'
  const worker = await shop.work({}, store)
  let isReady = false
  void worker.ready.then(() => {
    isReady = true
  })
  await shop.clock.advance(30_000)
  expect(isReady).toBe(false)
  store.mend()
  await shop.clock.advance(10_000)
  expect(isReady).toBe(true)
})
