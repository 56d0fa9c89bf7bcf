import { describe, expect, test } from 'vitest'
import { parseJobObject } from '../../src/cli/job-object.ts'
import { type Envelope, encodeEnvelope } from '../../src/core/envelope.ts'

const parse = (text: string, line = 1): unknown => parseJobObject({ text, source: 'jobs.ndjson', line, column: 1 })
const invalid = (message: string): object => expect.objectContaining({ code: 'DATA_INVALID', message })

describe('parseJobObject', () => {
  test('reads every key, and leaves the payload as it is written', () => {
    const text = `{"job":"a","payload":{"b":1, "a":1.10,"a":2},"queue":"high","priority":-1,"tries":3,"backoff":{"kind":"linear","base":"1s"},"timeout":"30s","maxCrashes":1,"unique":"k","delay":"5m"}`
    expect(parse(text)).toEqual({
      job: 'a',
      payloadText: '{"b":1, "a":1.10,"a":2}',
      terms: {
        queue: 'high',
        priority: -1,
        tries: 3,
        backoff: { kind: 'linear', baseMs: 1_000, maxMs: 3_600_000, jitter: true },
        timeoutMs: 30_000,
        maxCrashes: 1,
      },
      due: { delayMs: 300_000 },
      unique: 'k',
    })
  })

  test('reads what a job waits for: one id or several, and what becomes of it where one fails', () => {
    expect(parse('{"job":"a","after":7}')).toMatchObject({ after: [7] })
    expect(parse('{"job":"a","after":[7,9],"onParentFailure":"run"}')).toMatchObject({
      ...{ after: [7, 9], onParentFailure: 'run' },
    })
    expect(() => parse('{"job":"a","after":"x"}')).toThrow(
      invalid('jobs.ndjson:1: after must be a whole number of at least 1, got "x"'),
    )
  })

  test('a name is enough', () => {
    expect(parse('{"job":"a"}')).toEqual({ job: 'a', payloadText: null, terms: {}, due: null, unique: null })
  })

  test('at is a time with an offset or epoch milliseconds', () => {
    expect(parse('{"job":"a","at":"2030-01-31T09:00:00+01:00"}')).toMatchObject({ due: { at: 1_896_076_800_000 } })
    expect(parse('{"job":"a","at":1896076800000}')).toMatchObject({ due: { at: 1_896_076_800_000 } })
  })

  test.each([
    ['7', 'a job must be an object such as {"job":"send-welcome","payload":{}}, got a number'],
    ['[{"job":"a"}]', 'a job must be an object such as {"job":"send-welcome","payload":{}}, got a list'],
    ['"a"', 'a job must be an object such as {"job":"send-welcome","payload":{}}, got a text'],
    ['null', 'a job must be an object such as {"job":"send-welcome","payload":{}}, got null'],
    ['{}', 'job must be a name, got undefined'],
    ['{"job":7}', 'job must be a name, got 7'],
    ['{"job":""}', 'job must be a name, got ""'],
    ['{"job":"a","tries":0}', 'tries must be a whole number of at least 1, got 0'],
    ['{"job":"a","tries":"3"}', 'tries must be a whole number of at least 1, got "3"'],
    ['{"job":"a","tries":null}', 'tries must be a whole number of at least 1, got null'],
    [
      '{"job":"a","delay":-1}',
      'delay must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got -1',
    ],
    ['{"job":"a","delay":1e99}', 'delay must be at most 3650d, got 1e+99'],
    [
      '{"job":"a","delay":"NaN"}',
      'delay must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got "NaN"',
    ],
    [
      '{"job":"a","at":"2030-01-31T09:00:00"}',
      'at must be a time with an offset such as "2030-01-31T09:00:00+01:00", or epoch milliseconds, got "2030-01-31T09:00:00"',
    ],
    ['{"job":"a","at":1896076800000,"delay":"1s"}', 'at and delay exclude each other'],
    ['{"job":"a","queue":"a,b"}', 'queue must be one name without a comma, got "a,b"'],
    ['{"job":"a","queue":"a\\nb"}', 'queue must be free of control characters and valid Unicode, got "a\\nb"'],
    ['{"job":"a","unique":7}', 'unique must be a name, got 7'],
    ['{"job":"a","quue":"high"}', 'unknown key "quue". Did you mean "queue"?'],
    ['{"job":"a","__proto__":{}}', 'unknown key "__proto__"'],
  ])('refuses %s', (text, message) => {
    expect(() => parse(text, 42)).toThrow(invalid(`jobs.ndjson:42: ${message}`))
  })

  test('names the line of the value itself in an object over several lines', () => {
    expect(() => parse('{\n  "job": "a",\n  "payload": {\n  },\n  "tries": 0\n}', 10)).toThrow(
      invalid('jobs.ndjson:14: tries must be a whole number of at least 1, got 0'),
    )
    expect(() => parse('{\n  "job": "a",\n  "backof": 1\n}', 10)).toThrow(
      invalid('jobs.ndjson:12: unknown key "backof". Did you mean "backoff"?'),
    )
  })

  test('refuses a doubled key with a caret, however it is written; inside the payload it is none of our business', () => {
    expect(() => parse('{"job":"a","\\u006aob":"b"}', 3)).toThrow(
      invalid(
        'jobs.ndjson:3:12: "job" stands here a second time\n  3 | {"job":"a","\\u006aob":"b"}\n    |            ^',
      ),
    )
    expect(parse('{"job":"a","payload":{"x":1,"x":2}}')).toMatchObject({ payloadText: '{"x":1,"x":2}' })
  })
})

describe('an envelope', () => {
  const envelope: Envelope = {
    job: 'a',
    payloadText: '{"n": 1.10}',
    tries: 3,
    backoff: { kind: 'fixed', delayMs: 5_000 },
    timeoutMs: null,
    maxCrashes: 2,
    dispatchedAt: 1,
    unique: 'k',
    context: null,
    trace: null,
  }

  test('as show prints it is taken with its terms and its exact payload', () => {
    expect(parse(encodeEnvelope(envelope))).toEqual({
      job: 'a',
      payloadText: '{"n": 1.10}',
      terms: { tries: 3, backoff: { kind: 'fixed', delayMs: 5_000 }, maxCrashes: 2 },
      due: null,
      unique: 'k',
      envelope: true,
    })
  })

  test('of a newer version, with a strange key or without a payload is refused with its line', () => {
    const text = encodeEnvelope(envelope)
    expect(() => parse(text.replace('"v":1', '"v":2'), 9)).toThrow(
      invalid("jobs.ndjson:9: the envelope's version is 2, this khepri reads 1"),
    )
    expect(() => parse(text.replace('"v":1', '"v":1,"x":1'), 9)).toThrow(
      invalid('jobs.ndjson:9: the envelope has an unknown key "x"'),
    )
    expect(() => parse('{"v":1,"job":"a"}', 9)).toThrow(invalid('jobs.ndjson:9: the envelope has no payload'))
  })
})
