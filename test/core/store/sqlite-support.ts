import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Admin } from '../../../src/core/store/admin.ts'
import { tableNames } from '../../../src/core/store/names.ts'
import type { StoreOptions } from '../../../src/core/store/options.ts'
import { openSqliteAdmin } from '../../../src/core/store/sqlite/admin.ts'
import { openSqliteMigrations } from '../../../src/core/store/sqlite/migrate.ts'
import { openSqliteStore } from '../../../src/core/store/sqlite/store.ts'
import type { NewJob, Round, Store, Wish } from '../../../src/core/store/store.ts'
import { aWish as anyWish } from '../../../src/testing/conformance/builders.ts'

/** Options of an ordinary installation. */
export function storeOptions(given: Partial<StoreOptions> = {}): StoreOptions {
  return {
    names: tableNames('jobs', 'failed_jobs'),
    schema: undefined,
    label: 'sqlite:./test.db',
    clock: undefined,
    random: Math.random,
    prepare: true,
    deadlineMs: 10_000,
    ...given,
  }
}

/** A path in a folder of its own, removed after the test; nothing is there yet. */
export function freshPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'khepri-sqlite-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'test.db')
}

/** Applies every migration to a file. */
export async function migrate(path: string, options: StoreOptions = storeOptions()): Promise<void> {
  const migrations = await openSqliteMigrations(path, options)
  await migrations.apply()
  await migrations.close()
}

/** The path of a file with every table in it. */
export async function migratedPath(): Promise<string> {
  const path = freshPath()
  await migrate(path)
  return path
}

/** A store that is closed after the test. */
export async function openStore(path: string, given: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openSqliteStore(path, storeOptions(given))
  onTestFinished(() => store.close())
  return store
}

/** An admin that is closed after the test. */
export async function openAdmin(path: string, given: Partial<StoreOptions> = {}): Promise<Admin> {
  const admin = await openSqliteAdmin(path, storeOptions(given))
  onTestFinished(() => admin.close())
  return admin
}

export function aJob(given: Partial<NewJob> = {}): NewJob {
  const terms = { job: 'note', queue: 'default', priority: 0, due: { delayMs: 0 }, uniqueKey: null, version: 1 }
  return { ...terms, envelope: '{"job":"note"}', ...given }
}

export function aWish(given: Partial<Wish> = {}): Wish {
  return anyWish({ queues: 'all', suspects: true, limit: 10, maxBytes: 1_000_000, started: 10, ...given })
}

export function aRound(given: Partial<Round> = {}): Round {
  return { worker: 7, settle: [], enqueue: [], start: [], disown: [], reserve: null, ...given }
}

export const anAttempt = {
  attempt: 1,
  worker: 'web1-7',
  startedAt: 1,
  endedAt: 2,
  errorType: 'Error',
  message: 'no such user',
  stack: null,
  output: null,
} as const
