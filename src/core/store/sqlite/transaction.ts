import { type Clock, systemClock } from '../../clock.ts'
import type { Connection } from './connection.ts'
import type { Statements } from './statements.ts'

/** What the steps of one transaction share. */
export interface Transaction {
  readonly connection: Connection
  readonly statements: Statements
  /** The one notion of now in this transaction, epoch milliseconds. */
  readonly now: number
}

/** The store's one notion of now, epoch milliseconds: the clock it was opened with, or the host's. */
export function now(clock: Clock | undefined): number {
  return clock === undefined ? systemClock.now() : clock.now()
}
