import { schemaForeign } from '../migrator.ts'
import type { Connection } from './connection.ts'

/**
 * Reads which migrations the database says were applied; null: it has no table for them.
 *
 * Throws SCHEMA_FOREIGN where a table of that name is not a list of migrations.
 */
export function appliedMigrations(connection: Connection, table: string, label: string): readonly string[] | null {
  const columns = pluck(connection, 'select name from pragma_table_info(?)', table)
  if (columns.length === 0) return null
  if (!columns.includes('name') || !columns.includes('applied_at')) throw schemaForeign(table, label)
  return pluck(connection, `select name from "${table}" order by name`)
}

function pluck(connection: Connection, text: string, ...params: readonly unknown[]): string[] {
  return connection
    .statement(text)
    .pluck()
    .all(...params) as string[]
}
