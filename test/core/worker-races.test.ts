import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, it } from 'vitest'
import type { BeatOptions, StartBeat } from '../../src/core/beat.ts'
import type { JobContext } from '../../src/core/job.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import type { Sight, Store } from '../../src/core/store/store.ts'
import { FaultyStore } from './support/faulty-store.ts'
import { Gate, Workshop } from './support/workshop.ts'

// What the simulation of test/guarantees/simulation has found, each as the shortest story that shows it.

it('a reservation that commits after its worker has left is not held for ever', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('note')
  const store = new FaultyStore(shop.store)
  store.exchangeFault = (number) => (number === 1 ? 'unknown, not done' : 'none')
  const worker = await shop.work({ name: 'gone', retryAfterMs: 30_000 }, store)
  await shop.drain(worker, 1_000)
  await shop.store.exchange(store.rounds[0] as (typeof store.rounds)[number])
  expect(shop.state.jobs.get(id)?.worker).not.toBeNull()

  const heir = await shop.work({ name: 'heir', retryAfterMs: 30_000 })
  await shop.clock.advance(60_000)
  expect(shop.all('job.done')).toMatchObject([{ id, attempt: 1 }])
  await shop.drain(heir)
})

it('a look that was asked under an old id does not end the membership that has begun since', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  const answer = Promise.withResolvers<void>()
  const looking: Store = heldLook(store, answer.promise)
  const worker = await shop.work({ retryAfterMs: 30_000 }, looking)
  await shop.clock.advance(1_500)
  for (const row of shop.state.workers.values()) row.death = { at: 0, verdict: 'free', blamed: new Map() }
  // The next beat finds the death and joins anew; the look that is still under way was about the old row.
  await shop.clock.advance(10_000)
  answer.resolve()
  await shop.clock.advance(1_000)
  expect(store.beats.filter(({ kind }) => kind === 'joining')).toHaveLength(2)
  await shop.drain(worker)
})

function boundTo(store: Store, key: keyof Store): unknown {
  const member = store[key]
  return typeof member === 'function' ? member.bind(store) : member
}

/** The second look is answered late, and with what was true for the row that it was asked about. */
function heldLook(store: Store, answer: Promise<void>): Store {
  let looks = 0
  return new Proxy(store, {
    get: (target, key: keyof Store) => {
      if (key !== 'look') return boundTo(target, key)
      return async (look: Parameters<Store['look']>[0]): Promise<Sight> => {
        if (++looks !== 2) return target.look(look)
        await answer
        return target.look(look)
      }
    },
  })
}

it('a beat that hangs when an outage ends does not cost its worker its job', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  await shop.add('long')
  const held = new FaultyStore(shop.store)
  const judging = new FaultyStore(openMemoryStore({ clock: shop.clock, state: shop.state }).store)
  const holder = await shop.work({ name: 'holder', retryAfterMs: 30_000 }, held)
  const judge = await shop.work({ name: 'judge', retryAfterMs: 30_000 }, judging)
  held.cut()
  judging.cut()
  await shop.clock.advance(39_000)
  // The holder's beat at 40 s hangs for 9 s though the store is back, and breaks.
  held.beatFault = () => {
    held.beatFault = () => 'none'
    held.holdAnswer = () => new Promise((resolve) => shop.clock.after(9_000, resolve))
    return 'unknown, not done'
  }
  held.exchangeFault = held.lookFault = () => 'none'
  judging.mend()
  await shop.clock.advance(2_000)
  held.holdAnswer = async () => {}
  await shop.clock.advance(60_000)
  expect(shop.all('workers.dead')).toEqual([])
  gate.open()
  await shop.clock.advance(1_000)
  expect(shop.all('job.done')).toHaveLength(1)
  for (const worker of [holder, judge]) await shop.drain(worker)
})

