import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KhepriError } from '../errors.ts'
import { packageRoot, version } from '../package.ts'
import type { Migration, MigrationStatus } from './migrations.ts'
import type { TableNames } from './names.ts'

/**
 * What the migrations of every SQL store share: the files drizzle-kit generated, with an installation's names in them,
 * compared with what the database says. Drivers bring the lock and run the statements.
 */

export type Dialect = 'sqlite' | 'postgres'

/** What a database says of one migration. */
export interface Applied {
  readonly name: string
  readonly leastWorker: string | null
}

/** A line of its own in a migration: the oldest khepri that can go on working once it is applied. */
const leastWorker = /^-- least worker: (\d+\.\d+\.\d+)\n/m

const breakpoint = '--> statement-breakpoint'
const placeholder = /\$(jobs|failed|ended|attempts|workers|queues|schedules|slots|ticks|parents)/g
const qualifier = '"$schema".'

/** Names of this khepri's migrations, oldest first; cheap enough to ask whenever a store is opened. */
export function migrationNames(dialect: Dialect): readonly string[] {
  return readdirSync(folderOf(dialect))
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort()
}

/** Reads this khepri's migrations with the names of one installation in them, oldest first. */
export function loadMigrations(dialect: Dialect, names: TableNames, schema: string | undefined): readonly Migration[] {
  return migrationNames(dialect).map((name) => {
    const template = readFileSync(join(folderOf(dialect), `${name}.sql`), 'utf8')
    const statements = split(template.replace(leastWorker, '')).flatMap((statement) => qualified(statement, schema))
    const sql = statements.map((statement) => named(statement, names)).join(`\n${breakpoint}\n`)
    return { name, sql, leastWorker: leastWorker.exec(template)?.[1] ?? null }
  })
}

/** The statements of a migration, to be run one by one in one transaction. */
export function statementsOf(migration: Migration): readonly string[] {
  return split(migration.sql)
}

function split(text: string): string[] {
  return text
    .split(breakpoint)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}

function named(statement: string, names: TableNames): string {
  return statement.replace(placeholder, (_, key: keyof TableNames) => names[key])
}

