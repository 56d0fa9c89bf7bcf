import { expect, it } from 'vitest'
import { defaults } from '../../src/core/defaults.ts'
import { Dispatcher, type DispatchRequest, rawJob } from '../../src/core/dispatch.ts'
import { decodeEnvelope } from '../../src/core/envelope.ts'
import { defineJob } from '../../src/core/job.ts'
import { Registry } from '../../src/core/registry.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { TempProject } from '../support/temp-project.ts'
import { brokenModule } from './support/workshop.ts'

const clock = new ManualClock()

async function aDispatcher(
  jobs: Readonly<Record<string, unknown>> = { note: () => {} },
  { allowUnknown = false } = {},
) {
  const registry = await Registry.open({
    jobs: [{ kind: 'map', entries: Object.entries(jobs) }],
    root: '/',
    file: null,
  })
  const config = { queue: 'usual', maxCrashes: 3, maxPayloadBytes: 1_000 }
  return new Dispatcher({ registry, config, clock, allowUnknown })
}

const request = (parts: Partial<DispatchRequest> = {}): DispatchRequest => ({
  ...{ job: 'note', payloadText: '{}', terms: {}, due: null, unique: null },
  ...parts,
})

const refusal = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) })

it('what nobody says is left open for the worker, but the queue, the priority and maxCrashes are decided', async () => {
  const row = await (await aDispatcher()).prepare(request())
  expect(row).toMatchObject({
    job: 'note',
    queue: 'usual',
    priority: 0,
    due: { delayMs: 0 },
    uniqueKey: null,
    version: 1,
  })
  expect(decodeEnvelope(row.envelope, 'note')).toMatchObject({
    tries: null,
    backoff: null,
    timeoutMs: null,
    maxCrashes: 3,
    dispatchedAt: clock.now(),
  })
})

it('the definition outranks the configuration, and the request outranks the definition', async () => {
  const job = defineJob({
    queue: 'mail',
    priority: 5,
    tries: 3,
    timeout: '30s',
    maxCrashes: 1,
    backoff: '1s',
    handle: () => {},
  })
  const dispatcher = await aDispatcher({ note: job })
  const row = await dispatcher.prepare(request())
  expect(row).toMatchObject({ queue: 'mail', priority: 5 })
  expect(decodeEnvelope(row.envelope, 'note')).toMatchObject({
    tries: 3,
    timeoutMs: 30_000,
    maxCrashes: 1,
    backoff: { kind: 'fixed', delayMs: 1_000 },
  })
  const own = await dispatcher.prepare(
    request({ terms: { queue: 'high', priority: -1, tries: 9 }, due: { at: 5 }, unique: 'k' }),
  )
  expect(own).toMatchObject({ queue: 'high', priority: -1, due: { at: 5 }, uniqueKey: 'k' })
  expect(decodeEnvelope(own.envelope, 'note')).toMatchObject({ tries: 9, timeoutMs: 30_000, unique: 'k' })
})

it('a job that was given as a value does not wait', async () => {
  expect((await aDispatcher()).prepare(request())).not.toBeInstanceOf(Promise)
})

it('a module is waited for, and only at the first dispatch of its name', async () => {
  using project = new TempProject({ 'note.mjs': 'export default () => {}' })
  const dispatcher = await aDispatcher({ note: `${project.path}/note.mjs` })
  const first = dispatcher.prepare(request())
  expect(first).toBeInstanceOf(Promise)
  await first
  expect(dispatcher.prepare(request())).not.toBeInstanceOf(Promise)
})

it('the stored payload is the input byte for byte, not what the schema made of it', async () => {
  const schema = { '~standard': { version: 1, vendor: 'test', validate: () => ({ value: 'changed' }) } } as const
  const dispatcher = await aDispatcher({ note: defineJob({ schema, handle: () => {} }) })
  const row = await dispatcher.prepare(request({ payloadText: '{"n": 1.0,"n":2}' }))
  expect(decodeEnvelope(row.envelope, 'note').payloadText).toBe('{"n": 1.0,"n":2}')
})

it('a payload that the schema refuses is not dispatched, and the issues are named, each time', async () => {
  const issues = [{ message: 'must be a number', path: ['user', 'id'] }]
  const schema = { '~standard': { version: 1, vendor: 'test', validate: async () => ({ issues }) } } as const
  const dispatcher = await aDispatcher({ note: defineJob({ schema, handle: () => {} }) })
  for (const _ of [1, 2])
    await expect(async () => dispatcher.prepare(request())).rejects.toThrow(
      refusal('PAYLOAD_REFUSED', 'the payload of note is refused by its schema: user.id: must be a number'),
    )
})

