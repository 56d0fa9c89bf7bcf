import type { DatabaseLocation } from '../database-url.ts'
import type { StoreOptions } from './options.ts'
import type { Store } from './store.ts'

/** A database that other threads and processes can open too. */
export type SharedDatabase = Exclude<DatabaseLocation, { readonly kind: 'memory' }>

/** Opens the hot side of a store, loading only its own driver. Throws SCHEMA_ and STORE_ errors. */
export async function openStore(database: SharedDatabase, options: StoreOptions): Promise<Store> {
  switch (database.kind) {
    case 'sqlite':
      return (await import('./sqlite/store.ts')).openSqliteStore(database.path, options)
    case 'postgres':
      return (await import('./postgres/store.ts')).openPostgresStore(database.url, options)
  }
}
