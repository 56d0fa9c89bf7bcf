import postgres from 'postgres'
import { onTestFinished } from 'vitest'
import type { Admin } from '../../../src/core/store/admin.ts'
import { tableNames } from '../../../src/core/store/names.ts'
import type { StoreOptions } from '../../../src/core/store/options.ts'
import { openPostgresAdmin } from '../../../src/core/store/postgres/admin.ts'
import { openPostgresMigrations } from '../../../src/core/store/postgres/migrate.ts'
import { openPostgresStore } from '../../../src/core/store/postgres/store.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { ask, freshDatabase } from '../../support/postgres.ts'

/** The database's own time, as in production. */
export function optionsFor(parts: Partial<StoreOptions> = {}): StoreOptions {
  return {
    names: tableNames('jobs', 'failed_jobs'),
    schema: undefined,
    label: 'postgres://app:***@db1/app',
    clock: undefined,
    random: Math.random,
    prepare: true,
    deadlineMs: 10_000,
    ...parts,
  }
}

/** An empty database that goes when the test has finished. */
export async function emptyDatabase(): Promise<string> {
  const database = await freshDatabase()
  onTestFinished(() => database.drop())
  return database.url
}

/** A migrated database that goes when the test has finished. */
export async function migratedDatabase(parts: Partial<StoreOptions> = {}): Promise<string> {
  const url = await emptyDatabase()
  await migrate(url, parts)
  return url
}

export async function migrate(url: string, parts: Partial<StoreOptions> = {}): Promise<readonly string[]> {
  const migrations = await openPostgresMigrations(url, optionsFor(parts))
  try {
    return (await migrations.apply()).map(({ name }) => name)
  } finally {
    await migrations.close()
  }
}

/** A store that is closed when the test has finished. */
export async function openStore(url: string, parts: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openPostgresStore(url, optionsFor(parts))
  onTestFinished(() => store.close())
  return store
}

/** An admin that is closed when the test has finished. */
export async function openAdmin(url: string, parts: Partial<StoreOptions> = {}): Promise<Admin> {
  const admin = await openPostgresAdmin(url, optionsFor(parts))
  onTestFinished(() => admin.close())
  return admin
}

/** A session of the test's own with an open transaction in which `text` has run. */
export async function inTransaction(url: string, text: string): Promise<postgres.ReservedSql> {
  const client = postgres(url, { max: 1 })
  onTestFinished(() => client.end({ timeout: 5 }))
  const session = await client.reserve()
  await session`begin`
  await session.unsafe(text)
  return session
}

/** Resolves when a statement of ours waits for a lock. */
export async function untilItWaits(url: string): Promise<void> {
  const waiting = `select from pg_stat_activity
    where application_name = 'khepri' and datname = current_database() and wait_event_type = 'Lock'`
  while ((await ask(url, waiting)).length === 0);
}
