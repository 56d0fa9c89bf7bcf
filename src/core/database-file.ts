import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from './config.ts'
import { KhepriError } from './errors.ts'

/**
 * Refuses an SQLite file that is not there, where the reason is most likely another folder or a mistyped name.
 *
 * A file that the configuration itself names is left to the store: its schema is missing, and `migrate` creates both.
 * Throws SCHEMA_MISSING.
 */
export function requireDatabaseFile({ database, file, root }: Pick<Config, 'database' | 'file' | 'root'>): void {
  if (database.kind !== 'sqlite' || existsSync(database.path)) return
  const isOfConfig = file !== null && resolve(root, database.label.replace(/^sqlite:(?:\/\/)?/, '')) === database.path
  if (isOfConfig) return
  const where = file === null ? `no configuration was found from ${root} upward` : `the configuration is ${file}`
  throw new KhepriError('SCHEMA_MISSING', `no database at ${database.path}; ${where}`, {
    fix: 'run it in the folder of your project, or name it with --config or --database; for a new database: khepri migrate',
  })
}
