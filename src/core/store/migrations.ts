/** What a store's migrations can do; one implementation a driver, all over the files that drizzle-kit generates. */
export interface Migrations {
  /** Reads only. A database or file that does not exist yet counts as nothing applied. */
  status(): Promise<MigrationStatus>
  /**
   * Applies what is missing, each file in one transaction, under a lock that lets one process at a time in.
   *
   * Throws SCHEMA_BROKEN where a table that was created here before is gone: to create it anew would hide a loss.
   */
  apply(): Promise<readonly Migration[]>
  close(): Promise<void>
}

export interface Migration {
  /** The file's name without ending: "0000_jobs". */
  readonly name: string
  /** Statements with this installation's table names in them. */
  readonly sql: string
  /** The oldest khepri that can work on the tables once it is applied; null: none older than the one that brought it. */
  readonly leastWorker: string | null
}

export interface MigrationStatus {
  readonly applied: readonly string[]
  readonly pending: readonly Migration[]
  /** Applied here by a newer khepri which says that this one can go on. */
  readonly newer: readonly string[]
  /** Applied here by a newer khepri, and this one cannot work with it. */
  readonly unknown: readonly string[]
  /** Tables that were created here and are gone. */
  readonly missing: readonly string[]
}
