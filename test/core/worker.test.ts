import { expect, it } from 'vitest'
import { NonRetryable, RetryAfter, release } from '../../src/core/job.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import { FaultyStore } from './support/faulty-store.ts'
import { brokenModule, Gate, module, Workshop } from './support/workshop.ts'

const boom = (): never => {
  throw new Error('boom')
}

it('a job runs with its payload and its context, and is gone when it is done', async () => {
  const seen: unknown[] = []
  const shop = await Workshop.open({
    greet: (payload, context) => {
      const { signal, log, release: _, ...facts } = context
      log('hello %s', 'world', { n: 1 })
      seen.push(payload, { ...facts, payloadText: context.payloadText, isAborted: signal.aborted })
    },
  })
  const id = await shop.add('greet', { payload: { userId: 7 }, tries: 3, unique: 'user:7', queue: 'mail' })
  await shop.clock.advance(250)
  const report = await shop.workUntilEmpty()
  expect(seen).toEqual([
    { userId: 7 },
    {
      ...{ id, job: 'greet', queue: 'mail', attempt: 1, tries: 3, crashes: 0, unique: 'user:7', isAborted: false },
      ...{ dispatchedAt: shop.clock.now() - 250, availableAt: shop.clock.now() - 250, payloadText: '{"userId":7}' },
    },
  ])
  expect(shop.all('job.log')).toMatchObject([{ id, text: 'hello world { n: 1 }' }])
  expect(shop.all('job.done')).toEqual([{ id, job: 'greet', queue: 'mail', attempt: 1, tries: 3, ms: 0, waitMs: 250 }])
  expect(report).toMatchObject({ reason: 'empty', done: 1, failed: 0, unwritten: [] })
  expect(shop.state.jobs.size).toBe(0)
})

it('jobs run by queue, then priority, then due time, then dispatch order', async () => {
  const order: unknown[] = []
  const shop = await Workshop.open({ note: (name: string) => order.push(name) })
  await shop.add('note', { payload: 'default 0', queue: 'default' })
  await shop.add('note', { payload: 'default 0 again', queue: 'default' })
  await shop.add('note', { payload: 'default -5', queue: 'default', priority: -5 })
  await shop.add('note', { payload: 'default due earlier', queue: 'default', due: { at: shop.clock.now() - 1 } })
  await shop.add('note', { payload: 'high 9', queue: 'high', priority: 9 })
  await shop.add('note', { payload: 'other', queue: 'other', priority: -9 })
  await shop.workUntilEmpty({ queues: [['high'], ['default']] })
  expect(order).toEqual(['high 9', 'default -5', 'default due earlier', 'default 0', 'default 0 again'])
})

it('10 jobs of 100 ms one after another take 11 rounds: the one that settles a job reserves the next', async () => {
  const shop = await Workshop.open({ nap: () => new Promise<void>((resolve) => void shop.clock.after(100, resolve)) })
  for (let count = 0; count < 10; count++) await shop.add('nap')
  const store = new FaultyStore(shop.store)
  await shop.workUntilEmpty({}, { withinMs: 1_000, store })
  expect(store.rounds).toHaveLength(11)
})

it('never more jobs run at a time than concurrency 3 says', async () => {
  let running = 0
  let most = 0
  const shop = await Workshop.open({
    nap: async () => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => shop.clock.after(100, resolve))
      running--
    },
  })
  for (let count = 0; count < 10; count++) await shop.add('nap')
  const report = await shop.workUntilEmpty({ concurrency: 3 }, { withinMs: 1_000 })
  expect(report.done).toBe(10)
  expect(most).toBe(3)
})