/** Without a schema the tables go where the search path says, and no schema is created. */
function qualified(statement: string, schema: string | undefined): string[] {
  const createsSchema = statement.startsWith('CREATE SCHEMA')
  if (schema === undefined) return createsSchema ? [] : [statement.replaceAll(qualifier, '')]
  if (createsSchema) return [`CREATE SCHEMA IF NOT EXISTS ${quoted(schema)};`]
  return [statement.replaceAll(qualifier, () => `${quoted(schema)}.`)]
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** The tables that must be there by what the database says was applied. */
export function expectedTables(migrations: readonly Migration[], applied: readonly Applied[]): readonly string[] {
  return migrations
    .filter(({ name }) => applied.some((one) => one.name === name))
    .flatMap((migration) => statementsOf(migration).flatMap((statement) => createdTable.exec(statement)?.[1] ?? []))
}

/** A schema's name may have quotes in it; a table's has not. */
const createdTable = /^CREATE TABLE (?:"(?:[^"]|"")*"\.)?["`]([^"`]+)["`]/

/**
 * Compares this khepri's migrations with what the database says was applied.
 *
 * missing: the expected tables that are gone.
 */
export function statusOf(
  migrations: readonly Migration[],
  applied: readonly Applied[],
  missing: readonly string[] = [],
): MigrationStatus {
  const known = migrations.map(({ name }) => name)
  const fits = (migration: Applied): boolean => !isTooNew(migration, known)
  return {
    applied: namesOf(applied.filter((one) => fits(one) && known.includes(one.name))),
    pending: migrations.filter(({ name }) => !applied.some((one) => one.name === name)),
    newer: namesOf(applied.filter((one) => fits(one) && !known.includes(one.name))),
    unknown: namesOf(applied.filter((one) => !fits(one))),
    missing,
  }
}

function namesOf(applied: readonly Applied[]): readonly string[] {
  return applied.map(({ name }) => name).sort()
}

/** What says nothing of older workers does not admit them. */
function isTooNew({ name, leastWorker }: Applied, known: readonly string[]): boolean {
  return leastWorker === null ? !known.includes(name) : isOlder(version(), leastWorker)
}

/** Compares two versions by their three numbers: a pre-release counts as its release. */
function isOlder(running: string, wanted: string): boolean {
  const [left, right] = [numbersOf(running), numbersOf(wanted)]
  const place = left.findIndex((part, index) => part !== right[index])
  return place >= 0 && (left[place] ?? 0) < (right[place] ?? 0)
}

function numbersOf(version: string): readonly number[] {
  return (version.split(/[-+]/, 1)[0] ?? '').split('.').map(Number)
}

/**
 * Refuses a database that this khepri cannot work with.
 *
 * applied: what the database says, null where it has no migrations table. Throws SCHEMA_MISSING, SCHEMA_BEHIND or
 * SCHEMA_AHEAD.
 */
export function requireCurrent(dialect: Dialect, applied: readonly Applied[] | null, label: string): void {
  if (applied === null || applied.length === 0) throw schemaMissing(label)
  const wanted = migrationNames(dialect)
  refuseAhead(applied, wanted, label)
  const pending = wanted.filter((name) => !applied.some((one) => one.name === name))
  if (pending.length === 0) return
  throw new KhepriError('SCHEMA_BEHIND', `the schema of ${label} is behind: ${pending.join(', ')} not applied`, {
    fix: 'khepri migrate',
  })
}

/** Throws SCHEMA_BROKEN for the first of the expected tables that is gone. */
export function refuseMissing(missing: readonly string[], label: string): void {
  if (missing[0] !== undefined) throw tableMissing(missing[0], label)
}

/** The error for a table that is gone although the migrations say that it was created. */
export function tableMissing(table: string, label: string): KhepriError {
  return new KhepriError(
    'SCHEMA_BROKEN',
    `the table "${table}" is missing from ${label}, though its migrations say that it was created`,
    {
      fix: 'put it back from a backup; where nothing in the tables is to be kept, drop the others too, the one of the migrations included, and then: khepri migrate',
    },
  )
}

/** The error for a database without khepri's tables. */
export function schemaMissing(label: string): KhepriError {
  return new KhepriError('SCHEMA_MISSING', `the schema of ${label} is missing`, { fix: 'khepri migrate' })
}

/**
 * Throws SCHEMA_AHEAD where a newer khepri has migrated, unless it says that this one can go on working.
 *
 * known: the names of this khepri's own migrations.
 */
export function refuseAhead(applied: readonly Applied[], known: readonly string[], label: string): void {
  const tooNew = applied.filter((one) => isTooNew(one, known))
  if (tooNew.length === 0) return
  const needed = tooNew.flatMap((one) => one.leastWorker ?? []).sort((a, b) => (isOlder(a, b) ? 1 : -1))[0]
  if (needed !== undefined) throw tooOld(needed, label)
  throw new KhepriError(
    'SCHEMA_AHEAD',
    `the schema of ${label} is newer than this khepri: it does not know ${namesOf(tooNew).join(', ')}`,
    { fix: 'use the khepri that migrated it, or a newer one' },
  )
}

function tooOld(needed: string, label: string): KhepriError {
  return new KhepriError(
    'SCHEMA_AHEAD',
    `the schema of ${label} needs khepri ${needed} or newer, this is ${version()}`,
    {
      fix: `npm install khepri@^${needed}`,
    },
  )
}

/**
 * Refuses to migrate over somebody else's tables: a migration that is still to come must not find its names taken.
 *
 * existing: every table and index of the database (on Postgres, of the schema). Throws SCHEMA_FOREIGN.
 */
export function refuseForeign(pending: readonly Migration[], existing: ReadonlySet<string>, label: string): void {
  const taken = pending.flatMap(createdNames).find((name) => existing.has(name))
  if (taken !== undefined) throw schemaForeign(taken, label)
}

/** The error for a name of ours that is in use by something that is not ours. */
export function schemaForeign(name: string, label: string): KhepriError {
  return new KhepriError('SCHEMA_FOREIGN', `"${name}" exists in ${label} and does not belong to khepri`, {
    fix: 'choose other names: set table and failedTable in the configuration',
  })
}

const created = /^CREATE (?:TABLE|(?:UNIQUE )?INDEX) (?:"[^"]*"\.)?["`]([^"`]+)["`]/

function createdNames(migration: Migration): string[] {
  return statementsOf(migration).flatMap((statement) => created.exec(statement)?.[1] ?? [])
}

function folderOf(dialect: Dialect): string {
  return join(packageRoot(), 'drizzle', dialect)
}
