import { type GetColumnData, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'

/**
 * Reads a column as what its type says.
 *
 * SQLite keeps whatever it is given: a blob or a text that a stranger wrote into one row must not make a list unreadable.
 */
export function typed<Column extends SQLiteColumn>(column: Column): SQL<GetColumnData<Column>> {
  return sql<GetColumnData<Column>>`cast(${column} as ${sql.raw(column.dataType === 'number' ? 'integer' : 'text')})`
}

/** Reads several columns as what their types say. */
export function allTyped<Columns extends Readonly<Record<string, SQLiteColumn>>>(
  columns: Columns,
): { [Name in keyof Columns]: SQL<GetColumnData<Columns[Name]>> } {
  const entries = Object.entries(columns).map(([name, column]) => [name, typed(column)])
  return Object.fromEntries(entries) as { [Name in keyof Columns]: SQL<GetColumnData<Columns[Name]>> }
}