it('retries wait 1 s, 2 s, 4 s when jitter is off', async () => {
  const shop = await Workshop.open({ flaky: boom })
  const id = await shop.add('flaky', { tries: 4 })
  const worker = await shop.work()
  await shop.clock.advance(10_000)
  expect(shop.all('job.retry').map(({ attempt, delayMs }) => [attempt, delayMs])).toEqual([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
  ])
  expect(shop.timesOf('job.started')).toEqual([0, 1_000, 3_000, 7_000])
  expect(shop.all('job.failed')).toMatchObject([{ id, attempt: 4, tries: 4, reason: 'tries' }])
  expect(await shop.drain(worker)).toMatchObject({ done: 0, retried: 3, failed: 1 })
})

it('jitter draws each delay from the whole range below it', async () => {
  const shop = await Workshop.open({ flaky: boom })
  const backoff = { kind: 'exponential', baseMs: 60_000, maxMs: 60_000, jitter: true } as const
  for (let count = 0; count < 40; count++) await shop.add('flaky', { tries: 2, backoff })
  await shop.workUntilEmpty()
  const delays = shop.all('job.retry').map(({ delayMs }) => delayMs)
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...delays)).toBeLessThanOrEqual(60_000)
  expect(new Set(delays).size).toBeGreaterThan(30)
})

it('a job that spends its tries fails with the error of its last run, and each run is recorded', async () => {
  let run = 0
  const shop = await Workshop.open({
    flaky: () => {
      throw new TypeError(`broken the ${++run}th time`)
    },
  })
  const id = await shop.add('flaky', { tries: 3, backoff: { kind: 'none' } })
  await shop.workUntilEmpty({ stopWhenEmpty: false, maxJobs: 3 }, { withinMs: 1_000 })
  expect(shop.state.failed.get(id)).toMatchObject({
    reason: 'tries',
    failures: 3,
    errorType: 'TypeError',
    error: 'broken the 3th time',
  })
  expect(shop.attempts(id)).toMatchObject([
    { attempt: 1, worker: 'alpha', message: 'broken the 1th time' },
    { attempt: 2, worker: 'alpha', message: 'broken the 2th time' },
    { attempt: 3, worker: 'alpha', message: 'broken the 3th time', stack: expect.stringContaining('TypeError') },
  ])
})

it('terms come from the envelope, and from the worker where the envelope has none', async () => {
  const shop = await Workshop.open({ flaky: boom })
  await shop.add('flaky', { tries: 2, backoff: { kind: 'fixed', delayMs: 5_000 } })
  await shop.add('flaky')
  const worker = await shop.work({ tries: 7, backoff: { kind: 'fixed', delayMs: 9_000 } })
  expect(shop.all('job.retry')).toMatchObject([
    { tries: 2, delayMs: 5_000 },
    { tries: 7, delayMs: 9_000 },
  ])
  await shop.drain(worker)
})

it('NonRetryable fails on attempt 1 of 5, RetryAfter waits for its 2 min', async () => {
  const shop = await Workshop.open({
    never: () => {
      throw new NonRetryable('no such user')
    },
    later: () => {
      throw new RetryAfter('2m')
    },
  })
  await shop.add('never', { tries: 5 })
  await shop.add('later', { tries: 5 })
  await shop.workUntilEmpty()
  expect(shop.all('job.failed')).toMatchObject([{ job: 'never', attempt: 1, reason: 'refused' }])
  expect(shop.all('job.retry')).toMatchObject([{ job: 'later', attempt: 1, delayMs: 120_000 }])
})

it('release gives back at no cost: after 1 s the same attempt runs again, though tries is 1', async () => {
  let run = 0
  const shop = await Workshop.open({ patient: () => ++run < 3 && release() })
  const id = await shop.add('patient', { tries: 1 })
  const worker = await shop.work()
  await shop.clock.advance(2_000)
  expect(shop.all('job.released')).toMatchObject([
    { id, attempt: 1, delayMs: 1_000, why: 'asked' },
    { id, attempt: 1, delayMs: 1_000, why: 'asked' },
  ])
  expect(shop.timesOf('job.started')).toEqual([0, 1_000, 2_000])
  expect(shop.attempts(id)).toEqual([])
  expect(await shop.drain(worker)).toMatchObject({ done: 1, released: 2, failed: 0 })
})

