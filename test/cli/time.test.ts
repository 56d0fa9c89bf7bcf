import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { age, checkTimezone, isoTime, parsePast, parseZonedTime } from '../../src/cli/time.ts'

const noon = Date.UTC(2026, 10, 30, 12)

describe('ages', () => {
  it.each([
    [0, '0s ago'],
    [999, '0s ago'],
    [59_999, '59s ago'],
    [60_000, '1m ago'],
    [3_599_999, '59m ago'],
    [90_000_000, '1d ago'],
    [-300_000, 'in 5m'],
    [-500, '0s ago'],
  ])('%i ms ago is "%s"', (ms, text) => {
    expect(age(noon - ms, noon)).toBe(text)
  })
})

describe('ISO times', () => {
  it('are in UTC unless a time zone is asked for', () => {
    expect(isoTime(noon)).toBe('2026-11-30T12:00:00.000Z')
    expect(isoTime(noon, 'Europe/Berlin')).toBe('2026-11-30T13:00:00.000+01:00')
    expect(isoTime(noon + 7, 'America/St_Johns')).toBe('2026-11-30T08:30:00.007-03:30')
  })

  it('of a moment beyond all calendars is its number, not an exception', () => {
    expect(isoTime(9e15)).toBe('9000000000000000')
    expect(isoTime(Number.NaN, 'UTC')).toBe('NaN')
  })
})

describe('reading a time', () => {
  it.each([
    ['2026-11-30T12:00Z', noon],
    ['2026-11-30T12:00:00.000Z', noon],
    ['2026-11-30T13:00+01:00', noon],
    ['2026-11-30 13:00:00+0100', noon],
    ['2026-11-30z', noon - 43_200_000],
  ])('takes %s', (text, at) => {
    expect(parseZonedTime(text, '--at', undefined)).toBe(at)
  })

  it('takes one without an offset only where a time zone says what is meant', () => {
    expect(() => parseZonedTime('2026-11-30T13:00', '--at', undefined)).toThrow(
      '--at needs an offset, got "2026-11-30T13:00"',
    )
    expect(parseZonedTime('2026-11-30T13:00', '--at', 'Europe/Berlin')).toBe(noon)
  })

  it('refuses a time that the clocks of the zone skip', () => {
    expect(() => parseZonedTime('2026-03-29T02:30', '--at', 'Europe/Berlin')).toThrow(
      '--at names a time that clocks in Europe/Berlin skip',
    )
  })

  it.each(['', 'abc', '2026-02-30T00:00Z', '2026-11-30T25:00Z', '2026-11-30T12:00X', '1796056203'])(
    'refuses %j',
    (text) => {
      expect(() => parseZonedTime(text, '--at', 'UTC')).toThrow('--at must be a time such as')
    },
  )

  it('reads back what it writes, in every zone', () => {
    const zones = ['UTC', 'Asia/Kathmandu', 'America/New_York', 'Pacific/Apia']
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), fc.constantFrom(...zones), (at, zone) => {
        expect(parseZonedTime(isoTime(at, zone), 'it', undefined)).toBe(at)
      }),
    )
  })
})

describe('reading a moment in the past', () => {
  const setting = { timezone: undefined, now: noon }

  it('takes a duration as so long ago, and a time as it is', () => {
    expect(parsePast('2h', '--since', setting)).toBe(noon - 7_200_000)
    expect(parsePast('2026-11-30T12:00Z', '--since', setting)).toBe(noon)
  })

  it('the refusal of a word does not hide that a duration would do', () => {
    expect(() => parsePast('yesterday', '--since', setting)).toThrow(/--since must be a duration such as 2h or a time/)
  })

  it.each(['-2h', '5parsecs', 'yesterday'])('refuses %j as wrong usage', (text) => {
    expect(() => parsePast(text, '--since', setting)).toThrow(
      expect.objectContaining({ code: 'USAGE', message: expect.stringContaining(text) }),
    )
  })
})

describe('time zones', () => {
  it('are known by name', () => {
    expect(checkTimezone('Europe/Berlin', '--timezone')).toBe('Europe/Berlin')
    expect(() => checkTimezone('Mars/Olympus', '--timezone')).toThrow(
      '--timezone must be a time zone such as Europe/Berlin or UTC, got "Mars/Olympus"',
    )
  })
})
