import type { Contestant, StoreName } from './contestants.ts'
import type { Figure } from './measures/measure.ts'
import { median } from './quantiles.ts'

/** What one contestant reached in one round; null: it failed, and the error says how. */
export interface Outcome {
  readonly round: number
  readonly measure: string
  readonly store: StoreName
  readonly contestant: string
  readonly role: Contestant['role']
  /** A peer that this measure compares with: one that writes as durably as the others. */
  readonly isRival: boolean
  readonly figures: Readonly<Record<string, number>> | null
  readonly error: string | null
}

/** One line of the tables: a figure of a contestant over all rounds. */
export interface Line {
  readonly measure: string
  readonly title: string
  readonly figure: Figure
  readonly store: StoreName
  readonly contestant: string
  readonly role: Contestant['role']
  /** By round; NaN where it failed. */
  readonly values: readonly number[]
  readonly median: number
  readonly min: number
  readonly max: number
  /** Own value by that of the best peer of the same round; the median of the rounds, NaN without any. */
  readonly toPeer: number
  /** The same by the limit. */
  readonly toLimit: number
  readonly errors: readonly string[]
}

/** What the lines are about. */
export interface Subject {
  readonly measure: string
  readonly title: string
  readonly figure: Figure
}

/** Makes the lines of one figure on one store. */
export function linesOf(subject: Subject, outcomes: readonly Outcome[]): readonly Line[] {
  const rounds = Map.groupBy(outcomes, ({ round }) => round)
  return [...Map.groupBy(outcomes, ({ contestant }) => contestant).values()].flatMap((own) => {
    const [first] = own
    if (!first) return []
    const ratios = (rival: (round: readonly Outcome[]) => number): readonly number[] =>
      own.map((each) => figureOf(each, subject.figure) / rival(rounds.get(each.round) ?? []))
    const values = own.map((each) => figureOf(each, subject.figure))
    const known = values.filter((value) => !Number.isNaN(value))
    return [
      {
        ...subject,
        store: first.store,
        contestant: first.contestant,
        role: first.role,
        values,
        median: median(known),
        min: known.length > 0 ? Math.min(...known) : Number.NaN,
        max: known.length > 0 ? Math.max(...known) : Number.NaN,
        toPeer: medianOfKnown(ratios((round) => best(round, subject.figure))),
        toLimit: medianOfKnown(ratios((round) => limitOf(round, subject.figure))),
        errors: own.flatMap(({ error }) => error ?? []),
      },
    ]
  })
}

function figureOf({ figures }: Outcome, { name }: Figure): number {
  return figures?.[name] ?? Number.NaN
}

function best(round: readonly Outcome[], figure: Figure): number {
  const values = round.filter(({ isRival }) => isRival).map((each) => figureOf(each, figure))
  const known = values.filter((value) => !Number.isNaN(value))
  if (known.length === 0) return Number.NaN
  return figure.better === 'more' ? Math.max(...known) : Math.min(...known)
}

function limitOf(round: readonly Outcome[], figure: Figure): number {
  const limit = round.find(({ role }) => role === 'limit')
  return limit ? figureOf(limit, figure) : Number.NaN
}

function medianOfKnown(values: readonly number[]): number {
  return median(values.filter((value) => !Number.isNaN(value)))
}