it('release with nonsense is a failed attempt that says so', async () => {
  const shop = await Workshop.open({ odd: () => release('soon') })
  const id = await shop.add('odd')
  await shop.workUntilEmpty()
  expect(shop.state.failed.get(id)?.error).toContain('the delay of release() must be a duration')
})

it.each<[string, unknown]>([
  ['null', null],
  ['undefined', undefined],
  ['a text', 'boom'],
  ['an error whose message throws', Object.defineProperty(new Error(), 'message', { get: boom })],
  [
    'a proxy that throws whenever it is looked at',
    new Proxy({}, { get: boom, has: boom, getPrototypeOf: boom, ownKeys: boom }),
  ],
])('a handler that throws %s fails its job and not its worker', async (_, thrown) => {
  const shop = await Workshop.open({
    odd: () => {
      throw thrown
    },
    note: () => {},
  })
  const id = await shop.add('odd')
  await shop.add('note')
  expect(await shop.workUntilEmpty()).toMatchObject({ failed: 1, done: 1 })
  expect(shop.state.failed.has(id)).toBe(true)
})

it('an unknown job fails at once, whatever its tries, and the next one runs', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('send-welcom', { tries: 5 })
  await shop.add('note')
  expect(await shop.workUntilEmpty()).toMatchObject({ failed: 1, done: 1 })
  expect(shop.state.failed.get(id)).toMatchObject({
    reason: 'unknown',
    errorType: 'UnknownJob',
    error: 'no handler is registered for "send-welcom"',
  })
})

it.each(['constructor', '__proto__', 'toString', '../../evil', 'file:///etc/passwd'])(
  'the job name %s is simply unknown',
  async (name) => {
    const shop = await Workshop.open({ note: () => {} })
    const id = await shop.add(name)
    await shop.workUntilEmpty()
    expect(shop.state.failed.get(id)?.reason).toBe('unknown')
  },
)

it('with unknown jobs set to wait an unknown one stays where it is and the next one runs', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('from-a-newer-release')
  await shop.add('note')
  expect(await shop.workUntilEmpty({ unknownJobs: 'wait' })).toMatchObject({ reason: 'empty', failed: 0, done: 1 })
  expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, fence: 0, failures: 0 })
})

it('only and except choose jobs by name, also together with unknown ones that wait', async () => {
  const order: string[] = []
  const note = (_: unknown, { job }: { readonly job: string }): void => void order.push(job)
  const shop = await Workshop.open({ a: note, b: note, c: note })
  for (const name of ['a', 'b', 'c', 'd']) await shop.add(name)
  await shop.workUntilEmpty({ only: ['b', 'd'], unknownJobs: 'wait' })
  await shop.workUntilEmpty({ except: ['c', 'd'] })
  expect(order).toEqual(['b', 'a'])
})

it.each([
  ['no JSON', '{"v":1,'],
  ['an envelope of another job', '{"v":1,"job":"other","payload":1,"maxCrashes":3,"dispatchedAt":1}'],
  ['200,000 levels', '['.repeat(200_000) + ']'.repeat(200_000)],
])('%s is poison: it fails at once, is not retried, and the next job runs', async (_, text) => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('note', { text, tries: 9 })
  await shop.add('note')
  expect(await shop.workUntilEmpty()).toMatchObject({ failed: 1, done: 1, retried: 0 })
  expect(shop.state.failed.get(id)).toMatchObject({ reason: 'poison', errorType: 'Poison', envelope: text })
})

it('a payload that its schema refuses is poison with the issues named', async () => {
  const validate = () => ({ issues: [{ message: 'must be a number', path: ['userId'] }, { message: 'is odd' }] })
  const schema = { '~standard': { version: 1 as const, vendor: 'test', validate } }
  const shop = await Workshop.open({ strict: { schema: schema as never, handle: () => expect.unreachable() } })
  const id = await shop.add('strict', { tries: 5 })
  await shop.workUntilEmpty()
  expect(shop.state.failed.get(id)).toMatchObject({
    reason: 'poison',
    error: expect.stringContaining('userId: must be a number; is odd'),
  })
})

