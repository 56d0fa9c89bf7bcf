import { expect, it, onTestFinished } from 'vitest'
import { Attempt, type AttemptSetting, AttemptTimeout, Interrupted, LeaseLost } from '../../src/core/attempt.ts'
import { type Envelope, encodeEnvelope } from '../../src/core/envelope.ts'
import { EventBus, type Events } from '../../src/core/events.ts'
import { type HandlerSource, handlerBrand } from '../../src/core/handler.ts'
import { type JobContext, release } from '../../src/core/job.ts'
import { Registry } from '../../src/core/registry.ts'
import type { Reservation } from '../../src/core/store/store.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { Gate } from './support/workshop.ts'

/** One attempt at a job named "job", not yet run. */
async function anAttempt(
  handle: (payload: unknown, context: JobContext) => unknown,
  {
    terms = {},
    row = {},
    setting = {},
  }: { terms?: Partial<Envelope>; row?: Partial<Reservation>; setting?: Partial<AttemptSetting> } = {},
) {
  const clock = new ManualClock()
  onTestFinished(() => expect(clock.pending).toBe(0))
  const events = new EventBus()
  const heard: (keyof Events)[] = []
  events.onAny((name) => heard.push(name))
  const registry = await Registry.open({ jobs: [{ kind: 'map', entries: [['job', handle]] }], root: '/', file: null })
  const now = clock.now()
  const open = { tries: null, backoff: null, timeoutMs: null, maxCrashes: 3, unique: null, context: null, trace: null }
  const envelope = encodeEnvelope({ ...open, job: 'job', payloadText: '{"n":1}', dispatchedAt: now, ...terms })
  const reservation: Reservation = {
    ...{ id: 7, fence: 1, job: 'job', queue: 'default', priority: 0, availableAt: now, enqueuedAt: now },
    ...{ failures: 0, crashes: 0, suspect: false, envelope },
    ...row,
  }
  const stuck: Attempt[] = []
  const attempt: Attempt = new Attempt(reservation, {
    ...{
      registry,
      clock,
      events,
      tries: 2,
      backoff: { kind: 'none' },
      timeoutMs: null,
      maxPayloadBytes: 1024 * 1024,
      gaveUp: new AbortController().signal,
      workerId: () => 3,
      onBound: () => () => {},
      onDecided: () => {},
      onReturned: () => {},
    },
    onStuck: () => stuck.push(attempt),
    ...setting,
  })
  return { attempt, clock, heard, stuck }
}

it('terms come from the envelope, and from the worker where the envelope leaves them open', async () => {
  const { attempt } = await anAttempt(() => {}, { row: { failures: 1 } })
  expect(attempt).toMatchObject({ attempt: 2, tries: 2, backoff: { kind: 'none' }, timeoutMs: null })
  await attempt.run()
  expect(attempt).toMatchObject({ attempt: 2, tries: 2, backoff: { kind: 'none' }, timeoutMs: null })

  const backoff = { kind: 'fixed', delayMs: 5 } as const
  const bound = await anAttempt(() => {}, { terms: { tries: 9, backoff, timeoutMs: 60_000 } })
  await bound.attempt.run()
  expect(bound.attempt).toMatchObject({ attempt: 1, tries: 9, backoff, timeoutMs: 60_000 })
})

it('nothing runs before run() is called', async () => {
  const gate = new Gate()
  const { attempt, clock, heard } = await anAttempt(gate.ignoring)
  await clock.advance(60_000)
  expect(gate.runs).toBe(0)
  expect(heard).toEqual([])
  gate.open()
  await attempt.run()
  expect(gate.runs).toBe(1)
})

it('an attempt that is interrupted before it runs starts nothing, not even the reading of its envelope', async () => {
  const { attempt, heard } = await anAttempt(() => expect.unreachable(), { row: { envelope: 'poison' } })
  attempt.interrupt()
  await attempt.run()
  expect(await attempt.outcome).toEqual({ kind: 'interrupted' })
  expect(heard).toEqual([])
})

