import type { Clock, Random } from '../clock.ts'
import type { TableNames } from './names.ts'

/** What every store is opened with; complete by now, nothing here has a default. */
export interface StoreOptions {
  readonly names: TableNames
  /** Postgres only: qualifies every name; undefined leaves it to the search path. */
  readonly schema: string | undefined
  /** The database as messages show it, its password masked: "sqlite:./khepri.db". */
  readonly label: string
  /** Given: every notion of now is this clock's. undefined: the database's own. Waiting always uses it or the system's. */
  readonly clock: Clock | undefined
  readonly random: Random
  /** Postgres only: false behind a pooler in transaction mode. */
  readonly prepare: boolean
  /** How long a call waits for a locked or silent database before it fails with STORE_BUSY or STORE_UNREACHABLE. */
  readonly deadlineMs: number
}
