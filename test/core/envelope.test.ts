import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Backoff } from '../../src/core/backoff.ts'
import {
  decodeEnvelope,
  type Envelope,
  encodeEnvelope,
  newJob,
  Poison,
  payloadTextOf,
} from '../../src/core/envelope.ts'

function anEnvelope(parts: Partial<Envelope> = {}): Envelope {
  return {
    job: 'send-welcome',
    payloadText: '{"userId":7}',
    tries: null,
    backoff: null,
    timeoutMs: null,
    maxCrashes: 3,
    dispatchedAt: 1_767_600_000_000,
    unique: null,
    context: null,
    trace: null,
    ...parts,
  }
}

const decode = (text: string) => decodeEnvelope(text, 'send-welcome')
const poison = (message: string) =>
  expect.objectContaining({ name: 'Poison', message: expect.stringContaining(message) })

it('an envelope is one line of JSON with the payload last', () => {
  expect(encodeEnvelope(anEnvelope())).toBe(
    '{"v":1,"job":"send-welcome","dispatchedAt":1767600000000,"maxCrashes":3,"payload":{"userId":7}}',
  )
})

it('every term comes back as it was written', () => {
  const full = anEnvelope({
    tries: 5,
    backoff: { kind: 'list', delaysMs: [0, 60_000] },
    timeoutMs: 30_000,
    maxCrashes: 0,
    unique: 'user:7',
    context: { tenant: 'a' },
    trace: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  })
  expect(decode(encodeEnvelope(full))).toMatchObject(full)
})

it.each([
  ['a number beyond 2^53', '{"id":12345678901234567890}'],
  ['a number with 40 decimals', '0.1234567890123456789012345678901234567890'],
  ['exponents as they were written', '[1E5,1e+5,-0.0,100000]'],
  ['the order of keys', '{"b":1,"a":2,"10":3,"1":4}'],
  ['white space and line ends', ' {\r\n\t"a" : [ 1 , 2 ] }\n'.trim()],
  ['a member named __proto__', '{"__proto__":{"isAdmin":true},"constructor":1}'],
  ['escapes of lone surrogates', '"\\ud800 and \\udc00"'],
  ['an escaped NUL', '"\\u0000"'],
  ['doubled keys', '{"a":1,"a":2}'],
  ['a text that looks like an envelope', '{"payload":1,"job":"other","v":9}'],
  ['brackets and quotes inside strings', '"}],\\"payload\\":{\\\\"'],
  ['emoji', '"🪲é"'],
  ['null', 'null'],
  ['an empty string', '""'],
])('%s is kept byte for byte', (_, payloadText) => {
  const decoded = decode(encodeEnvelope(anEnvelope({ payloadText })))
  expect(decoded.payloadText).toBe(payloadText)
  expect(decoded.payload).toEqual(JSON.parse(payloadText))
})

it('a payload with __proto__ changes no prototype', () => {
  const { payload } = decode(encodeEnvelope(anEnvelope({ payloadText: '{"__proto__":{"isAdmin":true}}' })))
  expect((payload as { isAdmin?: boolean }).isAdmin).toBeUndefined()
  expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined()
})

it('of two payloads in one envelope the text and the value are those of the same one, the last', () => {
  const text = encodeEnvelope(anEnvelope({ payloadText: '1' })).replace(
    '"payload":1',
    '"payload":{"n":1},"payload":[2]',
  )
  expect(decode(text).payload).toEqual([2])
  expect(decode(text).payloadText).toBe('[2]')
})

it('an envelope with its keys in another order, or spread over lines, is read the same', () => {
  const text = JSON.stringify({ payload: { a: 1 }, dispatchedAt: 5, maxCrashes: 3, job: 'send-welcome', v: 1 }, null, 2)
  expect(decode(text).payloadText).toBe(JSON.stringify({ a: 1 }, null, 2).replaceAll('\n', '\n  '))
})

it('the payload text of what has none is "null"', () => {
  expect(payloadTextOf('{"job":"x"}')).toBe('null')
})

const valid = JSON.parse(encodeEnvelope(anEnvelope())) as Record<string, unknown>
const envelopeWith = (changes: Record<string, unknown>): string => JSON.stringify({ ...valid, ...changes })

