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
import { type Call, Connections, type Transaction } from './connections.ts'
import { now, relations } from './fragments.ts'
import { identifier, type Statement, statement, texts } from './statement.ts'

/** One number for all of khepri's migrations in a database: two installations may create the same schema. */
const lockNumber = 0x6b68_6570

/** A big table takes its time, and so does waiting for another process that migrates. */
const migrationMs = 600_000

const absent = statement(`select p.index from unnest(:places::text[]) with ordinality p (place, index)
  where to_regclass(p.place) is null`)

const looking: Call = { doing: 'read its schema', kind: 'reading' }
/** Each file looks first whether it was applied, so one that broke off may be sent again. */
const migrating: Call = { doing: 'migrate', kind: 'repeatable', deadlineMs: migrationMs }

/** Opens the migrations of a Postgres database; connects when it is first asked. */
export async function openPostgresMigrations(url: string, options: StoreOptions): Promise<Migrations> {
  return new PostgresMigrations(url, options)
}

class PostgresMigrations implements Migrations {
  readonly #connections: Connections
  readonly #options: StoreOptions
  readonly #migrations: readonly Migration[]

  constructor(url: string, options: StoreOptions) {
    this.#connections = new Connections(url, options)
    this.#options = options
    this.#migrations = loadMigrations('postgres', options.names, options.schema)
  }

  async status(): Promise<MigrationStatus> {
    const run = (read: Statement, values: Parameters<Connections['run']>[1]) =>
      this.#connections.run(read, values, looking)
    const applied = (await appliedMigrations(run, this.#options)) ?? []
    return statusOf(this.#migrations, applied, await this.#missing(run, applied))
  }

  /** Looked for along the search path, as every statement of ours does. */
  async #missing(run: Transaction['run'], applied: readonly Applied[]): Promise<readonly string[]> {
    const { schema } = this.#options
    const expected = expectedTables(this.#migrations, applied)
    const places = expected.map((name) => (schema === undefined ? '' : `${identifier(schema)}.`) + identifier(name))
    const found = await run(absent, { places: texts(places) })
    return expected.filter((_, index) => found.some(({ index: at }) => at === index + 1))
  }

  async apply(): Promise<readonly Migration[]> {
    const applied: Migration[] = []
    for (const migration of this.#migrations) {
      const isOurs = await this.#connections.transaction(migrating, (transaction) =>
        this.#applyOnce(transaction, migration),
      )
      if (isOurs) applied.push(migration)
    }
    return applied
  }

  /** Looks under the lock, which ends with the transaction; answers whether it was applied here. */
  async #applyOnce(transaction: Transaction, migration: Migration): Promise<boolean> {
    await transaction.run(statement('select pg_advisory_xact_lock(:number::bigint)'), { number: lockNumber })
    const pending = await this.#pending(transaction)
    if (!pending.some(({ name }) => name === migration.name)) return false
    await this.#createSchema(transaction)
    const { migrations } = relations(this.#options.names, this.#options.schema)
    await execute(
      transaction,
      `create table if not exists ${migrations} (name text primary key, applied_at bigint not null, least_worker text)`,
    )
    for (const text of statementsOf(migration).filter((one) => !one.startsWith('CREATE SCHEMA')))
      await execute(transaction, text)
    await transaction.run(
      statement(`insert into ${migrations} (name, applied_at, least_worker)
        values (:name::text, ${now}, :leastWorker::text)`),
      { name: migration.name, leastWorker: migration.leastWorker, now: this.#options.clock?.now() ?? null },
    )
    return true
  }

  /** What is to be applied here, or the reason why nothing can be. */
  async #pending(transaction: Transaction): Promise<readonly Migration[]> {
    const { label, schema = null } = this.#options
    const applied = (await appliedMigrations(transaction.run, this.#options)) ?? []
    refuseAhead(
      applied,
      this.#migrations.map(({ name }) => name),
      label,
    )
    refuseMissing(await this.#missing(transaction.run, applied), label)
    const { pending } = statusOf(this.#migrations, applied)
    const existing = await transaction.run(
      statement(`select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = coalesce(:schema::text, current_schema())`),
      { schema },
    )
    refuseForeign(pending, new Set(existing.map(({ name }) => name as string)), label)
    return pending
  }

  /** Only where it is missing: a role may have rights in a schema without the right to create one. */
  async #createSchema(transaction: Transaction): Promise<void> {
    const { schema } = this.#options
    if (schema === undefined) return
    const found = await transaction.run(statement('select from pg_namespace where nspname = :schema::text'), { schema })
    if (found.length === 0) await execute(transaction, `create schema ${identifier(schema)}`)
  }

  close(): Promise<void> {
    return this.#connections.close()
  }
}

/** DDL takes no parameters, and its text may hold what looks like one. */
function execute(transaction: Transaction, text: string): Promise<unknown> {
  return transaction.run({ text, parameters: [] }, {})
}
