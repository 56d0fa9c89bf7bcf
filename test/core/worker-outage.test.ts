import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LeaseLost } from '../../src/core/attempt.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import type { JobId } from '../../src/core/store/store.ts'
import { type Fault, FaultyStore } from './support/faulty-store.ts'
import { Gate, Workshop } from './support/workshop.ts'

/** 24 jobs of three kinds, each of which takes so long, and what has become of them. */
async function aDayOfWork(takesMs = 0) {
  const runs = new Map<JobId, number>()
  const count = (id: JobId): number => {
    const run = (runs.get(id) ?? 0) + 1
    runs.set(id, run)
    return run
  }
  const hooks: JobId[] = []
  const pass = (): Promise<void> | void => {
    if (takesMs > 0) return new Promise((resolve) => void shop.clock.after(takesMs, resolve))
  }
  const shop = await Workshop.open({
    good: async (_, { id }) => {
      count(id)
      await pass()
    },
    second: async (_, { id }) => {
      const isFirst = count(id) === 1
      await pass()
      if (isFirst) throw new Error('not yet')
    },
    bad: {
      handle: async (_, { id }) => {
        count(id)
        await pass()
        throw new Error('never')
      },
      failed: (_, { id }) => hooks.push(id),
    },
  })
  for (let round = 0; round < 8; round++) {
    await shop.add('good')
    await shop.add('second', { tries: 2, backoff: { kind: 'none' } })
    await shop.add('bad', { tries: 1 })
  }
  return { shop, runs, hooks, store: new FaultyStore(shop.store) }
}

/** Every job ended, each exactly once, each as often run as it should have been, and everybody was told once. */
function expectAllSettledOnce({ shop, runs, hooks }: Awaited<ReturnType<typeof aDayOfWork>>): void {
  const idsOf = (events: readonly { readonly id: JobId }[]): readonly JobId[] =>
    events.map(({ id }) => id).sort((a, b) => a - b)
  const ids = Array.from({ length: 24 }, (_, index) => index + 1)
  const bad = ids.filter((id) => id % 3 === 0)
  expect(shop.state.jobs.size).toBe(0)
  expect(idsOf(shop.all('job.done'))).toEqual(ids.filter((id) => id % 3 !== 0))
  expect(idsOf(shop.all('job.retry'))).toEqual(ids.filter((id) => id % 3 === 2))
  expect(idsOf(shop.all('job.failed'))).toEqual(bad)
  expect([...shop.state.failed.keys()].sort((a, b) => a - b)).toEqual(bad)
  expect([...hooks].sort((a, b) => a - b)).toEqual(bad)
  expect(ids.map((id) => runs.get(id))).toEqual(ids.map((id) => (id % 3 === 2 ? 2 : 1)))
  expect(shop.all('job.lost')).toEqual([])
}

const faults = ['unreachable', 'unknown, not done', 'unknown, done'] as const

/** Jobs of 100 ms come one by one, and those that take no time in ever larger batches. */
const places = [
  ...Array.from({ length: 20 }, (_, index) => [index + 1, 100] as const),
  ...Array.from({ length: 6 }, (_, index) => [index + 1, 0] as const),
]

it.each(faults.flatMap((fault) => places.map(([broken, takesMs]) => [broken, takesMs, fault] as const)))(
  'exchange %d among jobs of %d ms breaking with "%s" loses no job, settles none twice, and is one outage',
  async (broken, takesMs, fault) => {
    const day = await aDayOfWork(takesMs)
    const { shop, store } = day
    store.exchangeFault = (number) => (number === broken ? fault : 'none')
    const report = await shop.workUntilEmpty({ concurrency: 2 }, { withinMs: 30_000, store })
    expect(store.rounds.length).toBeGreaterThan(broken)
    expect(report).toMatchObject({ reason: 'empty', done: 16, retried: 8, failed: 8, lost: 0, unwritten: [] })
    expectAllSettledOnce(day)
    expect(shop.all('store.lost')).toHaveLength(1)
    expect(shop.all('store.back')).toHaveLength(1)
  },
)

