import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { openMemorySchedules } from '../../src/core/store/memory/schedules.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import { tableNames } from '../../src/core/store/names.ts'
import type { StoreOptions } from '../../src/core/store/options.ts'
import { ManualClock, type Opened } from '../../src/testing/index.ts'
import { type Database, freshDatabase } from './postgres.ts'

/** The options a store under test is opened with; its notion of now is the clock's. */
function storeOptions(clock: ManualClock, label: string): StoreOptions {
  return {
    names: tableNames('jobs', 'failed_jobs'),
    schema: undefined,
    label,
    clock,
    random: Math.random,
    prepare: true,
    deadlineMs: 10_000,
  }
}

/** Opens two memory stores on one state. */
export async function openMemory(): Promise<Opened> {
  const clock = new ManualClock()
  const one = openMemoryStore({ clock })
  const two = openMemoryStore({ clock, state: one.state })
  const schedules = [openMemorySchedules(one.state), openMemorySchedules(one.state)] as const
  return { stores: [one.store, two.store], admin: one.admin, schedules, clock, close: async () => {} }
}

/** Opens SQLite files of its own, each a copy of one that was migrated. */
export class SqliteFiles {
  readonly #folder = mkdtempSync(join(tmpdir(), 'khepri-stores-'))
  #count = 0
  #migrated: Promise<string> | undefined

  async open(): Promise<Opened> {
    const { openSqliteStore } = await import('../../src/core/store/sqlite/store.ts')
    const { openSqliteAdmin } = await import('../../src/core/store/sqlite/admin.ts')
    const { openSqliteSchedules } = await import('../../src/core/store/sqlite/schedules.ts')
    this.#migrated ??= this.#migrate()
    const template = await this.#migrated
    this.#count += 1
    const path = join(this.#folder, `${this.#count}.db`)
    copyFileSync(template, path)

    const clock = new ManualClock()
    const options = storeOptions(clock, `sqlite:${path}`)
    const stores = [await openSqliteStore(path, options), await openSqliteStore(path, options)] as const
    const admin = await openSqliteAdmin(path, options)
    const schedules = [await openSqliteSchedules(path, options), await openSqliteSchedules(path, options)] as const
    const close = async (): Promise<void> => {
      for (const opened of [...stores, admin, ...schedules]) await opened.close()
      for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
    }
    return { stores, admin, schedules, clock, close }
  }

  async #migrate(): Promise<string> {
    const { openSqliteMigrations } = await import('../../src/core/store/sqlite/migrate.ts')
    const path = join(this.#folder, 'template.db')
    const migrations = await openSqliteMigrations(path, storeOptions(new ManualClock(), `sqlite:${path}`))
    await migrations.apply()
    await migrations.close()
    return path
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/**
 * Opens two stores on one Postgres database, once, and hands them out empty each time.
 *
 * New connections, and the first plans on each of them, would take longer than most cases.
 */
export class PostgresTables {
  readonly #create: () => Promise<Database>
  #ready: Promise<Prepared> | undefined

  constructor(create: () => Promise<Database> = freshDatabase) {
    this.#create = create
  }

  async open(): Promise<Opened> {
    this.#ready ??= prepare(this.#create)
    const { opened, sql } = await this.#ready
    const { migrations: _, ...tables } = tableNames('jobs', 'failed_jobs')
    await sql`truncate ${sql(Object.values(tables))} restart identity`
    opened.clock.set(new ManualClock().now())
    return { ...opened, close: async () => {} }
  }

  async remove(): Promise<void> {
    if (!this.#ready) return
    const { database, opened, sql } = await this.#ready
    await opened.close()
    await sql.end()
    await database.drop()
  }
}

interface Prepared {
  readonly database: Database
  readonly opened: Opened
  /** A connection beside the stores. */
  readonly sql: postgres.Sql
}

async function prepare(create: () => Promise<Database>): Promise<Prepared> {
  const { openPostgresStore } = await import('../../src/core/store/postgres/store.ts')
  const { openPostgresAdmin } = await import('../../src/core/store/postgres/admin.ts')
  const { openPostgresSchedules } = await import('../../src/core/store/postgres/schedules.ts')
  const { openPostgresMigrations } = await import('../../src/core/store/postgres/migrate.ts')
  const { url, ...database } = await create()
  const clock = new ManualClock()
  const options = storeOptions(clock, 'postgres')
  const migrations = await openPostgresMigrations(url, options)
  await migrations.apply()
  await migrations.close()

  const stores = [await openPostgresStore(url, options), await openPostgresStore(url, options)] as const
  const admin = await openPostgresAdmin(url, options)
  const schedules = [await openPostgresSchedules(url, options), await openPostgresSchedules(url, options)] as const
  const close = async (): Promise<void> => {
    for (const one of [...stores, admin, ...schedules]) await one.close()
  }
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  return { database: { url, ...database }, opened: { stores, admin, schedules, clock, close }, sql }
}
