import { describe, expect, test } from 'vitest'
import { type ErrorCode, KhepriError } from '../../../src/core/errors.ts'
import { type Stage, storeError } from '../../../src/core/store/postgres/errors.ts'
import { bigints, identifier, parametersOf, statement, texts } from '../../../src/core/store/postgres/statement.ts'

describe('statement texts', () => {
  test('named parameters are numbered in the order of their first appearance, and casts are left alone', () => {
    expect(statement('select :b::int, :a::text where x = :b and y::date is null')).toEqual({
      text: 'select $1::int, $2::text where x = $1 and y::date is null',
      parameters: ['b', 'a'],
    })
  })

  test('values are put in the order of the numbers, and one that is missing is a bug', () => {
    const text = statement('select :b, :a')

    expect(parametersOf(text, { a: 1, b: null, c: 'unused' })).toEqual([null, 1])
    expect(() => parametersOf(text, { a: 1 })).toThrow(
      new KhepriError('BUG', 'the statement parameter "b" has no value'),
    )
  })

  test('lists become array literals that survive quotes, backslashes, braces and the word null', () => {
    expect(bigints([1, null, -2])).toBe('{1,null,-2}')
    expect(texts(['a"b\\c', 'null', '', '{1,2}', null])).toBe('{"a\\"b\\\\c","null","","{1,2}",null}')
  })

  test('an identifier is quoted whatever stands in it', () => {
    expect(identifier('a"; drop table x')).toBe('"a""; drop table x"')
  })
})

describe('errors of Postgres', () => {
  function errorOf(code: string, stage: Stage, fromServer = true): KhepriError {
    const thrown = Object.assign(new Error('words of the driver'), { code, ...(fromServer && { severity: 'ERROR' }) })
    const error = storeError(thrown, { label: 'postgres://db1/app', doing: 'reserve jobs', stage, deadlineMs: 10_000 })
    if (!(error instanceof KhepriError)) throw error
    return error
  }

  test.each([
    ['08006', 'STORE_UNREACHABLE'],
    ['57P01', 'STORE_UNREACHABLE'],
    ['57P03', 'STORE_UNREACHABLE'],
    ['3D000', 'STORE_UNREACHABLE'],
    ['53300', 'STORE_UNREACHABLE'],
    ['53100', 'STORE_FULL'],
    ['53200', 'STORE_FULL'],
    ['25006', 'STORE_DENIED'],
    ['42501', 'STORE_DENIED'],
    ['28P01', 'STORE_DENIED'],
    ['28000', 'STORE_DENIED'],
    ['42P01', 'SCHEMA_BROKEN'],
    ['3F000', 'SCHEMA_MISSING'],
    ['57014', 'STORE_BUSY'],
    ['SERVER_CANCEL', 'STORE_BUSY'],
    ['25P04', 'STORE_BUSY'],
    ['40P01', 'STORE_BUSY'],
    ['40001', 'STORE_BUSY'],
    ['55P03', 'STORE_BUSY'],
    ['26000', 'STORE_FAILED'],
    ['XX000', 'STORE_FAILED'],
  ] satisfies [string, ErrorCode][])('SQLSTATE %s is %s, with the label and a way out', (state, code) => {
    const error = errorOf(state, 'reading')

    expect(error.code).toBe(code)
    expect(error.message).toContain('postgres://db1/app')
    expect(error.fix).toBeTruthy()
  })

  test.each(['ECONNRESET', 'CONNECTION_CLOSED', 'EPIPE', '57P01'])(
    '%s leaves a write on its way unknown, and only that',
    (code) => {
      expect(errorOf(code, 'writing', code === '57P01').code).toBe('OUTCOME_UNKNOWN')
      expect(errorOf(code, 'reading', code === '57P01').code).toBe('STORE_UNREACHABLE')
      expect(errorOf(code, 'connecting', code === '57P01').code).toBe('STORE_UNREACHABLE')
    },
  )

  test('what the server says about a value is not repeated', () => {
    expect(errorOf('22P02', 'writing').message).toBe('postgres://db1/app refused to reserve jobs (SQLSTATE 22P02)')
  })

  test('a fault of this program comes back as it is', () => {
    const fault = new TypeError('x is not a function')

    expect(storeError(fault, { label: '', doing: '', stage: 'reading', deadlineMs: 1 })).toBe(fault)
  })
})