it('an unknown name is refused, and accepted where that is asked for', async () => {
  const unknown = request({ job: 'nots' })
  await expect(async () => (await aDispatcher()).prepare(unknown)).rejects.toThrow(
    refusal('JOB_UNKNOWN', 'Did you mean "note"?'),
  )
  expect(await (await aDispatcher({}, { allowUnknown: true })).prepare(unknown)).toMatchObject({
    job: 'nots',
    queue: 'usual',
  })
})

it('a name of 256 characters is refused even where unknown ones are accepted', async () => {
  const dispatcher = await aDispatcher({}, { allowUnknown: true })
  await expect(async () => dispatcher.prepare(request({ job: 'x'.repeat(256) }))).rejects.toThrow(
    refusal('DATA_INVALID', 'at most 255 characters'),
  )
})

it('a module that cannot be imported refuses the dispatch, because its terms belong to the promise', async () => {
  const dispatcher = await aDispatcher({ note: { module: './no-such-module.ts' } })
  await expect(async () => dispatcher.prepare(request())).rejects.toThrow(refusal('MODULE_BROKEN', 'no-such-module.ts'))
})

it('an entry that carries its terms is dispatched without being loaded', async () => {
  expect(await (await aDispatcher({ note: brokenModule() })).prepare(request())).toMatchObject({ job: 'note' })
})

it.each([
  ['1,001 bytes', `"${'x'.repeat(999)}"`, '1,001 bytes, maxPayload allows 1,000'],
  ['1,001 bytes in 335 characters', `"${'€'.repeat(333)}"`, '1,001 bytes, maxPayload allows 1,000'],
  ['a lone surrogate', '"\ud800"', 'is not valid Unicode'],
])('a payload of %s is refused', async (_, payloadText, message) => {
  await expect(async () => (await aDispatcher()).prepare(request({ payloadText }))).rejects.toThrow(
    refusal('PAYLOAD_REFUSED', message),
  )
})

it('a payload of exactly 1,000 bytes is dispatched', async () => {
  await (await aDispatcher()).prepare(request({ payloadText: `"${'x'.repeat(998)}"` }))
  await (await aDispatcher()).prepare(request({ payloadText: `"${'€'.repeat(332)}xx"` }))
})

it('a payload of 1,000 levels is dispatched, 1,001 and 200,000 are refused', async () => {
  const registry = await Registry.open({
    jobs: [{ kind: 'map', entries: [['note', () => {}]] }],
    root: '/',
    file: null,
  })
  const config = { queue: 'usual', maxCrashes: 3, maxPayloadBytes: defaults.maxPayloadBytes }
  const dispatcher = new Dispatcher({ registry, config, clock, allowUnknown: false })
  const levels = (count: number): DispatchRequest => request({ payloadText: '['.repeat(count) + ']'.repeat(count) })
  await dispatcher.prepare(levels(1_000))
  for (const count of [1_001, 200_000])
    expect(() => dispatcher.prepare(levels(count))).toThrow(
      refusal('PAYLOAD_REFUSED', 'nested more than 1000 levels deep'),
    )
})

it('a raw envelope is taken as it is, terms and payload', async () => {
  const { envelope } = await (await aDispatcher()).prepare(
    request({ payloadText: '{"n": 1.0}', terms: { tries: 4 }, unique: 'k' }),
  )
  const row = rawJob(envelope, { queue: 'high', priority: 1, due: { delayMs: 0 } })
  expect(row).toEqual({
    job: 'note',
    queue: 'high',
    priority: 1,
    due: { delayMs: 0 },
    uniqueKey: 'k',
    version: 1,
    envelope,
  })
})

it.each([
  ['no JSON', 'x'],
  ['null', 'null'],
  ['an object that is no envelope', '{"job":"note"}'],
  ['an envelope of a newer version', '{"v":2,"job":"note","payload":1,"maxCrashes":3,"dispatchedAt":1}'],
  ['an envelope whose job is a number', '{"v":1,"job":7,"payload":1,"maxCrashes":3,"dispatchedAt":1}'],
])('%s is refused as a raw envelope', (_, envelope) => {
  expect(() => rawJob(envelope, { queue: 'high', priority: 1, due: { delayMs: 0 } })).toThrow(
    refusal('DATA_INVALID', 'the envelope'),
  )
})
