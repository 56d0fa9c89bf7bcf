import { decodeEnvelope, encodeEnvelope, Poison } from '../../../src/core/envelope.ts'
import type { Seeded } from '../simulation/seeded.ts'
import { anyJson, mutated } from './mutation.ts'
import { shownInput, type Target } from './target.ts'

/** Envelopes as they may stand in a table that others write to, up to the value that a handler gets. */
export const envelopes: Target = {
  feed: async (dice) => {
    const { text, column } = anEnvelope(dice)
    return decode(text, column).map((what) => `${what}: ${shownInput(text)}`)
  },
}

/** An envelope that is mostly right, and the job name beside it. */
export function anEnvelope(dice: Seeded): { readonly text: string; readonly column: string } {
  const job = dice.pick(['note', 'note', 'note', 'no-such-job', ''])
  const members = [`"v":${dice.pick(['1', '1', '1', '1', '2', '"1"'])}`, `"job":${JSON.stringify(job)}`]
  members.push(`"dispatchedAt":${dice.pick(['1767600000000', '0', '-1', 'null'])}`, '"maxCrashes":3')
  for (const [key, values] of Object.entries(optional))
    if (dice.chance(0.2)) members.push(`"${key}":${dice.chance(0.2) ? anyJson(dice) : dice.pick(values)}`)
  members.push(`"payload":${anyJson(dice)}`)
  const text = mutated(`{${members.join(',')}}`, dice)
  return { text, column: dice.chance(0.9) ? job : mutated(job, dice) }
}

const optional: Readonly<Record<string, readonly [string, ...string[]]>> = {
  tries: ['1', '5', '0'],
  backoff: [
    '{"kind":"none"}',
    '{"kind":"list","delaysMs":[0,60000]}',
    '{"kind":"list","delaysMs":[]}',
    '{"kind":"fixed"}',
  ],
  timeoutMs: ['30000', '0'],
  unique: ['"user:7"'],
  context: ['{"tenant":"a"}', '[]'],
  trace: ['"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"'],
  stranger: ['1'],
}

/** Poison, or an envelope that stays what it is when it is written and read again. */
function decode(text: string, column: string): readonly string[] {
  try {
    const read = decodeEnvelope(text, column)
    const again = decodeEnvelope(encodeEnvelope(read), column)
    const isSame =
      again.payloadText === read.payloadText && JSON.stringify(again.backoff) === JSON.stringify(read.backoff)
    JSON.parse(read.payloadText)
    return isSame ? [] : ['it changes when it is written again']
  } catch (error) {
    if (!(error instanceof Poison)) return [`it threw ${error instanceof Error ? error.stack : String(error)}`]
    return error.message.length > 500 ? [`its reason has ${error.message.length} characters`] : []
  }
}
