/** A number with its noun: "1 job", "12,000 jobs". */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`
}

const columnGap = 5

/** Lines of what was done: a verb, what it was done to, and what there is to say about it, aligned. */
export function columns(verb: string, lines: readonly (readonly [string, string])[]): string {
  const width = Math.max(...lines.map(([thing]) => thing.length)) + columnGap
  return lines.map(([thing, remark]) => `${verb}  ${thing.padEnd(width)}${remark}`.trimEnd()).join('\n')
}
