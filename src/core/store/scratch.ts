import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { Config, ConfigInput } from '../config.ts'
import { KhepriError } from '../errors.ts'

/** A place of its own in a user's database: tables under names that nobody else has, for as long as a measurement takes. */
export interface Scratch {
  /** What the names of its tables, or of its file, begin with. */
  readonly name: string
  /** Those settings of the database that decide how fast it is, by name. */
  settings(): Promise<Readonly<Record<string, string>>>
  /** Takes everything away that was created under these names; nothing to take away is no error. */
  remove(): Promise<void>
}

/**
 * The configuration of a scratch installation: names that nobody else has, in the schema of the user's own.
 *
 * On SQLite it is a file in the same folder: the same disk, and nobody waits for its lock. Tables in the user's own file
 * would leave that as large as they were. Throws USAGE for the memory store.
 */
export function scratchConfig({ database, schema, prepare }: Config): ConfigInput {
  const name = `khepri_bench_${randomBytes(6).toString('hex')}`
  const names = { table: name, failedTable: `${name}_failed` }
  switch (database.kind) {
    case 'sqlite':
      return { ...names, database: `sqlite:${join(dirname(database.path), `${name}.db`)}` }
    case 'postgres':
      return { ...names, database: database.url, prepare, schema }
    case 'memory':
      throw new KhepriError('USAGE', 'the memory store has no database to measure', {
        fix: 'say --database, or set database in the configuration',
      })
  }
}
