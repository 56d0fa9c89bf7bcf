import { parseArgs } from 'node:util'
import type { StoreName } from './contestants.ts'
import { type Scale, scales } from './measures/measure.ts'

/** What the command line asks for. */
export interface Options {
  readonly scale: Scale
  readonly rounds: number
  readonly stores: readonly StoreName[]
  /** Measures by name or beginning of a name; empty: all of the form. */
  readonly only: readonly string[]
  /** Contestants by name; empty: all. */
  readonly contestants: readonly string[]
  /** Where the figures go as JSON. */
  readonly output: string
}

/** What `--help` prints. */
export const usage = `npm run bench -- [--quick | --full] [--store sqlite|postgres|redis] [--only MEASURE,..]
                  [--contestant NAME,..] [--rounds N] [--output FILE.json]

--quick       every kind of measure in a short form, one round: under five minutes
--full        with a million rows in the way, 200,000 jobs and all payloads: hours
--only        measures by name or beginning, such as drain or pick-up
--contestant  only these; khepri and the limit are named khepri, "khepri work" and limit
--rounds      1 with --quick, else 3
--output      bench/results.json unless given`

/** Reads the command line. Throws where it makes no sense. */
export function parseOptions(words: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...words],
    options: {
      quick: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      store: { type: 'string' },
      only: { type: 'string' },
      contestant: { type: 'string' },
      rounds: { type: 'string' },
      output: { type: 'string', default: `${import.meta.dirname}/results.json` },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  return {
    scale: scales[values.quick ? 'quick' : values.full ? 'full' : 'usual'],
    rounds: roundsOf(values.rounds ?? (values.quick ? '1' : '3')),
    stores: values.store ? [storeOf(values.store)] : stores,
    only: values.only?.split(',') ?? [],
    contestants: values.contestant?.split(',') ?? [],
    output: values.output,
  }
}

const stores: readonly StoreName[] = ['sqlite', 'postgres', 'redis']

function storeOf(text: string): StoreName {
  const found = stores.find((store) => store === text)
  if (!found) throw new Error(`--store must be one of ${stores.join(', ')}, got ${JSON.stringify(text)}`)
  return found
}

function roundsOf(text: string): number {
  const rounds = Number(text)
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new Error(`--rounds must be 1 or more, got ${JSON.stringify(text)}`)
  return rounds
}
