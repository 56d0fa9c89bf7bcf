import { Inputs, type Overrides } from '../../../src/cli/dispatch-inputs.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { Dispatcher } from '../../../src/core/dispatch.ts'
import { decodeEnvelope } from '../../../src/core/envelope.ts'
import { type ErrorCode, KhepriError } from '../../../src/core/errors.ts'
import type { Seeded } from '../simulation/seeded.ts'
import { anyJson, bytesOf, mutated } from './mutation.ts'
import { judgeError, shownInput, type Target } from './target.ts'

const codes: readonly ErrorCode[] = ['JSON_INVALID', 'DATA_INVALID', 'PAYLOAD_REFUSED', 'INPUT_MISSING']

const maxPayloadBytes = 16 * 1024

/** So many faults of one file are looked at. */
const mostItems = 50

const dispatcher = new Dispatcher({
  registry: { get: () => undefined, unknown: (name) => new KhepriError('JOB_UNKNOWN', `unknown job ${name}`) },
  config: { queue: 'default', maxCrashes: 3, maxPayloadBytes },
  clock: systemClock,
  allowUnknown: true,
})

/** Files of jobs as `dispatch` reads them, up to the row that would be written. */
export const jobFiles: Target = {
  feed: async (dice) => {
    const text = aJobFile(dice)
    const overrides: Overrides = { job: dice.chance(0.2) ? 'note' : null, terms: {}, due: null, unique: null }
    const wrong = await read(bytesOf(text, dice), { overrides, chunk: dice.whole(1, 4_096) })
    return wrong.map((what) => `${what}: ${shownInput(text)}`)
  },
}

/** A file that is mostly right, in one of the three forms. */
export function aJobFile(dice: Seeded): string {
  const objects = Array.from({ length: dice.whole(1, 4) }, () => aJobObject(dice))
  const form = dice.whole(0, 3)
  const text = form === 0 ? `[${objects.join(',\n')}]` : form === 1 ? objects.join('\n') : (objects[0] ?? '')
  return mutated(dice.chance(0.05) ? anyJson(dice) : text, dice)
}

function aJobObject(dice: Seeded): string {
  const members = [`"job":${JSON.stringify(dice.pick(['note', 'send-welcome', '', 'x'.repeat(300), '../x']))}`]
  for (const [key, values] of Object.entries(terms))
    if (dice.chance(0.2)) members.push(`"${key}":${dice.chance(0.1) ? anyJson(dice) : dice.pick(values)}`)
  if (dice.chance(0.8)) members.push(`"payload":${anyJson(dice)}`)
  return `{${members.join(dice.chance(0.1) ? ' ,\n' : ',')}}`
}

const terms: Readonly<Record<string, readonly [string, ...string[]]>> = {
  queue: ['"high"', '""', '"*"', '"a,b"', '7'],
  priority: ['0', '-5', '2147483648', '0.5'],
  delay: ['"5m"', '5', '"-1s"', '"11y"', '1e999'],
  at: ['"2026-11-30T14:02:11Z"', '"tomorrow"', '0', '8640000000000001'],
  tries: ['1', '0', '25', '"3"', '9007199254740993'],
  backoff: [
    '"10s"',
    '["1s","2m"]',
    '[]',
    '{"kind":"linear","base":"1s","max":"1h"}',
    '{"kind":"none"}',
    '{"kind":"x"}',
  ],
  timeout: ['"30s"', '0', 'null'],
  maxCrashes: ['0', '3', '-1'],
  unique: ['"key"', '""', '"\\u0000"', `"${'k'.repeat(256)}"`],
  v: ['1', '2', '"1"'],
}

async function read(
  bytes: Buffer,
  { overrides, chunk }: { readonly overrides: Overrides; readonly chunk: number },
): Promise<readonly string[]> {
  const inputs = new Inputs(['-'], overrides, { stdin: inChunks(bytes, chunk), maxPayloadBytes })
  const wrong: string[] = []
  let items = 0
  try {
    for await (const item of inputs.items()) {
      if (++items > mostItems) break
      wrong.push(...(await prepare(() => inputs.request(item))))
    }
  } catch (error) {
    wrong.push(...judgeError(error, codes))
  }
  return wrong
}

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** What is accepted is kept byte for byte, and can be read again. */
async function prepare(request: () => ReturnType<Inputs['request']>): Promise<readonly string[]> {
  try {
    const asked = request()
    const row = await dispatcher.prepare(asked)
    const { payloadText } = decodeEnvelope(row.envelope, row.job)
    return payloadText === asked.payloadText ? [] : ['its payload is not kept byte for byte']
  } catch (error) {
    return judgeError(error, codes)
  }
}