it('a schema that throws does not stop the worker', async () => {
  const schema = { '~standard': { version: 1 as const, vendor: 'test', validate: boom } }
  const shop = await Workshop.open({ strict: { schema, handle: () => {} }, note: () => {} })
  const id = await shop.add('strict')
  await shop.add('note')
  expect(await shop.workUntilEmpty()).toMatchObject({ failed: 1, done: 1 })
  expect(shop.state.failed.has(id)).toBe(true)
})

it('the handler gets what the schema made of the payload, and the exact text beside it', async () => {
  const validate = (value: unknown) => ({ value: { ...(value as object), added: true } })
  const seen: unknown[] = []
  const shop = await Workshop.open({
    strict: {
      schema: { '~standard': { version: 1 as const, vendor: 'test', validate } } as never,
      handle: (payload: unknown, { payloadText }: { readonly payloadText: string }) => seen.push(payload, payloadText),
    },
  })
  await shop.add('strict', { payloadText: '{"n": 1.0}' })
  await shop.workUntilEmpty()
  expect(seen).toEqual([{ n: 1, added: true }, '{"n": 1.0}'])
})

it('the jobs of a module that cannot be imported go back free, are not taken again, and are told of once', async () => {
  const shop = await Workshop.open({ broken: brokenModule(), note: () => {} })
  const ids = [await shop.add('broken'), await shop.add('broken'), await shop.add('broken')]
  await shop.add('note')
  const report = await shop.workUntilEmpty({ concurrency: 2 }, { withinMs: 1_000 })
  expect(report).toMatchObject({ reason: 'empty', done: 1, failed: 0, released: 2 })
  expect(shop.all('module.broken')).toEqual([
    { job: 'broken', source: expect.any(String), message: './jobs/broken.ts:1: cannot be imported' },
  ])
  expect(shop.all('job.released').map(({ why }) => why)).toEqual(['module', 'module'])
  for (const id of ids) expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, failures: 0, crashes: 0 })
  expect(shop.state.jobs.get(ids[2] as number)?.fence).toBe(0)
})

it('a worker whose every module is broken drains with the reason modules', async () => {
  const shop = await Workshop.open({ one: brokenModule(), two: brokenModule(), three: () => {} })
  await shop.add('one')
  await shop.add('two')
  const worker = await shop.work({ except: ['three'] })
  expect(await shop.finished(worker, 1_000)).toMatchObject({ reason: 'modules', released: 2, failed: 0 })
})

it('an error that is nothing to print does not keep a broken module from being told of', async () => {
  const shop = await Workshop.open({
    broken: module(() => {
      throw Object.create(null)
    }),
  })
  await shop.add('broken')
  expect(await shop.workUntilEmpty()).toMatchObject({ reason: 'modules', released: 1, failed: 0 })
  expect(shop.all('module.broken')[0]?.message).toMatch(/cannot be loaded: /)
})

it('a job that has killed its worker 3 times is failed without running', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ deadly: gate.ignoring })
  const id = await shop.add('deadly', { tries: 9 })
  Object.assign(shop.state.jobs.get(id) as object, { crashes: 3 })
  await shop.workUntilEmpty()
  expect(gate.runs).toBe(0)
  expect(shop.state.failed.get(id)).toMatchObject({
    reason: 'crashes',
    errorType: 'WorkerKilled',
    error: 'killed its worker 3 times',
  })
})

it('a job over its crash limit is failed before its module is imported: the import may be what kills', async () => {
  const imported: unknown[] = []
  const shop = await Workshop.open({
    deadly: module(() => {
      imported.push([...shop.state.failed.keys()])
      return { handle: () => expect.unreachable() }
    }),
  })
  const id = await shop.add('deadly', { maxCrashes: 1 })
  Object.assign(shop.state.jobs.get(id) as object, { crashes: 1 })
  await shop.workUntilEmpty()
  expect(shop.state.failed.get(id)?.error).toBe('killed its worker 1 time')
  // Loaded for the sake of its hook, when the job could do no harm any more.
  expect(imported).toEqual([[id]])
})

