import { createContext, runInContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { defaults } from '../../src/core/defaults.ts'
import { clean, describeError, oneLine, shown } from '../../src/core/text.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 60 })

describe('clean', () => {
  test('makes any text valid Unicode without NUL, and no longer than asked', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 50 }), (text, max) => {
        const result = clean(`\ud800${text}\0\udc00`, max)
        expect(result.isWellFormed() && !result.includes('\0')).toBe(true)
        expect(result.length).toBeLessThanOrEqual(max)
      }),
    )
  })

  test('marks a cut and never cuts a character in two', () => {
    expect(clean('abcdef', 4)).toBe('abc…')
    expect(clean('ab😀😀', 4)).toBe('ab…')
    expect(clean('abcd', 4)).toBe('abcd')
  })

  test('keeps line ends, tabs and escapes: they can be stored', () => {
    expect(clean('a\nb\t\u001b[31m', 99)).toBe('a\nb\t\u001b[31m')
  })
})

describe('oneLine', () => {
  test('leaves nothing that moves a cursor, changes a colour or turns the reading direction', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(oneLine(text)).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u)
      }),
    )
  })

  test.each([
    ['a\r\nb\tc', 'a b c'],
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b]8;;http://x\u0007link\u001b]8;;\u0007', 'link'],
    ['bell\u0007', 'bell\\x07'],
    ['lone \u001b', 'lone \\x1b'],
    ['\u009b2J', ''],
    ['\u202eevil', '\\u202eevil'],
    ['lone \ud800', 'lone \ufffd'],
    ['ordinary ä 😀', 'ordinary ä 😀'],
  ])('%j becomes %j', (text, line) => {
    expect(oneLine(text)).toBe(line)
  })
})

describe('describeError', () => {
  test('gives type, message and stack of an error, its causes below', () => {
    const error = new TypeError('outer', { cause: new RangeError('inner', { cause: 'deepest' }) })
    const { type, message, stack } = describeError(error)
    expect([type, message]).toEqual(['TypeError', 'outer'])
    expect(stack).toMatch(/^TypeError: outer\n[\s\S]*caused by: RangeError: inner\n[\s\S]*caused by: deepest$/)
  })

  test.each([
    ['text', { type: 'string', message: 'text', stack: null }],
    [null, { type: 'null', message: 'null', stack: null }],
    [undefined, { type: 'undefined', message: 'undefined', stack: null }],
    [Symbol('s'), { type: 'symbol', message: 'Symbol(s)', stack: null }],
    [7n, { type: 'bigint', message: '7n', stack: null }],
    [{ code: 7 }, { type: 'Object', message: '{ code: 7 }', stack: null }],
    [Object.create(null), { type: 'object', message: '[Object: null prototype] {}', stack: null }],
    [
      { name: 'N', message: 'like an error' },
      { type: 'N', message: 'like an error', stack: null },
    ],
  ])('describes the thrown value %o', (thrown, facts) => {
    expect(describeError(thrown)).toEqual(facts)
  })

  test('survives getters and proxies that throw, and revoked proxies', () => {
    const trap = (): never => {
      throw new Error('trapped')
    }
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const hostile = [
      {
        get message(): string {
          return trap()
        },
        get stack(): string {
          return trap()
        },
        get cause(): string {
          return trap()
        },
        get name(): string {
          return trap()
        },
      },
      new Proxy(new Error('x'), {
        get: trap,
        has: trap,
        getPrototypeOf: trap,
        ownKeys: trap,
        getOwnPropertyDescriptor: trap,
      }),
      new Proxy(() => 1, { get: trap }),
      proxy,
    ]
    for (const thrown of hostile)
      expect(describeError(thrown)).toMatchObject({ type: expect.any(String), message: expect.any(String) })
  })

  test('ends at a ring of causes and after 10 of them', () => {
    const ring: Error & { cause?: unknown } = new Error('ring')
    ring.cause = new Error('second', { cause: ring })
    expect(describeError(ring).stack?.match(/caused by/g)).toHaveLength(1)
    const chain = Array.from({ length: 50 }).reduce<Error>(
      (cause, _, index) => new Error(String(index), { cause }),
      new Error('first'),
    )
    chain.stack = 'short'
    expect(describeError(chain).stack?.match(/caused by/g)?.length).toBeLessThanOrEqual(10)
  })

  test('names the parts of an AggregateError that has no message', () => {
    expect(describeError(new AggregateError([new Error('::1 refused'), new Error('127.0.0.1 refused')])).message).toBe(
      '::1 refused; 127.0.0.1 refused',
    )
  })

  test('knows errors of another realm', () => {
    expect(describeError(runInContext('new SyntaxError("far")', createContext({})))).toMatchObject({
      type: 'SyntaxError',
      message: 'far',
    })
  })

  test('cuts a message of 1 MB to 8,192 characters and a stack to 16,384', () => {
    const facts = describeError(new Error('\0x'.repeat(500_000)))
    expect(facts.message).toHaveLength(defaults.maxMessageLength)
    expect(facts.stack).toHaveLength(defaults.maxStackLength)
    expect(facts.message).not.toContain('\0')
  })

  test('takes an error with an empty message for its type', () => {
    expect(describeError(new RangeError('')).message).toBe('RangeError')
  })
})

test('shown writes any value in at most 60 characters of one line', () => {
  expect([0, Number.NaN, 'a"b', undefined, null, [1], {}, true].map(shown)).toEqual([
    '0',
    'NaN',
    '"a\\"b"',
    'undefined',
    'null',
    'a list',
    'an object',
    'true',
  ])
  expect(shown('\u001b[2J\n'.repeat(1_000)).length).toBeLessThanOrEqual(300)
  expect(shown('x'.repeat(1_000)).length).toBeLessThanOrEqual(60)
})
