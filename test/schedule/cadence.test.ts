import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CadenceInput, firings, parseCadence } from '../../src/schedule/cadence.ts'

const at = (iso: string): number => Date.parse(iso)

/** The first slots of a cadence after the beginning of 2026, a Thursday, in UTC. */
function slots(input: CadenceInput, count: number): readonly string[] {
  const cadence = parseCadence(input)
  const found: number[] = []
  while (found.length < count) found.push(cadence.next(found.at(-1) ?? at('2026-01-01T00:00Z') - 1))
  return found.map((slot) => new Date(slot).toISOString().slice(0, 16))
}

describe('cron', () => {
  it.each([
    ['*/20 * * * *', ['2026-01-01T00:00', '2026-01-01T00:20', '2026-01-01T00:40', '2026-01-01T01:00']],
    ['5,10 3-4 * * *', ['2026-01-01T03:05', '2026-01-01T03:10', '2026-01-01T04:05', '2026-01-01T04:10']],
    ['10-40/15 0 * * *', ['2026-01-01T00:10', '2026-01-01T00:25', '2026-01-01T00:40', '2026-01-02T00:10']],
    ['0 0 1 FEB,apr *', ['2026-02-01T00:00', '2026-04-01T00:00', '2027-02-01T00:00']],
    ['0 0 * jan Mon-Wed', ['2026-01-05T00:00', '2026-01-06T00:00', '2026-01-07T00:00', '2026-01-12T00:00']],
    ['0 0 * * 7', ['2026-01-04T00:00', '2026-01-11T00:00']],
    ['0 0 * * 0', ['2026-01-04T00:00', '2026-01-11T00:00']],
    ['0 0 * * 6-7', ['2026-01-03T00:00', '2026-01-04T00:00', '2026-01-10T00:00']],
    ['0 0 * * sat-sun', ['2026-01-03T00:00', '2026-01-04T00:00', '2026-01-10T00:00']],
    ['0 0 * * 1-7/3', ['2026-01-01T00:00', '2026-01-04T00:00', '2026-01-05T00:00']],
    ['0 0 31 2 mon', ['2026-02-02T00:00', '2026-02-09T00:00']],
    ['@hourly', ['2026-01-01T00:00', '2026-01-01T01:00']],
    ['@daily', ['2026-01-01T00:00', '2026-01-02T00:00']],
    ['@midnight', ['2026-01-01T00:00', '2026-01-02T00:00']],
    ['@weekly', ['2026-01-04T00:00', '2026-01-11T00:00']],
    ['@monthly', ['2026-01-01T00:00', '2026-02-01T00:00']],
    ['@yearly', ['2026-01-01T00:00', '2027-01-01T00:00']],
    ['@Annually', ['2026-01-01T00:00', '2027-01-01T00:00']],
    ['  0\t12  * * *  ', ['2026-01-01T12:00', '2026-01-02T12:00']],
  ])('%j fires at %j', (cron, expected) => {
    expect(slots({ cron }, expected.length)).toEqual(expected)
  })

  it('29 February on a Sunday alone, by a step, is found 28 years ahead', () => {
    const cadence = parseCadence({ cron: '0 0 29 2 */7' })
    expect(new Date(cadence.next(at('2032-03-01'))).toISOString()).toBe('2060-02-29T00:00:00.000Z')
  })

  it.each([
    ['', 'has 0 fields, and needs five'],
    ['* * * *', 'has 4 fields, and needs five'],
    ['0 0 0 * * *', 'has 6 fields, and needs five'],
    ['60 * * * *', 'has "60" as its minute, which must be 0 to 59'],
    ['* 24 * * *', 'has "24" as its hour, which must be 0 to 23'],
    ['* * 0 * *', 'has "0" as its day of the month, which must be 1 to 31'],
    ['* * * 13 *', 'has "13" as its month, which must be 1 to 12 or jan to dec'],
    ['* * * * 8', 'has "8" as its day of the week, which must be 0 to 7 or sun to sat'],
    ['* * * * fir', 'which must be 0 to 7 or sun to sat. Did you mean "fri"?'],
    ['* * * * monday', 'has "monday" as its day of the week'],
    ['-1 * * * *', 'has "-1" as its minute'],
    ['1- * * * *', 'has "1-" as its minute'],
    ['1-5-7 * * * *', 'has "1-5-7" as its minute'],
    ['1.5 * * * *', 'has "1.5" as its minute'],
    ['1,,2 * * * *', 'has "1,,2" as its minute'],
    ['1, * * * *', 'has "1," as its minute'],
    ['** * * * *', 'has "**" as its minute'],
    ['* * L * *', 'has "L" as its day of the month'],
    ['* * ? * *', 'has "?" as its day of the month'],
    ['* * * * 5#2', 'has "5#2" as its day of the week'],
    ['1000000000000 * * * *', 'has "1000000000000" as its minute'],
    ['5/15 * * * *', 'has "5/15" as its minute: a step needs a range'],
    ['*/0 * * * *', 'whose step must be 1 to 60'],
    ['*/ * * * *', 'whose step must be 1 to 60'],
    ['*/90 * * * *', 'whose step must be 1 to 60'],
    ['0 */25 * * *', 'whose step must be 1 to 24'],
    ['1-10/2/3 * * * *', 'whose step must be 1 to 60'],
    ['0 22-2 * * *', 'has "22-2" as its hour, which runs backwards'],
    ['0 0 30 2 *', 'can never fire'],
    ['0 0 31 4,6,9,nov *', 'can never fire'],
    ['0 0 30-31 feb */2', 'can never fire'],
    ['@reboot', 'names no time'],
    ['@every 5m', 'is an interval'],
    ['@dialy', 'is unknown. Did you mean "@daily"?'],
  ])('%j is refused: it %s', (cron, reason) => {
    expect(() => parseCadence({ cron })).toThrow(
      expect.objectContaining({ code: 'DATA_INVALID', message: expect.stringContaining(reason) }),
    )
    expect(() => parseCadence({ cron })).toThrow(`the cron expression ${JSON.stringify(cron)} `)
  })

  it.each([
    ['0 22-2 * * *', 'write 22-23,0-2'],
    ['0 0 * * sat-mon', 'write 6,0-1'],
    ['5/15 * * * *', 'write 5-59/15'],
    ['*/90 * * * *', 'for longer intervals write every: "90m" instead of cron'],
  ])('%j is refused with a way out: %s', (cron, fix) => {
    expect(() => parseCadence({ cron })).toThrow(expect.objectContaining({ fix }))
  })

  it('whatever text is given is taken or refused, and what is taken fires again and again', () => {
    const field = fc.string({ unit: fc.constantFrom(...'0123456789*/,-LW#?@ adfjmnosu'), maxLength: 6 })
    const cron = fc.array(field, { minLength: 5, maxLength: 5 }).map((fields) => fields.join(' '))
    fc.assert(
      fc.property(fc.oneof(cron, fc.string()), fc.integer({ min: 0, max: 4e12 }), (expression, after) => {
        const cadence = refusedOr(() => parseCadence({ cron: expression }))
        if (cadence === null) return true
        const slot = cadence.next(after)
        return slot > after && cadence.next(slot) > slot
      }),
      { numRuns: 2_000 },
    )
  })
})

