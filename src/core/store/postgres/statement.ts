import { KhepriError } from '../../errors.ts'

/** A value as the driver sends it: lists go as array literals, see `bigints` and `texts`. */
export type Parameter = string | number | boolean | null

/** The text of one statement, with numbered parameters, and the name of each of them. */
export interface Statement {
  readonly text: string
  readonly parameters: readonly string[]
}

/** Not the second colon of a cast, and not a slice. */
const parameter = /(?<![:\w]):([a-z]\w*)/gi

/**
 * Numbers the named parameters (`:name`) of a statement in the order in which they first appear.
 *
 * Fragments can so be put together in any order, and one value may stand in several places.
 */
export function statement(source: string): Statement {
  const parameters: string[] = []
  const text = source.replace(parameter, (_, name: string) => {
    if (!parameters.includes(name)) parameters.push(name)
    return `$${parameters.indexOf(name) + 1}`
  })
  return { text, parameters }
}

/** The values of a statement's parameters in the order of their numbers. Throws BUG if one is missing. */
export function parametersOf({ parameters }: Statement, values: Readonly<Record<string, Parameter>>): Parameter[] {
  return parameters.map((name) => {
    const value = values[name]
    if (value === undefined) throw new KhepriError('BUG', `the statement parameter "${name}" has no value`)
    return value
  })
}

/** A list of whole numbers as an array literal. */
export function bigints(values: readonly (number | null)[]): string {
  return `{${values.map((value) => value ?? 'null').join(',')}}`
}

/** A list of texts as an array literal. */
export function texts(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'null' : quotedElement(value))).join(',')}}`
}

function quotedElement(value: string): string {
  return `"${value.replace(/[\\"]/g, '\\$&')}"`
}

/** A name as an identifier, whatever stands in it. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
