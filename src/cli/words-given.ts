import type { OutputOptions } from './output.ts'
import { callingOf } from './own-words.ts'

/** A command line before its command is known. */
export interface Words {
  /** The command. */
  readonly word: string | undefined
  /** Everything but the command's name, in order. */
  readonly rest: readonly string[]
  /** Whether -h or -V stands anywhere. */
  readonly asks: 'help' | 'version' | null
}

/** Global flags that may stand before the command and take the next word. */
const takesNext: ReadonlySet<string> = new Set(['-C', '--config', '--database', '--color', '--timezone'])

/** Finds the command in a command line, whatever global flags stand before it. */
export function readWords(argv: readonly string[]): Words {
  let at = 0
  while (at < argv.length && argv[at]?.startsWith('-')) at += takesNext.has(argv[at] as string) ? 2 : 1
  return { word: argv[at], rest: argv.filter((_, index) => index !== at), asks: askedIn(argv) }
}

function askedIn(argv: readonly string[]): Words['asks'] {
  const words = beforeDashes(argv)
  if (words.includes('-h') || words.includes('--help')) return 'help'
  return words.includes('-V') || words.includes('--version') ? 'version' : null
}

/** The part of a command line in which a word with dashes is a flag. */
export function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--')
  return end === -1 ? argv : argv.slice(0, end)
}

/** What a command line asks of the output, read before it is parsed: its errors, too, come as the user wants them. */
export function outputOptionsIn(argv: readonly string[]): OutputOptions {
  const words = beforeDashes(argv)
  const has = (...names: readonly string[]): boolean => names.some((name) => words.includes(name))
  const color = (['always', 'never'] as const).find((choice) => has(`--color=${choice}`)) ?? 'auto'
  return {
    json: has('--json'),
    plain: has('--plain'),
    quiet: has('--quiet'),
    verbose: has('--verbose', '-v') || isDebugging(),
    timezone: undefined,
    color,
    calling: callingOf({}, process.env),
  }
}

/** DEBUG asks for stack traces, as --verbose does. */
export const isDebugging = (): boolean => Boolean(process.env['DEBUG'])
