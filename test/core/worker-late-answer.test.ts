import { expect, it } from 'vitest'
import { FaultyStore } from './support/faulty-store.ts'
import { Workshop } from './support/workshop.ts'

const retryAfterMs = 3_000

/** A worker that stands still from the moment its reservation is committed; `thaw` lets every answer through at once. */
async function freezeAfterReserving(shop: Workshop) {
  const store = new FaultyStore(shop.store)
  const { promise, resolve: thaw } = Promise.withResolvers<void>()
  const frozen = await shop.work({ name: 'frozen', retryAfterMs }, store)
  store.holdAnswer = () => promise
  const id = await shop.add('note')
  await shop.clock.advance(1_500)
  expect(shop.state.jobs.get(id)).toMatchObject({ fence: 1 })
  return { frozen, id, thaw }
}

it('an answer that comes after the lease has run out starts nothing that another worker has done by then', async () => {
  const runs: number[] = []
  const shop = await Workshop.open({ note: (_, { attempt }) => void runs.push(attempt) })
  const { frozen, thaw } = await freezeAfterReserving(shop)
  const heir = await shop.work({ name: 'heir', retryAfterMs })
  await shop.clock.advance(10_000)
  expect(runs).toEqual([1])

  thaw()
  await shop.clock.advance(5_000)
  expect(runs).toEqual([1])
  expect(shop.all('job.lost')).toEqual([])
  await shop.drain(heir)
  await shop.drain(frozen, 10_000)
})

it('an answer that comes after the lease has run out, with nobody else there, is given back and runs once', async () => {
  const runs: number[] = []
  const shop = await Workshop.open({ note: (_, { attempt }) => void runs.push(attempt) })
  const { frozen, thaw } = await freezeAfterReserving(shop)
  await shop.clock.advance(10_000)
  thaw()
  await shop.clock.advance(5_000)
  expect(runs).toEqual([1])
  expect(shop.all('job.done')).toHaveLength(1)
  await shop.drain(frozen, 10_000)
})