it.each([
  ['an empty text', '', 'not valid JSON'],
  ['half an envelope', encodeEnvelope(anEnvelope()).slice(0, 40), 'not valid JSON'],
  ['something behind the end', `${encodeEnvelope(anEnvelope())}x`, 'not valid JSON'],
  ['a list', '[]', 'not a JSON object'],
  ['null', 'null', 'not a JSON object'],
  ['a string', '"x"', 'not a JSON object'],
  ['no version', envelopeWith({ v: undefined }), 'version is missing, this khepri reads 1'],
  ['a newer version', envelopeWith({ v: 2 }), 'version is 2, this khepri reads 1'],
  ['a version that is a text', envelopeWith({ v: '1' }), 'version is "1"'],
  ['another name than its row', envelopeWith({ job: 'other' }), 'says job "other", its row says "send-welcome"'],
  ['no payload', envelopeWith({ payload: undefined }), 'has no payload'],
  ['an unknown key', envelopeWith({ retries: 3 }), 'an unknown key "retries"'],
  ['a key named __proto__', encodeEnvelope(anEnvelope()).replace('{', '{"__proto__":1,'), 'an unknown key "__proto__"'],
  ['tries 0', envelopeWith({ tries: 0 }), 'tries is 0'],
  ['tries 1.5', envelopeWith({ tries: 1.5 }), 'tries is 1.5'],
  ['tries null', envelopeWith({ tries: null }), 'tries is null'],
  ['tries as a text', envelopeWith({ tries: '3' }), 'tries is "3"'],
  ['a negative timeout', envelopeWith({ timeoutMs: -1 }), 'timeoutMs is -1'],
  ['maxCrashes beyond 2^53', envelopeWith({ maxCrashes: 2 ** 60 }), 'maxCrashes is 1152921504606847000'],
  ['no maxCrashes', envelopeWith({ maxCrashes: undefined }), 'maxCrashes is missing'],
  ['no dispatchedAt', envelopeWith({ dispatchedAt: undefined }), 'dispatchedAt is missing'],
  ['a backoff of no kind', envelopeWith({ backoff: {} }), 'backoff is {}'],
  ['a backoff with a negative delay', envelopeWith({ backoff: { kind: 'fixed', delayMs: -1 } }), 'backoff is {'],
  ['a backoff with an empty list', envelopeWith({ backoff: { kind: 'list', delaysMs: [] } }), 'backoff is {'],
  ['a backoff without jitter', envelopeWith({ backoff: { kind: 'linear', baseMs: 1, maxMs: 1 } }), 'backoff is {'],
  ['a context that is a list', envelopeWith({ context: [] }), 'context is []'],
  ['a unique key that is a number', envelopeWith({ unique: 7 }), 'unique is 7'],
])('%s is poison, and says so', (_, text, message) => {
  expect(() => decode(text)).toThrow(poison(message))
})

it('poison quotes at most 60 characters of what it found', () => {
  expect(() => decode(envelopeWith({ tries: 'x'.repeat(100_000) }))).toThrow(
    expect.objectContaining({ message: expect.stringMatching(/^.{0,120}$/) }),
  )
  expect(() => decode(envelopeWith({ ['k'.repeat(100_000)]: 1 }))).toThrow(
    expect.objectContaining({ message: expect.stringMatching(/^.{0,120}$/) }),
  )
})

it('poison of unreadable JSON does not quote the payload, not even in its cause', () => {
  try {
    decode('{"payload": secret-word }')
    expect.unreachable()
  } catch (error) {
    expect(error).toBeInstanceOf(Poison)
    expect(`${(error as Error).stack} ${String((error as Error).cause)}`).not.toContain('secret-word')
  }
})

const levels = (count: number): string => '['.repeat(count) + ']'.repeat(count)

it('a payload of 1,000 levels is read', () => {
  expect(decode(encodeEnvelope(anEnvelope({ payloadText: levels(1_000) }))).payloadText).toBe(levels(1_000))
})

it.each([1_001, 200_000])('a payload of %d levels is poison', (count) => {
  expect(() => decode(encodeEnvelope(anEnvelope({ payloadText: levels(count) })))).toThrow(
    poison('nested more than 1000 levels deep'),
  )
})

it('brackets inside a string are no levels', () => {
  const payloadText = JSON.stringify('['.repeat(5_000))
  expect(decode(encodeEnvelope(anEnvelope({ payloadText }))).payloadText).toBe(payloadText)
})

it('the row of an envelope carries its name, its unique key and its version', () => {
  const envelope = anEnvelope({ unique: 'user:7' })
  expect(newJob(envelope, { queue: 'high', priority: -1, due: { delayMs: 5 } })).toEqual({
    job: 'send-welcome',
    queue: 'high',
    priority: -1,
    due: { delayMs: 5 },
    uniqueKey: 'user:7',
    version: 1,
    envelope: encodeEnvelope(envelope),
  })
})

const count = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const backoff: fc.Arbitrary<Backoff> = fc.oneof(
  fc.constant({ kind: 'none' as const }),
  fc.record({ kind: fc.constant('fixed' as const), delayMs: whole }),
  fc.record({ kind: fc.constant('list' as const), delaysMs: fc.array(whole, { minLength: 1 }) }),
  fc.record({
    kind: fc.constantFrom('linear' as const, 'exponential' as const),
    baseMs: whole,
    maxMs: whole,
    jitter: fc.boolean(),
  }),
)
const envelopes: fc.Arbitrary<Envelope> = fc.record({
  job: fc.string({ unit: 'binary' }),
  payloadText: fc.json(),
  tries: fc.option(count),
  backoff: fc.option(backoff),
  timeoutMs: fc.option(count),
  maxCrashes: whole,
  dispatchedAt: whole,
  unique: fc.option(fc.string()),
  context: fc.option(fc.dictionary(fc.string(), fc.string(), { noNullPrototype: true })),
  trace: fc.option(fc.string()),
})

it('every envelope comes back as it was written', () => {
  fc.assert(
    fc.property(envelopes, (envelope) => {
      const decoded = decodeEnvelope(encodeEnvelope(envelope), envelope.job)
      const { payloadText, ...terms } = envelope
      expect(decoded.payloadText).toBe(payloadText)
      expect(JSON.stringify(decoded.payload)).toBe(JSON.stringify(JSON.parse(payloadText)))
      for (const [key, value] of Object.entries(terms)) expect(decoded[key as keyof Envelope]).toEqual(value)
    }),
  )
})

it('no text whatever makes decoding throw anything but Poison', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), (text) => {
      expect(() => decode(text)).toThrow(Poison)
    }),
  )
})