function refusedOr<T>(parse: () => T): T | null {
  try {
    return parse()
  } catch (error) {
    expect(error).toMatchObject({ code: 'DATA_INVALID' })
    return null
  }
}

describe('every', () => {
  it('counts from 1970, so that every process agrees', () => {
    expect(slots({ every: '11h' }, 2)).toEqual(['2026-01-01T01:00', '2026-01-01T12:00'])
    expect(at('2026-01-01T01:00Z') % (11 * 3_600_000)).toBe(0)
    expect(slots({ every: 900 }, 2)).toEqual(['2026-01-01T00:00', '2026-01-01T00:15'])
  })

  it('follows real time when clocks change', () => {
    const cadence = parseCadence({ every: '30m', zone: 'Europe/Oslo' })
    const found = [...firings(cadence, at('2026-03-29T00:30Z'), at('2026-03-29T02:00Z'))]
    expect(found).toEqual([
      { at: at('2026-03-29T00:30Z'), gap: false, doubled: false },
      { at: at('2026-03-29T01:00Z'), gap: false, doubled: false },
      { at: at('2026-03-29T01:30Z'), gap: false, doubled: false },
    ])
  })

  it.each([['0'], ['999ms'], ['5 minutes'], [''], [-1], [Number.NaN], ['3651d']])('%j is refused', (every) => {
    expect(() => parseCadence({ every })).toThrow(
      expect.objectContaining({ code: 'DATA_INVALID', message: expect.stringContaining('every must be') }),
    )
  })
})

describe('dailyAt', () => {
  it('fires once a day at that time on the wall', () => {
    expect(slots({ dailyAt: '02:30', zone: 'Asia/Kolkata' }, 2)).toEqual(['2026-01-01T21:00', '2026-01-02T21:00'])
  })

  it.each([['24:00'], ['2:60'], ['0230'], ['02:30:00'], ['noon'], ['']])('%j is refused', (dailyAt) => {
    expect(() => parseCadence({ dailyAt })).toThrow(`dailyAt must be a time from "00:00" to "23:59", got "${dailyAt}"`)
  })
})