it.each([
  [0, { crashes: 1 }, 'killed its worker 1 time'],
  [0, { suspect: true }, 'was running when its worker died, and its maxCrashes is 0'],
])('with maxCrashes %d and %j a job is failed without running', async (maxCrashes, past, error) => {
  const shop = await Workshop.open({ deadly: () => expect.unreachable() })
  const id = await shop.add('deadly', { maxCrashes })
  Object.assign(shop.state.jobs.get(id) as object, past)
  await shop.workUntilEmpty()
  expect(shop.state.failed.get(id)).toMatchObject({ reason: 'crashes', error })
})

it('a suspect runs, and gets no company while it runs', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ suspicious: gate.ignoring, note: () => {} })
  const id = await shop.add('suspicious')
  Object.assign(shop.state.jobs.get(id) as object, { suspect: true })
  await shop.add('note')
  const worker = await shop.work({ concurrency: 3, stopWhenEmpty: true })
  await shop.clock.advance(5_000)
  expect(shop.all('job.started').map(({ job }) => job)).toEqual(['suspicious'])
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ done: 2 })
})

it('an idle worker finds a new job within its 1 s of sleep, and one that becomes due at its moment', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const worker = await shop.work()
  await shop.clock.advance(60_000)
  await shop.add('note')
  await shop.clock.advance(1_000)
  expect(shop.all('job.started')).toHaveLength(1)
  const addedAt = shop.elapsedMs
  await shop.add('note', { due: { delayMs: 7_777 } })
  await shop.clock.advance(20_000)
  expect(shop.timesOf('job.started')[1]).toBe(addedAt + 7_777)
  await shop.drain(worker)
})

it('an idle worker asks the store at most 70 times a minute', async () => {
  const shop = await Workshop.open()
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({}, store)
  await shop.clock.advance(60_000)
  expect(store.rounds.length).toBeLessThanOrEqual(70)
  expect(store.rounds.length).toBeGreaterThanOrEqual(60)
  await shop.drain(worker)
})

it('a rest of 500 ms passes between two jobs of a slot', async () => {
  const shop = await Workshop.open({ note: () => {} })
  for (let count = 0; count < 3; count++) await shop.add('note')
  await shop.workUntilEmpty({ restMs: 500 }, { withinMs: 2_000 })
  expect(shop.timesOf('job.started')).toEqual([0, 500, 1_000])
})

it('once runs exactly one job, the best, and stops', async () => {
  const shop = await Workshop.open({ note: () => {} })
  await shop.add('note', { priority: 5 })
  const best = await shop.add('note', { priority: -5 })
  const worker = await shop.work({ once: true, concurrency: 4 })
  expect(await shop.finished(worker)).toMatchObject({ reason: 'once', done: 1 })
  expect(shop.all('job.done')).toMatchObject([{ id: best }])
})

it('once stops when nothing is ready, and when its job failed', async () => {
  const shop = await Workshop.open({ flaky: boom })
  expect(await shop.finished(await shop.work({ once: true }))).toMatchObject({ reason: 'once', done: 0, failed: 0 })
  await shop.add('flaky')
  expect(await shop.finished(await shop.work({ once: true }))).toMatchObject({ reason: 'once', failed: 1 })
})

it('stop-when-empty does not wait for what is delayed, paused or of another queue', async () => {
  const shop = await Workshop.open({ note: () => {} })
  await shop.add('note')
  await shop.add('note', { due: { delayMs: 1_000 } })
  await shop.add('note', { queue: 'paused' })
  await shop.add('note', { queue: 'foreign' })
  shop.state.pauses.set('paused', { queue: 'paused', pausedAt: 0, until: null, reason: null })
  expect(await shop.workUntilEmpty({ queues: [['default', 'paused']] })).toMatchObject({ reason: 'empty', done: 1 })
})