it('a worker that stops beside a handler that ignores its error leaves no timer behind', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({
    long: (payload, context) => {
      shop.clock.after(
        100,
        AsyncLocalStorage.bind(() => worker.attribute(new Error('from a timer'))),
      )
      return gate.ignoring(payload, context)
    },
  })
  await shop.add('long')
  const worker = await shop.work()
  await shop.clock.advance(1_000)
  expect(shop.all('job.failed')).toHaveLength(1)
  await shop.drain(worker)
  expect(shop.clock.pending).toBe(0)
})

it('a worker whose beats come from a thread joins anew though its first try to do so failed', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  let hear: BeatOptions['heard'] = () => {}
  let state: BeatOptions['state'] = () => expect.unreachable()
  const startBeat: StartBeat = (options) => {
    ;({ heard: hear, state } = options)
    return { beatNow: () => {}, jobBegins: () => {}, stop: async () => {} }
  }
  const worker = await shop.work({}, store, { startBeat })
  const { worker: first } = state()
  shop.state.workers.delete(first)
  store.beatFault = () => 'unreachable'
  hear({ worker: first, known: false, sentAt: 0 })
  await shop.clock.advance(5_000)
  expect(shop.state.workers.size).toBe(0)

  store.mend()
  hear({ worker: state().worker, known: false, sentAt: shop.clock.monotonic() })
  await shop.clock.advance(0)
  expect([...shop.state.workers.keys()]).toEqual([state().worker])
  await shop.add('note')
  await shop.clock.advance(5_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 1 })
})

it('a failure that was offered in doubt and refused because the job is done elsewhere does not call the hook', async () => {
  const gate = new Gate()
  let runs = 0
  const hooks: number[] = []
  const shop = await Workshop.open({
    flaky: {
      handle: (...call: Parameters<Gate['ignoring']>) => (++runs === 1 ? gate.ignoring(...call) : 'fine'),
      failed: (_: unknown, { id }: JobContext) => void hooks.push(id),
    },
  })
  const id = await shop.add('flaky')
  const store = new FaultyStore(shop.store)
  const first = await shop.work({ name: 'first', retryAfterMs: 30_000 }, store)
  await shop.clock.advance(1_000)
  store.cut()
  store.exchangeFault = () => 'unknown, not done'
  gate.breakWith(new Error('not yet'))
  const second = await shop.work({ name: 'second', retryAfterMs: 30_000 })
  await shop.clock.advance(60_000)
  expect(shop.all('job.done')).toMatchObject([{ id }])

  // The refusal comes before any beat that would tell the first one of its death.
  store.exchangeFault = () => 'none'
  await shop.clock.advance(6_000)
  expect(shop.all('job.lost')).toMatchObject([{ id }])
  expect(shop.all('job.failed')).toEqual([])
  expect(hooks).toEqual([])
  store.mend()
  await shop.clock.advance(20_000)
  for (const worker of [first, second]) await shop.drain(worker)
})

it('a lost reservation that commits while its worker is frozen for longer than its lease is freed when it goes on', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('note')
  const store = new FaultyStore(shop.store)
  store.exchangeFault = (number) => (number === 1 ? 'unknown, not done' : 'none')
  const worker = await shop.work({ retryAfterMs: 3_000 }, store)
  worker.quiet()
  const thawed = Promise.withResolvers<void>()
  // The round that disowns the lost batch is done, and its answer waits until the worker goes on.
  store.holdAnswer = () => thawed.promise
  await shop.clock.advance(200)
  expect(store.rounds.at(-1)?.disown).toEqual([1])
  await shop.store.exchange(store.rounds[0] as (typeof store.rounds)[number])
  await shop.clock.advance(5_000)
  expect(shop.state.jobs.get(id)?.worker).not.toBeNull()
  store.holdAnswer = async () => {}
  thawed.resolve()
  await shop.clock.advance(5_000)
  expect(shop.state.jobs.get(id)?.worker).toBeNull()
  await shop.drain(worker)
})
