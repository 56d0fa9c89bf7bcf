import type { OutputOptions } from './output.ts'
import { callingOf } from './own-words.ts'

/** A command line before its command is known. */
export interface Words {
  /** The command, of one word or of two: "work", "schedule list". */
  readonly word: string | undefined
  /** Everything but the command's name, in order. */
  readonly rest: readonly string[]
  /** Whether -h or -V stands anywhere. */
  readonly asks: 'help' | 'version' | null
}

/** Global flags that may stand before the command and take the next word. */
const takesNext: ReadonlySet<string> = new Set(['-C', '--config', '--database', '--color', '--timezone'])

/** First words of commands that have two. */
export const commandGroups: ReadonlySet<string> = new Set(['schedule'])

/** Finds the command in a command line, whatever global flags stand before it. */
export function readWords(argv: readonly string[]): Words {
  const first = wordAt(argv, 0)
  const second = commandGroups.has(argv[first] ?? '') ? wordAt(argv, first + 1) : argv.length
  const words = [argv[first], argv[second]].filter((word) => word !== undefined)
  const rest = argv.filter((_, index) => index !== first && index !== second)
  return { word: words.length === 0 ? undefined : words.join(' '), rest, asks: askedIn(argv) }
}

/** Where the next word that is no flag stands; the length of the line where there is none. */
function wordAt(argv: readonly string[], from: number): number {
  let at = from
  while (at < argv.length && argv[at]?.startsWith('-')) at += takesNext.has(argv[at] as string) ? 2 : 1
  return Math.min(at, argv.length)
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
