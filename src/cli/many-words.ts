import type { Arg } from '@oclif/core/interfaces'

type Args = Readonly<Record<string, Arg<unknown>>>

/** No word of a command line holds it. */
const joint = '\0'

/** Fewer words are read as they are. */
const many = 200

/** A command line that oclif reads in good time, and how its arguments are read. */
export interface Joined {
  readonly argv: string[]
  readonly args: Args
}

/**
 * Joins the words at the head of a long command line into one, which is read as many again.
 *
 * oclif looks at all arguments anew for each one: 20,000 ids, as `$(seq 1 20000)` writes them, would take it many
 * seconds. Only what stands before the first flag is surely no flag's value.
 */
export function joinWords(argv: readonly string[], args: Args): Joined {
  const [name, ...others] = Object.keys(args)
  const arg = name === undefined ? undefined : args[name]
  const flagAt = argv.findIndex((word) => word.startsWith('-'))
  const head = flagAt === -1 ? argv.length : flagAt
  if (name === undefined || arg?.multiple !== true || others.length > 0 || head < many) return { argv: [...argv], args }
  return {
    argv: [argv.slice(0, head).join(joint), ...argv.slice(head)],
    args: { [name]: readingEach(arg) },
  }
}

function readingEach(arg: Arg<unknown>): Arg<unknown> {
  const parse: Arg<unknown>['parse'] = async (input, context, options) => {
    const values: unknown[] = []
    for (const word of input.split(joint)) values.push(await arg.parse(word, context, options))
    return values
  }
  return { ...arg, parse }
}

/** The values of a joined command line's arguments, one by one again. */
export function apart<A extends Readonly<Record<string, unknown>>>(values: A): A {
  const entries = Object.entries(values).map(([name, value]) => [name, Array.isArray(value) ? value.flat() : value])
  return Object.fromEntries(entries) as A
}
