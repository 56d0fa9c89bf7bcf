import { describe, expect, it } from 'vitest'
import { exitCodeOf, exitCodeTable, exitOf } from '../../src/cli/exit-codes.ts'
import { errorCodes, KhepriError } from '../../src/core/errors.ts'

describe('exit codes', () => {
  it('every error code has one, and help explains each', () => {
    const explained = new Set(exitCodeTable.map(({ code }) => code))
    expect(Object.keys(exitOf).sort()).toEqual(Object.keys(errorCodes).sort())
    for (const exit of Object.values(exitOf)) expect(explained).toContain(String(exit))
  })

  it.each([
    ['USAGE', 2],
    ['NOT_FOUND', 3],
    ['JSON_INVALID', 65],
    ['JOB_UNKNOWN', 65],
    ['INPUT_MISSING', 66],
    ['STORE_UNREACHABLE', 69],
    ['SCHEMA_FOREIGN', 73],
    ['FILE_EXISTS', 73],
    ['STORE_FULL', 74],
    ['STORE_BUSY', 75],
    ['OUTCOME_UNKNOWN', 75],
    ['CONFIG_UNSAFE', 77],
    ['SCHEMA_MISSING', 78],
  ] as const)('%s exits with %i', (code, exit) => {
    expect(exitCodeOf(new KhepriError(code, 'it'))).toBe(exit)
  })

  it('what khepri did not throw on purpose is a bug, 70', () => {
    expect(exitCodeOf(new TypeError('x is not a function'))).toBe(70)
    expect(exitCodeOf(undefined)).toBe(70)
  })
})
