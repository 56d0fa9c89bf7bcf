import { requireCurrent } from '../migrator.ts'
import type { StoreOptions } from '../options.ts'
import { appliedMigrations } from './applied.ts'
import { Connection, type Role } from './connection.ts'

/** Throws SCHEMA_MISSING, SCHEMA_BEHIND or SCHEMA_AHEAD unless the file is migrated as this khepri needs it. */
export async function requireMigrated(connection: Connection, { names, label }: StoreOptions): Promise<void> {
  const applied = await connection.read(() => appliedMigrations(connection, names.migrations, label))
  requireCurrent('sqlite', applied, label)
}

/** Opens a file that exists and is migrated; throws what `requireMigrated` throws, and leaves nothing open then. */
export async function openMigrated(path: string, options: StoreOptions, role: Role): Promise<Connection> {
  const connection = Connection.open({ ...options, path }, role)
  try {
    await requireMigrated(connection, options)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}
