import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { type Backoff, parseBackoff } from '../core/backoff.ts'
import { defaults } from '../core/defaults.ts'
import { parseDuration } from '../core/duration.ts'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import { checkName, checkQueue, parsePositive, parseRetryAfter } from '../core/terms.ts'

export { Args, Flags }

/** Reads a value given on the command line: what the kernel calls invalid data is wrong usage here. */
export function asUsage<T>(read: () => T, fix?: string): T {
  try {
    return read()
  } catch (error) {
    if (!isKhepriError(error)) throw error
    throw new KhepriError('USAGE', error.message, { ...(fix !== undefined && { fix }), cause: error })
  }
}

interface Named {
  readonly name: string
}

const flagOf = (options: Named): string => `--${options.name}`

/** A duration with its unit; the value is milliseconds. */
export const durationFlag = Flags.custom<number>({
  helpValue: '30s',
  parse: async (input, _context, options) => asUsage(() => parseDuration(input, flagOf(options), defaults.maxDelayMs)),
})

/** A duration that is longer than nothing; the value is milliseconds. */
export const positiveDurationFlag = Flags.custom<number>({
  helpValue: '30s',
  parse: async (input, _context, options) => asUsage(() => parsePositive(input, flagOf(options), defaults.maxDelayMs)),
})

/** The lease of a worker; the value is milliseconds. */
export const retryAfterFlag = Flags.custom<number>({
  helpValue: '90s',
  parse: async (input, _context, options) => asUsage(() => parseRetryAfter(input, flagOf(options))),
})

/** A whole number of at least `min` (1 where none is given). */
export const countFlag = Flags.custom<number, { min?: number; max?: number }>({
  helpValue: 'N',
  parse: async (input, _context, options) =>
    wholeNumber(input, flagOf(options), options.min ?? 1, options.max ?? Number.MAX_SAFE_INTEGER),
})

/** A whole number, negative ones too. */
export const integerFlag = Flags.custom<number, { min?: number; max?: number }>({
  helpValue: 'N',
  parse: async (input, _context, options) =>
    wholeNumber(input, flagOf(options), options.min ?? Number.MIN_SAFE_INTEGER, options.max ?? Number.MAX_SAFE_INTEGER),
})

function wholeNumber(input: string, what: string, min: number, max: number): number {
  const value = /^-?\d+$/.test(input) ? Number(input) : Number.NaN
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value
  const bounds =
    max === Number.MAX_SAFE_INTEGER
      ? min === Number.MIN_SAFE_INTEGER
        ? ''
        : ` of at least ${min}`
      : ` from ${min} to ${max}`
  throw new KhepriError('USAGE', `${what} must be a whole number${bounds}, got ${JSON.stringify(input)}`)
}

/** A text that is not empty. */
export const textFlag = Flags.custom<string>({
  parse: async (input, _context, options) => {
    if (input !== '') return input
    throw new KhepriError('USAGE', `${flagOf(options)} needs a value, got ""`)
  },
})

const unitBytes: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }

/** A size of memory such as 512MiB; the value is bytes. */
export const sizeFlag = Flags.custom<number>({
  helpValue: '512MiB',
  parse: async (input, _context, options) => {
    const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(KiB|MiB|GiB)$/.exec(input) ?? []
    const bytes = Number(number) * (unitBytes[unit] ?? 0)
    if (bytes > 0) return bytes
    throw new KhepriError(
      'USAGE',
      `${flagOf(options)} must be a size such as 512MiB or 2GiB, got ${JSON.stringify(input)}`,
    )
  },
})

/** The name of one queue or job. */
export const nameFlag = Flags.custom<string>({
  helpValue: 'NAME',
  parse: async (input, _context, options) => asUsage(() => checkName(input, flagOf(options))),
})

/** A comma-separated list of names; each is there once, in the order given. */
export const namesFlag = Flags.custom<readonly string[]>({
  helpValue: 'NAME,..',
  parse: async (input, _context, options) => listOf(input, flagOf(options), checkName),
})

