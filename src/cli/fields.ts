import type { Output } from './output.ts'

/** What is known about one thing: a word and its value, which may have several lines. */
export type Field = readonly [name: string, value: string]

const titleWidth = 12

/** Prints fields one below the other, their values aligned. */
export async function printFields(output: Output, fields: readonly Field[]): Promise<void> {
  for (const [name, value] of fields)
    await output.print(`${`${name}:`.padEnd(titleWidth)}${value.replaceAll('\n', `\n${' '.repeat(titleWidth)}`)}`)
}