it('whatever sequence of faults befalls its exchanges, every job ends exactly once', async () => {
  const anyFault = fc.constantFrom<Fault>('none', 'none', ...faults)
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyFault, { maxLength: 60 }),
      fc.integer({ min: 1, max: 4 }),
      async (sequence, concurrency) => {
        const day = await aDayOfWork()
        day.store.exchangeFault = (number) => sequence[number - 1] ?? 'none'
        const worker = await day.shop.work({ concurrency, stopWhenEmpty: true }, day.store)
        await day.shop.finished(worker, 400_000)
        expectAllSettledOnce(day)
        expect(day.shop.all('store.back')).toHaveLength(day.shop.all('store.lost').length)
      },
    ),
    { numRuns: 30 },
  )
})

it('an outage of 60 s is one event when it starts and one when it ends, and is met every 5 s or less often', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  await shop.clock.advance(5_000)
  store.cut()
  const before = store.rounds.length
  await shop.clock.advance(60_000)
  expect(store.rounds.length - before).toBeLessThan(30)
  store.mend()
  await shop.clock.advance(10_000)
  expect(shop.all('store.lost')).toEqual([{ message: 'cannot reach the store' }])
  const [back] = shop.all('store.back')
  expect(back?.outageMs).toBeGreaterThanOrEqual(59_000)
  expect(shop.all('store.back')).toHaveLength(1)
  await shop.drain(worker)
})

it('a look for the next due job that fails is an outage like any other, and work goes on after it', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  store.lookFault = () => 'unreachable'
  await shop.clock.advance(1_000)
  store.mend()
  await shop.add('note')
  await shop.clock.advance(10_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 1 })
  expect(shop.all('store.back')).toHaveLength(shop.all('store.lost').length)
})

it('results that could not be written are kept and offered again, and nothing is reserved meanwhile', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying, note: () => {} })
  const id = await shop.add('long')
  await shop.add('note', { due: { delayMs: 1_000 } })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  store.cut()
  gate.open()
  await shop.clock.advance(30_000)
  store.mend()
  await shop.clock.advance(10_000)
  const offers = store.rounds.filter(({ settle }) => settle.some((settlement) => settlement.id === id))
  expect(offers.length).toBeGreaterThan(3)
  expect(offers.slice(1).map(({ reserve }) => reserve)).toEqual(offers.slice(1).map(() => null))
  expect(shop.all('job.done').map(({ job }) => job)).toEqual(['long', 'note'])
  await shop.drain(worker)
})

it('results of other jobs that end during the outage are kept with them', async () => {
  const gates = [new Gate(), new Gate(), new Gate()]
  const shop = await Workshop.open({ long: (index: number, context) => gates[index]?.obeying(null, context) })
  for (const index of [0, 1, 2]) await shop.add('long', { payload: index })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({ concurrency: 3 }, store)
  store.cut()
  for (const gate of gates) {
    gate.open()
    await shop.clock.advance(7_000)
  }
  store.mend()
  await shop.clock.advance(10_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 3, lost: 0, unwritten: [] })
})

it('a drain gives up on its results a lease after the last one and names them; their jobs stay', async () => {
  const gates = [new Gate(), new Gate()]
  const shop = await Workshop.open({ long: (index: number, context) => gates[index]?.obeying(null, context) })
  const ids = [await shop.add('long', { payload: 0 }), await shop.add('long', { payload: 1 })]
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({ concurrency: 2, retryAfterMs: 90_000 }, store)
  store.cut()
  worker.drain()
  gates[0]?.open()
  await shop.clock.advance(60_000)
  gates[1]?.open()
  await shop.clock.advance(89_000)
  expect(shop.all('worker.stopped')).toEqual([])
  expect(await shop.finished(worker, 10_000)).toMatchObject({ reason: 'asked', done: 0, unwritten: ids })
  expect([...shop.state.jobs.keys()]).toEqual(ids)
  shop.state.workers.clear()
})