it.each<[string, () => unknown, object]>([
  ['returns', () => 'anything', { kind: 'done' }],
  ['throws', () => Promise.reject(new Error('boom')), { kind: 'threw', error: new Error('boom') }],
  [
    'throws at once',
    () => {
      throw new Error('boom')
    },
    { kind: 'threw', error: new Error('boom') },
  ],
  ['releases', () => release('5m'), { kind: 'released', delay: '5m' }],
  ['releases without a delay', () => release(), { kind: 'released', delay: null }],
])('a handler that %s decides its outcome', async (_, end, outcome) => {
  const { attempt } = await anAttempt(end)
  await attempt.run()
  expect(await attempt.outcome).toEqual(outcome)
})

it('log and release may be taken out of the context', async () => {
  const { attempt, heard } = await anAttempt((_, { log, release: giveBack }) => {
    log('taken out')
    giveBack('1m')
  })
  await attempt.run()
  expect(await attempt.outcome).toEqual({ kind: 'released', delay: '1m' })
  expect(heard).toEqual(['job.started', 'job.log'])
})

it('the wait runs from the due time to the start, and is never negative; the time of the run is monotonic', async () => {
  const gate = new Gate()
  const { attempt, clock } = await anAttempt(gate.ignoring, { row: { availableAt: Date.UTC(2026, 0, 5, 9) - 4_000 } })
  const running = attempt.run()
  await clock.advance(1_500)
  clock.set(clock.now() - 3_600_000)
  expect(attempt).toMatchObject({ waitMs: 4_000, ms: 1_500 })
  gate.open()
  await running
  await clock.advance(9_000)
  expect(attempt.ms).toBe(1_500)

  const early = await anAttempt(() => {}, { row: { availableAt: Date.UTC(2030, 0, 1) } })
  await early.attempt.run()
  expect(early.attempt.waitMs).toBe(0)
})

it('interrupt gives a handler 5 s; then the outcome is clear and the run is not over', async () => {
  const gate = new Gate()
  const { attempt, clock, heard, stuck } = await anAttempt(gate.ignoring)
  let isOver = false
  const running = attempt.run().then(() => {
    isOver = true
  })
  await gate.entered
  attempt.interrupt()
  expect((await gate.entered).reason).toBeInstanceOf(Interrupted)
  await clock.advance(4_999)
  expect(attempt).toMatchObject({ isDecided: false, isStuck: false })
  await clock.advance(1)
  expect(await attempt.outcome).toEqual({ kind: 'interrupted' })
  expect(attempt).toMatchObject({ isDecided: true, isStuck: true })
  expect(stuck).toEqual([attempt])
  expect(heard).toEqual(['job.started', 'job.stuck'])
  expect(isOver).toBe(false)
  gate.open()
  await running
  expect(attempt.isStuck).toBe(false)
})

it('whatever an interrupted handler throws, it was interrupted; what it returns, it has done', async () => {
  for (const [end, outcome] of [
    [(gate: Gate) => gate.breakWith(new Error('cleaning up failed')), { kind: 'interrupted' }],
    [(gate: Gate) => gate.open(), { kind: 'done' }],
  ] as const) {
    const gate = new Gate()
    const { attempt } = await anAttempt(gate.ignoring)
    const running = attempt.run()
    await gate.entered
    attempt.interrupt()
    end(gate)
    await running
    expect(await attempt.outcome).toEqual(outcome)
  }
})

