import { expect, it } from 'vitest'
import { sleep } from '../../src/core/clock.ts'
import type { Round, Store } from '../../src/core/store/store.ts'
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

/** A store whose every exchange takes so long, and whose beats wait behind it, as on a connection that blocks its process. */
function slow(shop: Workshop, ms: number): { readonly store: Store; readonly rounds: Round[] } {
  const { store: inner, clock } = shop
  const rounds: Round[] = []
  let underWay: Promise<unknown> = Promise.resolve()
  const exchange = async (round: Round) => {
    rounds.push(round)
    const answer = await inner.exchange(round)
    await sleep(clock, ms)
    return answer
  }
  const store: Store = {
    enqueue: (jobs) => inner.enqueue(jobs),
    exchange: (round) => {
      const answer = exchange(round)
      underWay = answer
      return answer
    },
    beat: async (beat) => {
      await underWay
      return inner.beat(beat)
    },
    look: (look) => inner.look(look),
    recover: (observation) => inner.recover(observation),
    nextDue: (filter) => inner.nextDue(filter),
    close: () => inner.close(),
  }
  return { store, rounds }
}

it('a reservation that always takes longer than the lease is not given back and taken again for ever', async () => {
  const runs: number[] = []
  const shop = await Workshop.open({ note: (_, { attempt }) => void runs.push(attempt) })
  const { store, rounds } = slow(shop, 5_000)
  const id = await shop.add('note')
  const worker = await shop.work({ retryAfterMs }, store)
  await shop.clock.advance(30_000)
  expect(runs).toEqual([1])
  expect(shop.all('job.done')).toMatchObject([{ id, attempt: 1 }])
  expect(rounds.flatMap(({ disown }) => disown)).toEqual([])
  await shop.drain(worker, 20_000)
})
