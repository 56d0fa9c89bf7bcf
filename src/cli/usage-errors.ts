import { isKhepriError, KhepriError } from '../core/errors.ts'
import { didYouMean, suggest } from '../core/suggest.ts'

/** What a command accepts, for suggestions. */
export interface Usage {
  readonly command: string
  readonly flags: readonly string[]
}

/** The faults of oclif's parser, recognised by their shape; the texts it writes are made for its own printer. */
interface ParserFault extends Error {
  readonly flags?: readonly string[]
  readonly args?: readonly (string | { readonly name: string })[]
}

/** Rewrites what oclif's parser throws as one plain sentence. Anything else comes back as it is. */
export function usageError(error: unknown, usage: Usage): unknown {
  if (isKhepriError(error)) return unwrapped(error)
  if (!(error instanceof Error) || !('oclif' in error)) return error
  return faultOf(error as ParserFault, usage)
}

/** oclif puts "Parsing --flag" and a hint around whatever the parser of a flag throws. */
function unwrapped(error: KhepriError): KhepriError {
  const wrapped = /^Parsing --\S+ \n\t([\s\S]*)\nSee more help with --help$/.exec(error.message)
  if (wrapped === null) return error
  return new KhepriError(error.code, wrapped[1] as string, {
    ...(error.fix !== undefined && { fix: error.fix }),
    cause: error.cause,
  })
}

function faultOf(error: ParserFault, usage: Usage): KhepriError {
  const [flag] = error.flags ?? []
  if (flag !== undefined) return unknownFlag(flag, usage)
  const [argument] = error.args ?? []
  const fix = `khepri ${usage.command} --help`
  if (typeof argument === 'string')
    return new KhepriError('USAGE', `unexpected argument ${JSON.stringify(argument)}`, { fix, cause: error })
  if (argument !== undefined)
    return new KhepriError('USAGE', `missing argument ${argument.name.toUpperCase()}`, { fix, cause: error })
  return new KhepriError('USAGE', sentence(error.message), { fix, cause: error })
}

/** The error for a flag that a command does not have. */
export function unknownFlag(flag: string, { command, flags }: Usage): KhepriError {
  const name = flag.split('=', 1)[0] as string
  const suggestion = suggest(name, flags)
  if (suggestion !== undefined) return new KhepriError('USAGE', `unknown flag ${name}. Did you mean ${suggestion}?`)
  return new KhepriError('USAGE', `unknown flag ${name}`, { fix: `khepri ${command} --help lists the flags` })
}

const phrases: readonly (readonly [RegExp, string | ((...parts: string[]) => string)])[] = [
  [/^Flag (--\S+) expects a value$/, '$1 needs a value'],
  [/^Flag (--\S+) expects one of these values: (.*)$/, '$1 must be one of $2'],
  [/^Flag (--\S+) can only be specified once$/, '$1 can be given only once'],
  [
    /^Expected (--[^=]+)=(.*) to be one of: (.*)$/s,
    (_, flag, value, words) => choiceFault(`${flag} must be`, value as string, words as string),
  ],
  [
    /^Expected (.*) to be one of: (.*)$/s,
    (_, value, words) => choiceFault('the argument must be', value as string, words as string),
  ],
  [/^(--\S+?)=.* cannot also be provided when using (--\S+)$/s, '$1 and $2 exclude each other'],
  [/^All of the following must be provided when using (--\S+): (.*)$/, '$1 needs $2'],
]

function sentence(message: string): string {
  const plain = message
    .replaceAll(/\x1b\[[0-9;]*m/g, '')
    .replace(/^The following errors? occurred:\s*/, '')
    .replace(/\nSee more help with --help$/, '')
    .trim()
  for (const [pattern, phrase] of phrases) if (pattern.test(plain)) return plain.replace(pattern, phrase as string)
  return plain
}

function choiceFault(what: string, value: string, words: string): string {
  const known = words.split(', ')
  const choice = known.length === 1 ? words : `one of ${words}`
  return `${what} ${choice}, got ${JSON.stringify(value)}${didYouMean(value, known)}`
}
