/** What a store's migrations can do; one implementation a driver, all over the files that drizzle-kit generates. */
export interface Migrations {
  /** Reads only. A database or file that does not exist yet counts as nothing applied. */
  status(): Promise<MigrationStatus>
  /** Applies what is missing, each file in one transaction, under a lock that lets one process at a time in. */
  apply(): Promise<readonly Migration[]>
  close(): Promise<void>
}

export interface Migration {
  /** The file's name without ending: "0000_jobs". */
  readonly name: string
  /** Statements with this installation's table names in them. */
  readonly sql: string
}

export interface MigrationStatus {
  readonly applied: readonly string[]
  readonly pending: readonly Migration[]
  /** Applied here by a newer khepri; this one has no such file. */
  readonly unknown: readonly string[]
}
