import { statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import postgres from 'postgres'
import { startPostgres } from '../../test/support/postgres.ts'

/** The database of a soak: where it is, how large it has become, and what somebody else does to it meanwhile. */
export interface Site {
  readonly store: 'sqlite' | 'postgres'
  readonly url: string
  /** Of the journal that is yet to be worked into the tables, bytes. */
  walBytes(): Promise<number>
  /** Of all of khepri's tables with their indexes, bytes. */
  tableBytes(): Promise<number>
  close(): Promise<void>
}

/** An SQLite file in a folder. */
export function sqliteSite(folder: string): Site {
  const file = join(folder, 'soak.db')
  return {
    store: 'sqlite',
    url: `sqlite:${file}`,
    walBytes: async () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    tableBytes: async () => {
      const db = new Database(file, { readonly: true })
      try {
        return Number(db.pragma('page_count', { simple: true })) * Number(db.pragma('page_size', { simple: true }))
      } finally {
        db.close()
      }
    },
    close: async () => {},
  }
}

/** A private server that is as durable as a real one, with a transaction that holds its snapshot open until the end. */
export async function postgresSite(): Promise<Site> {
  const settings = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', shared_buffers: '128MB' }
  const server = await startPostgres({ settings })
  const holder = postgres(server.url, { max: 1, onnotice: () => {} })
  const looker = postgres(server.url, { max: 1, onnotice: () => {} })
  const number = async (text: string): Promise<number> => Number((await looker.unsafe(text))[0]?.bytes)
  await holder.unsafe('begin isolation level repeatable read')
  await holder.unsafe('select txid_current()')
  return {
    store: 'postgres',
    url: server.url,
    walBytes: () => number('select sum(size) as bytes from pg_ls_waldir()'),
    tableBytes: () =>
      number("select sum(pg_total_relation_size(oid)) as bytes from pg_class where relkind = 'r' and relname ~ 'jobs'"),
    close: async () => {
      await holder.end({ timeout: 1 })
      await looker.end({ timeout: 1 })
      await server.remove()
    },
  }
}