it('a drain waits for the store to write its results, when that comes back in time', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  await shop.add('long')
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  store.cut()
  worker.drain()
  gate.open()
  await shop.clock.advance(80_000)
  store.mend()
  expect(await shop.finished(worker, 10_000)).toMatchObject({ done: 1, unwritten: [] })
})

it('a store that fails for 2 s at the last moment does not leave the row of a worker behind', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  await shop.add('note')
  const worker = await shop.work({}, store)
  let failures = 0
  store.beatFault = ({ kind }) => (kind === 'leaving' && failures++ < 4 ? 'unreachable' : 'none')
  worker.drain()
  expect(await shop.finished(worker, 2_000)).toMatchObject({ done: 1 })
  expect(failures).toBe(5)
  expect(shop.state.workers.size).toBe(0)
})

it('a store that does not come back does not keep a worker from ending', async () => {
  const shop = await Workshop.open()
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  store.beatFault = ({ kind }) => (kind === 'leaving' ? 'unreachable' : 'none')
  worker.drain()
  await shop.finished(worker, 3_000)
  expect(shop.state.workers.size).toBe(1)
  shop.state.workers.clear()
})

it('a drain ends the pause of an outage at once', async () => {
  const shop = await Workshop.open()
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  await shop.clock.advance(5_000)
  store.cut()
  await shop.clock.advance(60_000)
  expect(await shop.drain(worker)).toMatchObject({ reason: 'asked' })
  shop.state.workers.clear()
})

it('a job whose reservation was committed unheard comes back, though the worker is quiet from then on', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('note')
  const store = new FaultyStore(shop.store)
  store.exchangeFault = (number) => (number === 1 ? 'unknown, done' : 'none')
  const worker = await shop.work({}, store)
  worker.quiet()
  expect(shop.state.jobs.get(id)?.worker).not.toBeNull()
  await shop.clock.advance(200)
  expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, failures: 0, crashes: 0 })
  expect(store.rounds[1]).toMatchObject({ disown: [store.rounds[0]?.reserve?.batch], reserve: null })
  await shop.drain(worker)
})

it('a reservation that commits 20 s after its answer was given up on comes back within one beat', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('note')
  const store = new FaultyStore(shop.store)
  store.exchangeFault = (number) => (number === 1 ? 'unknown, not done' : 'none')
  const worker = await shop.work({}, store)
  worker.quiet()
  await shop.clock.advance(20_500)
  await shop.store.exchange(store.rounds[0] as (typeof store.rounds)[number])
  expect(shop.state.jobs.get(id)?.worker).not.toBeNull()
  await shop.clock.advance(10_000)
  expect(shop.state.jobs.get(id)?.worker).toBeNull()
  await shop.drain(worker)
})

it('a lost batch is disowned for one lease and then forgotten', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  store.exchangeFault = (number) => (number === 1 ? 'unknown, not done' : 'none')
  const worker = await shop.work({ retryAfterMs: 90_000 }, store)
  await shop.clock.advance(89_000)
  expect(store.rounds.at(-1)?.disown).toEqual([1])
  await shop.clock.advance(5_000)
  expect(store.rounds.at(-1)?.disown).toEqual([])
  await shop.drain(worker)
})

/** A worker cut off from the store until a second one has declared it dead. */
async function declaredDead(job: (gate: Gate) => Gate['ignoring'] = (gate) => gate.obeying) {
  const gate = new Gate()
  let runs = 0
  const handle: Gate['ignoring'] = (...call) => (++runs === 1 ? job(gate)(...call) : Promise.resolve('fine'))
  const shop = await Workshop.open({ long: handle, note: () => {} })
  const id = await shop.add('long')
  const store = new FaultyStore(shop.store)
  const first = await shop.work({ name: 'first', concurrency: 2 }, store)
  store.cut()
  const second = await shop.work(
    { name: 'second', except: ['note'] },
    openMemoryStore({ clock: shop.clock, state: shop.state }).store,
  )
  return { gate, shop, id, store, first, second }
}

