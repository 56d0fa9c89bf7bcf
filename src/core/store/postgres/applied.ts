import { type Applied, schemaForeign } from '../migrator.ts'
import type { StoreOptions } from '../options.ts'
import type { Row } from './connection.ts'
import type { Values } from './connections.ts'
import { relations } from './fragments.ts'
import { type Statement, statement } from './statement.ts'

const columnsOf = statement(`select a.attname as name from pg_attribute a
  where a.attrelid = to_regclass(:table::text) and a.attnum > 0 and not a.attisdropped`)

/**
 * Reads which migrations the database says were applied; null: it has no table for them.
 *
 * run: how to send a statement, alone or in a transaction. Throws SCHEMA_FOREIGN where a table of that name is not a
 * list of migrations.
 */
export async function appliedMigrations(
  run: (statement: Statement, values: Values) => Promise<readonly Row[]>,
  { names, schema, label }: StoreOptions,
): Promise<readonly Applied[] | null> {
  const { migrations } = relations(names, schema)
  const columns = (await run(columnsOf, { table: migrations })).map(({ name }) => name)
  if (columns.length === 0) return null
  if (!['name', 'applied_at', 'least_worker'].every((name) => columns.includes(name)))
    throw schemaForeign(names.migrations, label)
  const rows = await run(statement(`select name, least_worker from ${migrations} order by name`), {})
  return rows.map((row) => ({ name: row.name as string, leastWorker: row.least_worker as string | null }))
}