it('stop-when-empty waits for what runs here, and runs what that adds', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ first: gate.ignoring, second: () => {} })
  await shop.add('first')
  const worker = await shop.work({ stopWhenEmpty: true, concurrency: 2 })
  await shop.clock.advance(5_000)
  await shop.add('second')
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ reason: 'empty', done: 2 })
})

it('max-jobs 3 runs exactly 3 of 10, though 4 slots are free', async () => {
  const shop = await Workshop.open({ note: () => {} })
  for (let count = 0; count < 10; count++) await shop.add('note')
  const worker = await shop.work({ maxJobs: 3, concurrency: 4 })
  expect(await shop.finished(worker)).toMatchObject({ reason: 'max-jobs', done: 3 })
  expect(shop.state.jobs.size).toBe(7)
})

it('max-time of 60 s drains after 60 s and finishes what runs', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying })
  await shop.add('long')
  const worker = await shop.work({ maxTimeMs: 60_000 })
  await shop.clock.advance(59_999)
  expect(shop.all('worker.draining')).toEqual([])
  await shop.clock.advance(1)
  expect(shop.all('worker.draining')).toEqual([{ worker: 'alpha', reason: 'max-time', running: 1 }])
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ reason: 'max-time', done: 1, ms: 60_000 })
})

it('a quiet worker takes nothing and finishes what runs; resume goes on at once', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying, note: () => {} })
  await shop.add('long')
  const worker = await shop.work({ concurrency: 2 })
  worker.quiet()
  await shop.add('note')
  gate.open()
  await shop.clock.advance(60_000)
  expect(shop.all('job.done')).toMatchObject([{ job: 'long' }])
  worker.resume()
  await shop.clock.advance(0)
  expect(shop.all('job.done')).toMatchObject([{ job: 'long' }, { job: 'note' }])
  await shop.drain(worker)
})

it('during a drain quiet and resume do nothing', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying, note: () => {} })
  await shop.add('long')
  const worker = await shop.work({ concurrency: 2 })
  worker.drain()
  worker.resume()
  await shop.add('note')
  await shop.clock.advance(60_000)
  worker.quiet()
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ reason: 'asked', done: 1 })
  expect(shop.state.jobs.size).toBe(1)
})

it('done jobs are kept where they should be', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('note')
  await shop.workUntilEmpty({ keepDoneMs: 60_000 })
  await shop.add('note')
  await shop.workUntilEmpty({ keepDoneMs: null })
  expect([...shop.state.ended.keys()]).toEqual([id])
})

it('an envelope of a newer version is left for newer workers', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const id = await shop.add('note')
  Object.assign(shop.state.jobs.get(id) as object, { version: 2 })
  expect(await shop.workUntilEmpty()).toMatchObject({ done: 0, failed: 0 })
  expect(shop.state.jobs.get(id)).toMatchObject({ worker: null, fence: 0 })
})

it('no event carries a payload, whatever becomes of its job', async () => {
  const refuse = {
    '~standard': { version: 1 as const, vendor: 'test', validate: () => ({ issues: [{ message: 'no' }] }) },
  }
  const shop = await Workshop.open({
    note: () => {},
    flaky: boom,
    never: () => {
      throw new NonRetryable('never')
    },
    patient: () => release('1h'),
    strict: { schema: refuse as never, handle: () => {} },
    broken: brokenModule(),
    hooked: { handle: boom, failed: boom },
  })
  for (const job of ['note', 'flaky', 'never', 'patient', 'strict', 'broken', 'hooked', 'unknown'])
    await shop.add(job, { payload: { card: '4111-1111' }, tries: job === 'flaky' ? 2 : 1 })
  await shop.add('note', { text: '{"v":1,"payload":"4111-1111"' })
  await shop.add('note', { text: '{"v":1,"job":"note","maxCrashes":3,"payload":"4111-1111"}' })
  await shop.workUntilEmpty()
  const kinds = [
    'job.started',
    'job.done',
    'job.retry',
    'job.failed',
    'job.released',
    'module.broken',
    'hook.failed',
  ] as const
  for (const kind of kinds) expect(shop.all(kind), kind).not.toEqual([])
  expect(JSON.stringify(shop.heard)).not.toContain('4111-1111')
})

