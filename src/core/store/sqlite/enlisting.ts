import { realpathSync } from 'node:fs'
import type Database from 'better-sqlite3'
import type { SqliteClient } from '../../callers-transaction.ts'
import { KhepriError } from '../../errors.ts'
import { requireCurrent } from '../migrator.ts'
import type { StoreOptions } from '../options.ts'
import type { Enqueued, NewJob } from '../store.ts'
import { appliedMigrations } from './applied.ts'
import { isBusy, toStoreError } from './errors.ts'
import { insertJobs } from './insertion.ts'
import { statementsFor } from './statements.ts'
import { now } from './transaction.ts'

/** Where the jobs belong. */
export type EnlistOptions = Pick<StoreOptions, 'names' | 'label' | 'clock'> & { readonly path: string }

/** A connection of the caller's, and the statements that were prepared on it. */
class CallersConnection {
  readonly db: Database.Database
  readonly #statements = new Map<string, Database.Statement<unknown[]>>()
  /** Installations whose schema was found to be right here. */
  readonly #checked = new Set<string>()

  constructor(db: Database.Database) {
    this.db = db
  }

  /** Numbers come back as numbers, whatever the caller has set for its own statements. */
  statement(text: string): Database.Statement<unknown[]> {
    const known = this.#statements.get(text)
    if (known) return known
    const prepared = this.db.prepare<unknown[]>(text).safeIntegers(false)
    this.#statements.set(text, prepared)
    return prepared
  }

  require({ path, names, label }: EnlistOptions): void {
    if (this.#checked.has(names.migrations)) return
    if (!isSameFile(this.db.name, path))
      throw new KhepriError('USAGE', `with() was given a connection to another file than ${label}`, {
        fix: 'open the same file, or give khepri the database of your connection',
      })
    requireCurrent('sqlite', appliedMigrations(this, names.migrations, label), label)
    this.#checked.add(names.migrations)
  }
}

const connections = new WeakMap<object, CallersConnection>()

/**
 * Writes new jobs on a connection of the caller's before it returns: inside its transaction, or else in one of their own.
 *
 * Throws USAGE for a connection to another file, SCHEMA_ errors, and STORE_BUSY where the lock is somebody else's.
 */
export function enlist(client: SqliteClient, jobs: readonly NewJob[], options: EnlistOptions): readonly Enqueued[] {
  const connection = connectionOf(client)
  try {
    connection.require(options)
    const insert = (): readonly Enqueued[] =>
      insertJobs({ connection, statements: statementsFor(options.names), now: now(options.clock) }, jobs)
    return client.inTransaction ? insert() : connection.db.transaction(insert).immediate()
  } catch (error) {
    throw isBusy(error) ? busy(options.label, error) : toStoreError(error, options.label)
  }
}

function connectionOf(client: SqliteClient): CallersConnection {
  const known = connections.get(client)
  if (known) return known
  const connection = new CallersConnection(client as unknown as Database.Database)
  connections.set(client, connection)
  return connection
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    // A database in memory has no file.
    return false
  }
}

function busy(label: string, cause: unknown): KhepriError {
  return new KhepriError('STORE_BUSY', `${label} is locked by somebody else, and dispatchSync cannot wait for it`, {
    fix: 'begin the transaction as a writer, with .immediate(), and set a busy timeout on the connection',
    cause,
  })
}