it('a worker that was silent for its lease of 90 s is declared dead, and its job runs elsewhere', async () => {
  const { shop, id, store, first, second } = await declaredDead()
  await shop.clock.advance(90_000)
  expect(shop.all('workers.dead')).toEqual([])
  await shop.clock.advance(20_000)
  expect(shop.all('workers.dead')).toEqual([{ count: 1, freed: 1 }])
  expect(shop.all('job.done')).toMatchObject([{ id, attempt: 1 }])
  store.mend()
  await shop.clock.advance(20_000)
  await shop.drain(first)
  await shop.drain(second)
})

it('a beat that finds its worker declared dead aborts its jobs, writes nothing of them, and goes on under a new id', async () => {
  const { gate, shop, id, store, first, second } = await declaredDead()
  await shop.clock.advance(110_000)
  const signal = await gate.entered
  expect(signal.aborted).toBe(false)
  store.mend()
  await shop.clock.advance(10_000)
  expect(signal.reason).toBeInstanceOf(LeaseLost)
  expect(shop.all('job.lost')).toMatchObject([{ id, attempt: 1 }])
  expect(store.rounds.flatMap(({ settle }) => settle)).toEqual([])
  const ids = store.beats.filter(({ kind }) => kind === 'joining').map(({ worker }) => worker)
  expect(new Set(ids).size).toBe(2)
  await shop.add('note')
  await shop.clock.advance(2_000)
  expect(await shop.drain(first)).toMatchObject({ done: 1, lost: 1, failed: 0 })
  expect(await shop.drain(second)).toMatchObject({ done: 1 })
})

it('a handler that ignores the loss of its lease for 5 s is stuck, and its late error changes nothing', async () => {
  const { gate, shop, id, store, first, second } = await declaredDead((held) => held.ignoring)
  await shop.clock.advance(110_000)
  store.mend()
  await shop.clock.advance(15_000)
  expect(shop.all('job.stuck')).toMatchObject([{ id }])
  gate.breakWith(new Error('late'))
  await shop.clock.advance(1_000)
  expect(shop.all('job.failed')).toEqual([])
  expect(shop.state.failed.size).toBe(0)
  expect(await shop.drain(first)).toMatchObject({ lost: 1, failed: 0, done: 0 })
  await shop.drain(second)
})

it('a result that waited in an outage until its worker was declared dead is lost and not written', async () => {
  const { gate, shop, id, store, first, second } = await declaredDead()
  gate.open()
  await shop.clock.advance(110_000)
  store.mend()
  await shop.clock.advance(15_000)
  expect(shop.all('job.lost')).toMatchObject([{ id }])
  expect(shop.all('job.done')).toHaveLength(1)
  expect(await shop.drain(first)).toMatchObject({ done: 0, lost: 1 })
  expect(await shop.drain(second)).toMatchObject({ done: 1 })
})

it('a result whose answer was lost while its worker was declared dead counts as lost, not as done', async () => {
  const { gate, shop, id, store, first, second } = await declaredDead()
  const answer = Promise.withResolvers<void>()
  store.exchangeFault = () => {
    store.holdAnswer = () => answer.promise
    return 'unknown, not done'
  }
  gate.open()
  await shop.clock.advance(110_000)
  store.holdAnswer = async () => {}
  store.mend()
  await shop.clock.advance(10_000)
  answer.resolve()
  await shop.clock.advance(10_000)
  expect(shop.all('job.lost')).toMatchObject([{ id }])
  expect(shop.all('job.done')).toHaveLength(1)
  expect(await shop.drain(first)).toMatchObject({ done: 0, lost: 1 })
  expect(await shop.drain(second)).toMatchObject({ done: 1 })
})

it('a worker whose new row cannot be written takes nothing until it is', async () => {
  const { shop, store, first, second } = await declaredDead()
  await shop.clock.advance(110_000)
  await shop.add('note')
  store.mend()
  store.beatFault = ({ kind }) => (kind === 'joining' ? 'unreachable' : 'none')
  await shop.clock.advance(60_000)
  expect(shop.all('job.started').filter(({ job }) => job === 'note')).toEqual([])
  store.mend()
  await shop.clock.advance(15_000)
  const rows = [...shop.state.workers.values()].filter(({ death }) => death === null)
  expect(rows.map(({ profile }) => profile.name).sort()).toEqual(['first', 'second'])
  expect(await shop.drain(first)).toMatchObject({ done: 1, lost: 1 })
  await shop.drain(second)
})

