import { expect, it } from 'vitest'
import { AttemptTimeout } from '../../src/core/attempt.ts'
import { type JobContext, NonRetryable } from '../../src/core/job.ts'
import { FaultyStore } from './support/faulty-store.ts'
import { Gate, Workshop } from './support/workshop.ts'

const boom = (): never => {
  throw new Error('boom')
}

it('the failed() hook runs once, after the last attempt, with the error, the context and the payload', async () => {
  const calls: unknown[] = []
  const failed = (error: unknown, { id, attempt, tries, payloadText }: JobContext, payload: unknown): void => {
    calls.push([(error as Error).message, { id, attempt, tries, payloadText }, payload])
  }
  const shop = await Workshop.open({ flaky: { handle: boom, failed } })
  const id = await shop.add('flaky', { tries: 3, backoff: { kind: 'none' }, payload: { n: 1 } })
  await shop.workUntilEmpty({ stopWhenEmpty: false, maxJobs: 3 }, { withinMs: 1_000 })
  expect(calls).toEqual([['boom', { id, attempt: 3, tries: 3, payloadText: '{"n":1}' }, { n: 1 }]])
})

it('the hook runs after the failure is committed', async () => {
  const seen: unknown[] = []
  const shop = await Workshop.open({
    flaky: { handle: boom, failed: (_, { id }) => seen.push([shop.state.failed.has(id), shop.state.jobs.has(id)]) },
  })
  await shop.add('flaky')
  await shop.workUntilEmpty()
  expect(seen).toEqual([[true, false]])
})

it('the hook waits until a store that is away has written the failure', async () => {
  const calls: number[] = []
  const shop = await Workshop.open({ flaky: { handle: boom, failed: () => calls.push(shop.elapsedMs) } })
  await shop.add('flaky')
  const store = new FaultyStore(shop.store)
  store.exchangeFault = () => (shop.all('job.started').length > 0 && shop.elapsedMs < 20_000 ? 'unreachable' : 'none')
  const worker = await shop.work({}, store)
  await shop.clock.advance(30_000)
  expect(calls).toHaveLength(1)
  expect(calls[0]).toBeGreaterThanOrEqual(20_000)
  await shop.drain(worker)
})

it('the hook does not run where the fence refused the failure', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ flaky: { handle: gate.ignoring, failed: () => expect.unreachable() } })
  const id = await shop.add('flaky')
  const worker = await shop.work()
  // What another worker's recovery and reservation would have done.
  Object.assign(shop.state.jobs.get(id) as object, { fence: 7, worker: 99 })
  gate.breakWith(new Error('boom'))
  await shop.clock.advance(0)
  expect(shop.all('job.lost')).toMatchObject([{ id }])
  expect(shop.all('hook.failed')).toEqual([])
  expect(await shop.drain(worker)).toMatchObject({ lost: 1, failed: 0 })
})

it('NonRetryable and a spent crash limit call the hook too', async () => {
  const calls: unknown[] = []
  const failed = (error: unknown, _: JobContext, payload: unknown): void =>
    void calls.push([(error as Error).message, payload])
  const never = (): never => {
    throw new NonRetryable('never')
  }
  const shop = await Workshop.open({ never: { handle: never, failed }, deadly: { handle: boom, failed } })
  await shop.add('never', { tries: 5, payload: 1 })
  const id = await shop.add('deadly', { tries: 5, payload: 2 })
  Object.assign(shop.state.jobs.get(id) as object, { crashes: 3 })
  await shop.workUntilEmpty()
  expect(calls).toEqual([
    ['never', 1],
    ['killed its worker 3 times', 2],
  ])
})

it('the hook does not run for poison, not even where only the schema refused, and cannot for unknown jobs', async () => {
  // A schema that would accept at a second look: nobody may take one.
  let looks = 0
  const validate = () => (++looks === 1 ? { issues: [{ message: 'no' }] } : { value: 1 })
  const schema = { '~standard': { version: 1 as const, vendor: 'test', validate } }
  const calls: unknown[] = []
  const failed = (error: unknown): void => void calls.push(error)
  const shop = await Workshop.open({
    note: { handle: boom, failed },
    strict: { schema: schema as never, handle: boom, failed },
  })
  await shop.add('note', { text: '{}' })
  await shop.add('strict')
  await shop.add('unknown')
  expect(await shop.workUntilEmpty()).toMatchObject({ failed: 3 })
  expect(shop.all('job.failed').map(({ reason }) => reason)).toEqual(['poison', 'poison', 'unknown'])
  expect(calls).toEqual([])
  expect(looks).toBe(1)
})

it('a hook that throws is told of and changes nothing', async () => {
  const failed = (): never => {
    throw new RangeError('the hook broke')
  }
  const shop = await Workshop.open({ flaky: { handle: boom, failed }, note: () => {} })
  const id = await shop.add('flaky')
  await shop.add('note')
  expect(await shop.workUntilEmpty()).toMatchObject({ failed: 1, done: 1 })
  expect(shop.all('hook.failed')).toMatchObject([{ id, error: { type: 'RangeError', message: 'the hook broke' } }])
  expect(shop.state.failed.get(id)?.error).toBe('boom')
})

it('a drain waits for a hook', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ flaky: { handle: boom, failed: (_, context) => gate.obeying(null, context) } })
  await shop.add('flaky')
  const worker = await shop.work({ stopWhenEmpty: true })
  await shop.clock.advance(20_000)
  expect(shop.all('worker.stopped')).toEqual([])
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ failed: 1 })
  expect(shop.all('hook.failed')).toEqual([])
})

it.each([
  ['30 s', null, 30_000, 'failed() did not return within 30s'],
  ['the timeout of its job, 3 s', 3_000, 3_000, 'failed() did not return within 3s'],
])(
  'a hook that hangs is given up on after %s: signal, one event, and the worker ends',
  async (_, timeoutMs, boundMs, message) => {
    const gate = new Gate()
    const shop = await Workshop.open({
      flaky: { handle: boom, failed: (_error, context) => gate.ignoring(null, context) },
    })
    await shop.add('flaky', { timeoutMs })
    const worker = await shop.work()
    worker.drain()
    await shop.clock.advance(boundMs - 1)
    expect((await gate.entered).aborted).toBe(false)
    expect(await shop.finished(worker, 1)).toMatchObject({ failed: 1 })
    expect((await gate.entered).reason).toBeInstanceOf(AttemptTimeout)
    expect(shop.all('hook.failed')).toMatchObject([{ error: { message } }])
  },
)

it('an aborted worker waits 5 s for a hook and no longer', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ flaky: { handle: boom, failed: (_, context) => gate.ignoring(null, context) } })
  await shop.add('flaky', { timeoutMs: 3_600_000 })
  const worker = await shop.work()
  worker.abort()
  await shop.clock.advance(4_999)
  expect(shop.all('worker.stopped')).toEqual([])
  expect(await shop.finished(worker, 1)).toMatchObject({ failed: 1 })
  expect((await gate.entered).aborted).toBe(true)
  expect(shop.all('hook.failed')).toMatchObject([{ error: { type: 'Interrupted' } }])
})

it('other jobs run while a hook runs', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({
    flaky: { handle: boom, failed: (_, context) => gate.obeying(null, context) },
    note: () => {},
  })
  await shop.add('flaky')
  await shop.add('note')
  const worker = await shop.work()
  await shop.clock.advance(1_000)
  expect(shop.all('job.done')).toMatchObject([{ job: 'note' }])
  gate.open()
  await shop.drain(worker)
})