function listOf(input: string, what: string, check: (name: string, what: string) => string): readonly string[] {
  if (input === '') throw new KhepriError('USAGE', `${what} needs at least one name, got ""`)
  const names = input.split(',')
  if (names.includes('')) throw new KhepriError('USAGE', `${what} has an empty name in ${JSON.stringify(input)}`)
  return [...new Set(names.map((name) => asUsage(() => check(name, what))))]
}

/** "*" stands for every queue of the store, so nothing can come before or after it, and it has no jobs at once of its own. */
function refuseStar(names: readonly string[], what: string): void {
  if (!names.includes('*')) return
  throw new KhepriError('USAGE', `${what}: "*" means every queue and cannot be combined with names or a limit`, {
    fix: "say --queue='*' alone, with --concurrency for the jobs at once",
  })
}

/** The queues of a worker in their order, or `'all'` for `*`. */
export const queueListFlag = Flags.custom<readonly string[] | 'all'>({
  char: 'q',
  helpValue: 'NAME,..',
  parse: async (input, _context, options) => {
    if (input === '*') return 'all'
    refuseStar(input.split(','), flagOf(options))
    return listOf(input, flagOf(options), checkQueue)
  },
})

/** Queues of a worker in their order, each with how many of its jobs run at once: "mail:32,default:4". */
export const poolFlag = Flags.custom<ReadonlyMap<string, number>>({
  helpValue: 'NAME:N,..',
  parse: async (input, _context, options) => poolOf(input, flagOf(options)),
})

function poolOf(input: string, what: string): ReadonlyMap<string, number> {
  const pool = new Map<string, number>()
  for (const part of input.split(',')) {
    const [, name = '', size = ''] = /^(.*):([^:]*)$/.exec(part) ?? []
    if (name === '')
      throw new KhepriError('USAGE', `${what} must be a list such as mail:32,default:4, got ${JSON.stringify(input)}`)
    refuseStar([name], what)
    if (pool.has(name)) throw new KhepriError('USAGE', `${what} names the queue ${JSON.stringify(name)} twice`)
    pool.set(
      asUsage(() => checkQueue(name, what)),
      wholeNumber(size, `${what} ${name}`, 1, Number.MAX_SAFE_INTEGER),
    )
  }
  return pool
}

/** A backoff policy in short: one duration or several, comma-separated. */
export const backoffFlag = Flags.custom<Backoff>({
  helpValue: '10s,1m',
  parse: async (input, _context, options) => asUsage(() => parseBackoff(backoffParts(input), flagOf(options))),
})

const backoffParts = (input: string): unknown =>
  input === 'none' ? { kind: 'none' } : input.includes(',') ? input.split(',') : input

/** One of a few words. */
export function choiceFlag<const Words extends readonly string[]>(words: Words) {
  return Flags.option({ options: words, helpValue: words.join('|') })
}

/** Ids as arguments: `ID...`; the value is undefined where none is given. */
export const idsArgument = Args.custom<number>({
  description: 'job ids',
  multiple: true,
  parse: async (input) => jobId(input),
})

/** The same, or the word "all". */
export const idsOrAllArgument = Args.custom<number | 'all'>({
  description: 'job ids, or "all"',
  multiple: true,
  parse: async (input) => (input === 'all' ? 'all' : jobId(input)),
})

/** The id of one job. */
export const jobIdFlag = Flags.custom<number>({ parse: async (input) => jobId(input) })

/** Reads a job id. Throws USAGE. */
export function jobId(input: string): number {
  const id = /^\d+$/.test(input) ? Number(input) : Number.NaN
  if (Number.isSafeInteger(id) && id > 0) return id
  throw new KhepriError('USAGE', `${JSON.stringify(input)} is not a job id; ids are whole numbers`, {
    fix: 'khepri dispatch prints the ids of jobs, khepri failed lists those that failed',
  })
}
