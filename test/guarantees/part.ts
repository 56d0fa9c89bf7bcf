/**
 * How much of a part of the verification programme is run. sample: what `npm test` holds. short: what CI runs. long: on
 * demand, for as long as it takes.
 */
export type Form = 'sample' | 'short' | 'long'

/** What a part has found out, in the order in which it is shown. */
export type Figures = Record<string, number | string>

/** Takes a line of progress. */
export type Print = (line: string) => void
