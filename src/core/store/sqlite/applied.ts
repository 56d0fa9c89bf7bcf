import { type Applied, schemaForeign } from '../migrator.ts'
import type { Connection } from './connection.ts'

/**
 * Reads which migrations the database says were applied; null: it has no table for them.
 *
 * Throws SCHEMA_FOREIGN where a table of that name is not a list of migrations.
 */
export function appliedMigrations(
  connection: Pick<Connection, 'statement'>,
  table: string,
  label: string,
): readonly Applied[] | null {
  const columns = connection.statement('select name from pragma_table_info(?)').pluck().all(table)
  if (columns.length === 0) return null
  if (!['name', 'applied_at', 'least_worker'].every((name) => columns.includes(name))) throw schemaForeign(table, label)
  const rows = connection.statement(`select name, least_worker as "leastWorker" from "${table}" order by name`).all()
  return rows as Applied[]
}
