import { describe, expect, test } from 'vitest'
import { Job } from '../../src/core/job.ts'
import { checkName, checkPriority, checkQueue, checkUnique, parseMoment, parseTerms } from '../../src/core/terms.ts'

const refusal = (message: string): object => expect.objectContaining({ code: 'DATA_INVALID', message })

describe('parseTerms', () => {
  test('reads all six terms into the units of the kernel', () => {
    expect(
      parseTerms({ queue: 'high', priority: -5, tries: 5, backoff: ['10s', '1m'], timeout: '30s', maxCrashes: 0 }, ''),
    ).toEqual({
      queue: 'high',
      priority: -5,
      tries: 5,
      backoff: { kind: 'list', delaysMs: [10_000, 60_000] },
      timeoutMs: 30_000,
      maxCrashes: 0,
    })
  })

  test('leaves out what is not given and does not look at other keys', () => {
    expect(parseTerms({ tries: undefined, handle: () => 1, payload: { tries: 0 } }, '')).toEqual({})
  })

  test('reads the static properties of a class', () => {
    class Welcome extends Job {
      static override readonly queue = 'mail'
      static override readonly tries = 4
      handle(): void {}
    }
    expect(parseTerms(Welcome, '')).toEqual({ queue: 'mail', tries: 4 })
  })

  test.each([
    [{ tries: 0 }, 'tries must be a whole number of at least 1, got 0'],
    [{ tries: -1 }, 'tries must be a whole number of at least 1, got -1'],
    [{ tries: 1.5 }, 'tries must be a whole number of at least 1, got 1.5'],
    [{ tries: Number.NaN }, 'tries must be a whole number of at least 1, got NaN'],
    [{ tries: '3' }, 'tries must be a whole number of at least 1, got "3"'],
    [{ tries: null }, 'tries must be a whole number of at least 1, got null'],
    [{ tries: 2 ** 31 }, 'tries must be a whole number of at least 1, got 2147483648'],
    [{ maxCrashes: -1 }, 'maxCrashes must be a whole number of at least 0, got -1'],
    [{ priority: 32_768 }, 'priority must be a whole number from -32767 to 32767, got 32768'],
    [{ timeout: 0 }, 'timeout must be longer than 0, got 0'],
    [
      { timeout: 'soon' },
      'timeout must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got "soon"',
    ],
    [
      { backoff: ['1s', -1] },
      'backoff[1] must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got -1',
    ],
    [{ queue: '' }, 'queue must be a name, got ""'],
  ])('refuses %o', (input, message) => {
    expect(() => parseTerms(input, '')).toThrow(refusal(message))
  })

  test('puts the path in front of the key', () => {
    expect(() => parseTerms({ tries: 0 }, 'jobs.report')).toThrow(
      refusal('jobs.report.tries must be a whole number of at least 1, got 0'),
    )
  })
})

describe('names', () => {
  test.each([
    'constructor',
    '__proto__',
    '../../evil',
    'file:///etc/passwd',
    `it's "quoted"`,
    'emoji 😀',
    'x'.repeat(255),
    '%_\\',
  ])('a job may be called %j', (name) => {
    expect(checkName(name, 'job')).toBe(name)
  })

  test.each([
    ['', 'job must be a name, got ""'],
    [7, 'job must be a name, got 7'],
    [undefined, 'job must be a name, got undefined'],
    ['x'.repeat(500), 'job must have at most 255 characters, got 500'],
    ['a\nb', 'job must be free of control characters and valid Unicode, got "a\\nb"'],
    ['a\0', 'job must be free of control characters and valid Unicode, got "a\ufffd"'],
    ['\ud800', 'job must be free of control characters and valid Unicode, got "\ufffd"'],
  ])('refuses %j as a name', (name, message) => {
    expect(() => checkName(name, 'job')).toThrow(refusal(message))
  })

  test.each([
    ['a,b', 'queue must be one name without a comma, got "a,b"'],
    ['*', 'queue must be a name; "*" means every queue, got "*"'],
    [' a', 'queue must be free of white space at both ends, got " a"'],
  ])('refuses %j as a queue, which no list on the command line could name', (name, message) => {
    expect(() => checkQueue(name, 'queue')).toThrow(refusal(message))
    expect(checkName(name, 'job')).toBe(name)
  })

  test('a unique key has 1 to 255 characters', () => {
    expect(checkUnique('k'.repeat(255), 'unique')).toHaveLength(255)
    expect(() => checkUnique('', 'unique')).toThrow(refusal('unique must be a name, got ""'))
  })

  test('a priority of -0 is 0', () => {
    expect(Object.is(checkPriority(-0, 'priority'), 0)).toBe(true)
  })
})

describe('parseMoment', () => {
  test.each([
    ['2030-01-31T09:00:00Z', Date.UTC(2030, 0, 31, 9)],
    ['2030-01-31T09:00+01:00', Date.UTC(2030, 0, 31, 8)],
    ['2030-01-31T09:00:00.250-0530', Date.UTC(2030, 0, 31, 14, 30, 0, 250)],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    [1_900_000_000_000, 1_900_000_000_000],
  ])('%j is %i', (input, ms) => {
    expect(parseMoment(input, 'at')).toBe(ms)
  })

  test.each([
    '2030-01-31T09:00:00',
    '2030-01-31',
    '2027-02-29T00:00:00Z',
    '2030-13-01T00:00:00Z',
    '2030-01-01T25:00:00Z',
    'tomorrow',
    '',
    null,
    1.5,
    Number.NaN,
  ])('refuses %j, which has no offset or is no moment', (input) => {
    expect(() => parseMoment(input, 'at')).toThrow(
      'at must be a time with an offset such as "2030-01-31T09:00:00+01:00", or epoch milliseconds',
    )
  })

  test('takes 1,900,000,000 for seconds and refuses it, and microseconds too', () => {
    expect(() => parseMoment(1_900_000_000, 'at')).toThrow(
      'at must be a time after 1973; numbers are epoch milliseconds, not seconds, got 1900000000',
    )
    expect(() => parseMoment(1_900_000_000_000_000, 'at')).toThrow('before the year 9999')
  })
})