it('a worker that was declared dead out of the blue takes nothing either before its new row is written', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  // Its own beats are good, so it does not count itself as silent: the clock of the store jumped, say.
  for (const row of shop.state.workers.values())
    row.death = { at: shop.clock.now(), verdict: 'free', blamed: new Map() }
  store.beatFault = ({ kind }) => (kind === 'joining' ? 'unreachable' : 'none')
  await shop.clock.advance(10_000)
  await shop.add('note')
  await shop.clock.advance(25_000)
  expect(shop.all('job.started')).toEqual([])
  store.mend()
  await shop.clock.advance(15_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 1 })
})

it('a worker takes nothing more once it has been silent for a lease, and goes on when a beat comes through', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({ retryAfterMs: 30_000 }, store)
  store.beatFault = () => 'unreachable'
  await shop.clock.advance(35_000)
  await shop.add('note')
  await shop.clock.advance(60_000)
  expect(shop.all('job.started')).toEqual([])
  store.mend()
  await shop.clock.advance(15_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 1 })
})

it('a beat whose answer takes 25 s counts from when it was sent', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({ retryAfterMs: 30_000 }, store)
  const slowly = (): Promise<void> => new Promise((resolve) => shop.clock.after(25_000, resolve))
  store.beatFault = () => {
    store.holdAnswer = slowly
    return 'none'
  }
  store.exchangeFault = () => {
    store.holdAnswer = async () => {}
    return 'none'
  }
  // Sent at 10 s, answered at 35 s, the next one sent at 45 s: silent for others from 40 s on.
  await shop.clock.advance(41_000)
  await shop.add('note')
  await shop.clock.advance(25_000)
  expect(shop.all('job.started')).toEqual([])
  await shop.clock.advance(10_000)
  expect(shop.all('job.started')).toHaveLength(1)
  store.mend()
  store.holdAnswer = async () => {}
  await shop.drain(worker, 60_000)
})

it('a worker that lost the store itself does not judge its neighbours before 10 s of good contact', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const judge = new FaultyStore(shop.store)
  const silent = new FaultyStore(openMemoryStore({ clock: shop.clock, state: shop.state }).store)
  const workers = [await shop.work({ name: 'judge' }, judge), await shop.work({ name: 'silent' }, silent)]
  judge.cut()
  silent.cut()
  await shop.clock.advance(200_000)
  judge.mend()
  silent.mend()
  await shop.clock.advance(60_000)
  expect(shop.all('workers.dead')).toEqual([])
  for (const worker of workers) await shop.drain(worker)
})

it('a laptop that slept for an hour robs nobody', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  await shop.add('long')
  const workers = [await shop.work({ name: 'a' }), await shop.work({ name: 'b' })]
  await shop.clock.advance(35_000)
  // The wall clock ran on while everything, the monotonic clock included, stood still.
  shop.clock.set(shop.clock.now() + 3_600_000)
  await shop.clock.advance(60_000)
  expect(shop.all('workers.dead')).toEqual([])
  gate.open()
  await shop.clock.advance(0)
  expect(shop.all('job.done')).toHaveLength(1)
  for (const worker of workers) await shop.drain(worker)
})

it('a late result is refused by the fence, told of once, and does not stop the worker', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.ignoring, note: () => {} })
  const id = await shop.add('long')
  await shop.add('note')
  const worker = await shop.work()
  Object.assign(shop.state.jobs.get(id) as object, { fence: 7, worker: 99 })
  gate.open()
  await shop.clock.advance(1_000)
  expect(shop.all('job.lost')).toMatchObject([{ id }])
  expect(shop.state.jobs.get(id)).toMatchObject({ fence: 7, worker: 99 })
  expect(await shop.drain(worker)).toMatchObject({ done: 1, lost: 1 })
})
