import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Firing, firings, parseCadence } from '../../src/schedule/cadence.ts'
import { hardCases } from './hard-cases.ts'

const docs = readFileSync(new URL('../../docs/schedules.md', import.meta.url), 'utf8')

/** "2026-03-29 03:00 +02:00 (gap)" as an instant. */
function instantOf(shown: string): number {
  const [day, time, offset] = shown.split(' ')
  return Date.parse(`${day}T${time}${offset}`)
}

const marked = ({ at, gap, doubled }: Firing): string =>
  `${new Date(at).toISOString()}${gap ? ' (gap)' : ''}${doubled ? ' (twice)' : ''}`

const asFiring = (shown: string): Firing => ({
  at: instantOf(shown),
  gap: shown.endsWith('(gap)'),
  doubled: shown.endsWith('(twice)'),
})

describe.each(hardCases)('$name', ({ name, cron, zone, fires }) => {
  it(`${cron} in ${zone} fires as the table says, and not in between`, () => {
    const expected = fires.map(asFiring)
    const [first, last] = [expected[0] as Firing, expected.at(-1) as Firing]
    const found = [...firings(parseCadence({ cron, zone }), first.at, last.at + 1)]
    expect(found.map(marked)).toEqual(expected.map(marked))
  })

  it('stands in docs/schedules.md in these words', () => {
    const row = `| ${name} | \`${cron}\` | ${zone} | ${fires.join(', ')} |`
    expect(docs.replace(/ +/g, ' ')).toContain(row)
  })
})