it('a listener that throws on every event disturbs no job', async () => {
  const shop = await Workshop.open({ note: () => {}, flaky: boom })
  shop.events.onAny(boom)
  await shop.add('note')
  await shop.add('flaky', { tries: 2 })
  const worker = await shop.work()
  await shop.clock.advance(2_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 1, retried: 1, failed: 1 })
})

it('the worker tells when it starts, drains and stops', async () => {
  const shop = await Workshop.open({ note: () => {} })
  await shop.add('note')
  const worker = await shop.work({ queues: [['high'], ['a', 'b']], concurrency: 4, name: 'web1-4121' })
  await shop.clock.advance(2_000)
  const report = await shop.drain(worker)
  expect(shop.all('worker.started')).toEqual([{ worker: 'web1-4121', queues: 'high,a,b', concurrency: 4 }])
  expect(shop.all('worker.draining')).toEqual([{ worker: 'web1-4121', reason: 'asked', running: 0 }])
  expect(shop.all('worker.stopped')).toEqual([report])
  expect(report).toEqual({
    ...{ worker: 'web1-4121', reason: 'asked', ms: 2_000, unwritten: [] },
    ...{ done: 0, retried: 0, failed: 0, released: 0, cancelled: 0, lost: 0, abandoned: 0 },
  })
})

it('counts are those of this moment', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying, note: () => {}, flaky: boom })
  await shop.add('note')
  await shop.add('flaky')
  await shop.add('flaky', { tries: 2 })
  await shop.add('long')
  const worker = await shop.work({ concurrency: 4 })
  await shop.clock.advance(100)
  expect(worker.counts()).toEqual({ running: 1, done: 1, retried: 1, failed: 1, released: 0, cancelled: 0, lost: 0 })
  gate.open()
  await shop.drain(worker)
})

it('a worker that cannot write its row does not start', async () => {
  const shop = await Workshop.open({ note: () => {} })
  const store = new FaultyStore(shop.store)
  store.cut()
  await expect(shop.work({}, store)).rejects.toThrow(expect.objectContaining({ code: 'STORE_UNREACHABLE' }))
  expect(shop.heard).toEqual([])
})

it('a store that fails with an error of no kind ends the worker with it, and aborts what runs', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ long: gate.obeying, note: () => {} })
  await shop.add('long')
  const store = new FaultyStore(shop.store)
  const worker = await shop.work({ concurrency: 2 }, store)
  const bug = new TypeError('undefined is not a function')
  store.exchangeFault = () => {
    throw bug
  }
  const ended = expect(worker.finished).rejects.toBe(bug)
  await shop.clock.advance(1_000)
  await ended
  expect((await gate.entered).aborted).toBe(true)
  await shop.store.beat({ kind: 'leaving', worker: store.beats[0]?.worker as number })
})

it('two workers on one store share 20 jobs and run each once', async () => {
  const runs: unknown[] = []
  const shop = await Workshop.open({
    note: async (n: number) => {
      runs.push(n)
      await new Promise<void>((resolve) => shop.clock.after(10, resolve))
    },
  })
  for (let n = 0; n < 20; n++) await shop.add('note', { payload: n })
  const other = openMemoryStore({ clock: shop.clock, state: shop.state }).store
  const workers = [
    await shop.work({ name: 'a', stopWhenEmpty: true }),
    await shop.work({ name: 'b', stopWhenEmpty: true }, other),
  ]
  await shop.clock.advance(1_000)
  const reports = await Promise.all(workers.map((worker) => shop.finished(worker)))
  expect(runs.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 20 }, (_, n) => n))
  expect(reports.every(({ done }) => done > 5)).toBe(true)
})
