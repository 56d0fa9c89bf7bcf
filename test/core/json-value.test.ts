import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonTextOf } from '../../src/core/json-value.ts'

const refusal = (message: string) =>
  expect.objectContaining({ code: 'PAYLOAD_REFUSED', message: expect.stringContaining(message) })

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { in: value }
  return value
}

class Money {
  readonly amount = 7
}

const ring: Record<string, unknown> = {}
ring.self = { again: ring }

it.each<[string, unknown, string]>([
  ['undefined in an array', { list: [1, undefined] }, 'payload.list[1] is undefined'],
  ['undefined at the top', undefined, 'payload is undefined'],
  ['a function', { run: () => 1 }, 'payload.run is a function'],
  ['a symbol', [Symbol('s')], 'payload[0] is a symbol'],
  ['a BigInt', { big: [1n] }, 'payload.big[0] is a bigint'],
  ['NaN', { n: Number.NaN }, 'payload.n is NaN'],
  ['an infinity', { n: Number.NEGATIVE_INFINITY }, 'payload.n is -Infinity'],
  ['a date', { user: { since: new Date(0) } }, 'payload.user.since is a Date'],
  ['a map', { m: new Map() }, 'payload.m is a Map'],
  ['a set', { s: new Set([1]) }, 'payload.s is a Set'],
  ['a regular expression', { r: /x/ }, 'payload.r is a RegExp'],
  ['an error', { e: new Error('x') }, 'payload.e is a Error'],
  ['a buffer', { b: Buffer.from('x') }, 'payload.b is a Buffer'],
  ['a class instance', { price: new Money() }, 'payload.price is a Money'],
  ['a boxed number', { n: Object(7) }, 'payload.n is a Number'],
  ['a hole', { list: Object.assign([1], { 2: 3 }) }, 'payload.list[1] is undefined'],
  ['an object with toJSON', { o: { toJSON: () => 1 } }, 'payload.o is a Object'],
  ['a cycle', ring, 'payload.self.again is a reference to something that contains it'],
])('%s is refused with its path', (_, value, message) => {
  expect(() => jsonTextOf(value)).toThrow(refusal(message))
})

it('members of objects that are undefined are left out, as JSON.stringify does', () => {
  expect(jsonTextOf({ a: undefined, b: { c: undefined, d: 1 } })).toBe('{"b":{"d":1}}')
})

it('the refusal says how to get on', () => {
  expect(() => jsonTextOf({ at: new Date(0) })).toThrow(
    expect.objectContaining({ fix: expect.stringContaining('convert it') }),
  )
})

it('1,000 levels are written and 1,001 refused', () => {
  expect(jsonTextOf(nested(1_000))).toHaveLength(JSON.stringify(nested(1_000)).length)
  expect(() => jsonTextOf(nested(1_001))).toThrow(refusal('nested more than 1000 levels deep'))
})

it('200,000 levels are refused without a stack overflow', () => {
  expect(() => jsonTextOf(nested(200_000))).toThrow(refusal('nested more than 1000 levels deep'))
})

it('the same object may stand in two places', () => {
  const shared = { a: 1 }
  expect(jsonTextOf([shared, shared])).toBe('[{"a":1},{"a":1}]')
})

it('an object without a prototype, and one from another realm, are plain', () => {
  expect(jsonTextOf(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}')
  expect(jsonTextOf(runInNewContext('({ a: [{}] })'))).toBe('{"a":[{}]}')
})

it('a member named __proto__ is written', () => {
  expect(jsonTextOf(JSON.parse('{"__proto__":{"admin":true}}'))).toBe('{"__proto__":{"admin":true}}')
})

it('a lone surrogate is written as an escape', () => {
  expect(jsonTextOf('\ud800')).toBe('"\\ud800"')
})

it('whatever JSON can hold comes back the same', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.stringify(JSON.parse(jsonTextOf(value)))).toBe(JSON.stringify(value))
    }),
  )
})
