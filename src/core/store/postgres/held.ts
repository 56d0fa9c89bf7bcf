import type { Held } from '../store.ts'
import type { Row } from './connection.ts'

/** One text for a job under one fence. */
export function keyOf({ id, fence }: Held): string {
  return `${id}:${fence}`
}

/** Every job under one fence only once, where it stands first. */
export function withoutRepeats<Item extends Held>(held: readonly Item[]): readonly Item[] {
  const seen = new Set<string>()
  return held.filter((one) => !seen.has(keyOf(one)) && seen.add(keyOf(one)))
}

/** The job and fence that a row of an answer names. */
export function heldOf(row: Row): Held {
  return { id: row.id as number, fence: row.fence as number }
}
