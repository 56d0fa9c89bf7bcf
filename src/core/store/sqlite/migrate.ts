import { existsSync } from 'node:fs'
import { KhepriError } from '../../errors.ts'
import type { Migration, MigrationStatus, Migrations } from '../migrations.ts'
import {
  type Applied,
  expectedTables,
  loadMigrations,
  refuseAhead,
  refuseForeign,
  refuseMissing,
  statementsOf,
  statusOf,
} from '../migrator.ts'
import type { StoreOptions } from '../options.ts'
import { appliedMigrations } from './applied.ts'
import { Connection, type ConnectionOptions } from './connection.ts'
import { refuseNetworkFileSystem, refuseUnusable } from './file-system.ts'
import { now } from './transaction.ts'

/** Opens the migrations of an SQLite file; the file itself is created by `apply`, never by `status`. */
export async function openSqliteMigrations(path: string, options: StoreOptions): Promise<Migrations> {
  return new SqliteMigrations(path, options)
}

class SqliteMigrations implements Migrations {
  readonly #options: StoreOptions
  readonly #connectionOptions: ConnectionOptions
  readonly #migrations: readonly Migration[]
  #connection: Connection | null = null

  constructor(path: string, options: StoreOptions) {
    this.#options = options
    this.#connectionOptions = { ...options, path }
    this.#migrations = loadMigrations('sqlite', options.names, undefined)
  }

  async status(): Promise<MigrationStatus> {
    if (this.#connection === null && !existsSync(this.#connectionOptions.path)) return statusOf(this.#migrations, [])
    const connection = this.#open()
    return connection.read(() => this.#statusOf(connection))
  }

  async apply(): Promise<readonly Migration[]> {
    const { path, label } = this.#connectionOptions
    refuseUnusable(path, label)
    refuseNetworkFileSystem(path, label)
    const connection = this.#open()
    const pending = await connection.read(() => this.#pending(connection))
    await this.#useWriteAheadLog(connection)
    const applied: Migration[] = []
    for (const migration of pending)
      if (await connection.write(() => this.#applyOnce(connection, migration))) applied.push(migration)
    return applied
  }

  #open(): Connection {
    this.#connection ??= Connection.create(this.#connectionOptions)
    return this.#connection
  }

  #statusOf(connection: Connection): MigrationStatus {
    const { names, label } = this.#options
    const applied = appliedMigrations(connection, names.migrations, label) ?? []
    return statusOf(this.#migrations, applied, this.#missing(connection, applied))
  }

  #missing(connection: Connection, applied: readonly Applied[]): readonly string[] {
    const existing = existingNames(connection)
    return expectedTables(this.#migrations, applied).filter((name) => !existing.has(name))
  }

  /** What is to be applied here, or the reason why nothing can be. */
  #pending(connection: Connection): readonly Migration[] {
    const { names, label } = this.#options
    const applied = appliedMigrations(connection, names.migrations, label) ?? []
    refuseAhead(
      applied,
      this.#migrations.map(({ name }) => name),
      label,
    )
    refuseMissing(this.#missing(connection, applied), label)
    const { pending } = statusOf(this.#migrations, applied)
    refuseForeign(pending, existingNames(connection), label)
    return pending
  }

  /** Readers and the writer do not wait for each other in this mode; some file systems refuse it without a word. */
  async #useWriteAheadLog(connection: Connection): Promise<void> {
    const { label } = this.#options
    const mode = await connection.patiently(() => connection.db.pragma('journal_mode = wal', { simple: true }))
    if (mode === 'wal') return
    throw new KhepriError('CONFIG_INVALID', `${label} stays in journal mode "${mode}"; khepri needs "wal"`, {
      fix: 'put the file on a local disk, or use Postgres',
    })
  }

  /** Runs under the write lock, so what another process has applied meanwhile is seen; answers whether it was ours. */
  #applyOnce(connection: Connection, migration: Migration): boolean {
    const { names, clock } = this.#options
    if (!this.#pending(connection).some(({ name }) => name === migration.name)) return false
    connection.db.exec(
      `create table if not exists "${names.migrations}"
        (name text primary key not null, applied_at integer not null, least_worker text)`,
    )
    for (const statement of statementsOf(migration)) connection.db.exec(statement)
    const columns = 'name, applied_at, least_worker'
    const record = connection.statement(`insert into "${names.migrations}" (${columns}) values (?, ?, ?)`)
    record.run(migration.name, now(clock), migration.leastWorker)
    return true
  }

  async close(): Promise<void> {
    this.#connection?.close()
    this.#connection = null
  }
}

/** In lower case, as ours are: SQLite does not tell "Jobs" from "jobs". */
function existingNames(connection: Connection): ReadonlySet<string> {
  const names = connection.statement('select lower(name) from sqlite_schema').pluck().all()
  return new Set(names as string[])
}
