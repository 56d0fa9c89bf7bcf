/** A number with its noun: "1 job", "12,000 jobs". */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`
}

/** As many things are named one by one; more are counted. */
export const mostNamed = 10

/** Some of many in words: "4, 7, 9", or the first ten "and 5 others". */
export function listed(things: readonly (number | string)[]): string {
  const shown = things.slice(0, mostNamed).join(', ')
  return things.length > mostNamed ? `${shown} and ${count(things.length - mostNamed, 'other')}` : shown
}

const columnGap = 5

/** Lines of what was done: a verb, what it was done to, and what there is to say about it, aligned. */
export function columns(verb: string, lines: readonly (readonly [string, string])[]): string {
  const width = Math.max(...lines.map(([thing]) => thing.length)) + columnGap
  return lines.map(([thing, remark]) => `${verb}  ${thing.padEnd(width)}${remark}`.trimEnd()).join('\n')
}