it('an interrupt after the timeout does not make it free, and a timeout after an interrupt does not make it cost', async () => {
  const timedOut = new Gate()
  const first = await anAttempt(timedOut.ignoring, { terms: { timeoutMs: 1_000 } })
  const firstRun = first.attempt.run()
  await first.clock.advance(1_000)
  first.attempt.interrupt()
  timedOut.breakWith(new Error('aborted'))
  await firstRun
  expect(await first.attempt.outcome).toMatchObject({ kind: 'threw', error: expect.any(AttemptTimeout) })

  const interrupted = new Gate()
  const second = await anAttempt(interrupted.ignoring, { terms: { timeoutMs: 1_000 } })
  const secondRun = second.attempt.run()
  await interrupted.entered
  second.attempt.interrupt()
  await second.clock.advance(2_000)
  interrupted.breakWith(new Error('aborted'))
  await secondRun
  expect(await second.attempt.outcome).toEqual({ kind: 'interrupted' })
})

it('a lost attempt is decided at once, and its signal says why', async () => {
  const gate = new Gate()
  const { attempt } = await anAttempt(gate.obeying)
  const running = attempt.run()
  const signal = await gate.entered
  attempt.lose()
  expect(attempt.isDecided).toBe(true)
  expect(signal.reason).toBeInstanceOf(LeaseLost)
  await running
  expect(await attempt.outcome).toEqual({ kind: 'lost' })
})

it('an attempt that is lost while its module loads does not run', async () => {
  const { attempt, heard } = await anAttempt(() => expect.unreachable())
  const running = attempt.run()
  attempt.lose()
  await running
  expect(await attempt.outcome).toEqual({ kind: 'lost' })
  expect(heard).toEqual([])
})

it('an error can be charged once, and not after the end', async () => {
  const gate = new Gate()
  const { attempt } = await anAttempt(gate.obeying)
  const running = attempt.run()
  await gate.entered
  expect(attempt.charge(new Error('first'))).toBe(true)
  expect(attempt.charge(new Error('second'))).toBe(false)
  await running
  expect(await attempt.outcome).toEqual({ kind: 'threw', error: new Error('first') })
})

it('a handler finds its attempt in its asynchronous context, and nobody else does', async () => {
  const seen: (Attempt | undefined)[] = []
  const { attempt } = await anAttempt(async () => {
    seen.push(Attempt.current())
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(Attempt.current())
  })
  await attempt.run()
  expect(seen).toEqual([attempt, attempt])
  expect(Attempt.current()).toBeUndefined()
})

it("a layer's handler with a grace of 10 s is not stuck after 9 s, learns its fence and worker, and keeps output", async () => {
  const gate = new Gate()
  let seen: readonly unknown[] = []
  const source: HandlerSource = {
    terms: {},
    [handlerBrand]: () => ({
      ...{ terms: {}, hasSchema: false, failed: null, toPayload: null, graceMs: 10_000 },
      check: (value) => ({ ok: true, value }),
      run: async (payload, context) => {
        seen = [context.fence, context.worker]
        context.keepOutput('last words')
        return gate.ignoring(payload, context)
      },
    }),
  }
  const { attempt, clock, stuck } = await anAttempt(source as never, { row: { fence: 5 } })
  const running = attempt.run()
  await gate.entered
  attempt.interrupt()
  await clock.advance(9_000)
  expect(stuck).toEqual([])
  await clock.advance(1_000)
  expect(stuck).toEqual([attempt])
  gate.open()
  await running
  expect([seen, attempt.output]).toEqual([[5, 3], 'last words'])
})

it('a row whose failures are below zero does not start at an attempt below 1', async () => {
  const { attempt } = await anAttempt(() => {}, { row: { failures: -5 } })
  expect(attempt.attempt).toBe(1)
})

it('a number that JavaScript cannot hold is Infinity in the payload, and whole in payloadText', async () => {
  const seen: unknown[] = []
  const { attempt } = await anAttempt((payload, { payloadText }) => seen.push(payload, payloadText), {
    terms: { payloadText: '{"n":1e400}' },
  })
  await attempt.run()
  expect(seen).toEqual([{ n: Number.POSITIVE_INFINITY }, '{"n":1e400}'])
})