describe('a definition', () => {
  it.each<[CadenceInput, string, string]>([
    [{ cron: ' 30  2 * * * ' }, '30 2 * * *', 'UTC'],
    [{ cron: '@Daily', zone: 'Europe/Oslo' }, '@Daily', 'Europe/Oslo'],
    [{ every: '15m' }, 'every 15m', 'UTC'],
    [{ every: 90, zone: 'Asia/Tokyo' }, 'every 90s', 'Asia/Tokyo'],
    [{ dailyAt: '2:30' }, 'daily at 02:30', 'UTC'],
  ])('%j is shown as "%s" in %s', (input, text, zone) => {
    expect(parseCadence(input)).toMatchObject({ text, zone })
  })

  it.each([
    [{}, 'got none'],
    [{ cron: '@daily', every: '5m' }, 'got cron and every'],
    [{ cron: '@daily', every: '5m', dailyAt: '02:30' }, 'got cron and every and dailyAt'],
  ])('%j is refused: exactly one of the three is needed, %s', (input, got) => {
    expect(() => parseCadence(input)).toThrow(`a schedule needs cron, every or dailyAt, ${got}`)
  })

  it.each([
    [{ cron: 7 }, 'cron must be an expression such as "30 2 * * *", got 7'],
    [{ cron: null }, 'cron must be an expression such as "30 2 * * *", got null'],
    [{ every: {} }, 'every must be a duration'],
    [{ dailyAt: ['02:30'] }, 'dailyAt must be a time from "00:00" to "23:59", got a list'],
    [{ cron: '@daily', zone: 2 }, 'zone must be the name of an IANA time zone, got 2'],
  ])('a wrong type is refused: %j', (input, message) => {
    expect(() => parseCadence(input as unknown as CadenceInput)).toThrow(message)
  })
})

describe('zones', () => {
  it.each([['UTC'], ['Europe/Kyiv'], ['Asia/Calcutta'], ['US/Eastern'], ['EST'], ['CET'], ['CST6CDT'], ['Etc/GMT+5']])(
    '%s is taken',
    (zone) => {
      expect(parseCadence({ cron: '@daily', zone }).zone).toBe(zone)
    },
  )

  it.each([
    [''],
    ['+02:00'],
    ['PST'],
    ['IST'],
    ['SystemV/PST8'],
    ['GMT+1'],
    ['local'],
    ['Europe/Oslo '],
    ['__proto__'],
  ])('%j is refused: it is no name of IANA', (zone) => {
    expect(() => parseCadence({ cron: '@daily', zone })).toThrow(
      `zone must be the name of an IANA time zone, got ${JSON.stringify(zone)}`,
    )
  })

  it('a mistyped zone is refused with the nearest one', () => {
    expect(() => parseCadence({ cron: '@daily', zone: 'Europe/Olso' })).toThrow('Did you mean "Europe/Oslo"?')
  })

  it('the zone of the process does not matter', () => {
    const before = process.env.TZ
    try {
      for (const zone of ['Asia/Tokyo', 'America/New_York']) {
        process.env.TZ = zone
        expect(new Date(at('2026-01-01T12:00Z')).getHours()).not.toBe(12)
        expect(slots({ cron: '0 12 * * *' }, 1)).toEqual(['2026-01-01T12:00'])
      }
    } finally {
      if (before === undefined) delete process.env.TZ
      else process.env.TZ = before
    }
  })
})

describe('instants', () => {
  it.each<[CadenceInput]>([[{ cron: '0 0 * * *' }], [{ cron: '0 * * * *' }], [{ every: '1h' }]])(
    'the next slot of %j is after the instant, never at it, to the millisecond',
    (input) => {
      const cadence = parseCadence(input)
      const midnight = at('2026-06-01T00:00Z')
      expect(cadence.next(midnight - 1)).toBe(midnight)
      expect(cadence.next(midnight - 0.5)).toBe(midnight)
      expect(cadence.next(midnight)).toBeGreaterThan(midnight)
      expect(cadence.next(midnight + 0.5)).toBe(cadence.next(midnight))
    },
  )

  it.each([[Number.NaN], [Number.POSITIVE_INFINITY], [-1e15], [1e15]])('%d is refused', (after) => {
    for (const input of [{ cron: '@daily' }, { cron: '@hourly' }, { every: '5m' }])
      expect(() => parseCadence(input).next(after)).toThrow(RangeError)
  })

  it('firings begin with a slot at the first instant and end before the last', () => {
    const found = [...firings(parseCadence({ cron: '@daily' }), at('2026-01-01'), at('2026-01-03'))]
    expect(found.map((firing) => firing.at)).toEqual([at('2026-01-01'), at('2026-01-02')])
  })

  it('before 1972, when offsets had seconds, slots are as exact', () => {
    const cadence = parseCadence({ cron: '0 12 * * *', zone: 'Africa/Monrovia' })
    expect(new Date(cadence.next(at('1971-06-01T00:00Z'))).toISOString()).toBe('1971-06-01T12:44:30.000Z')
  })
})
