import { rmSync } from 'node:fs'
import type { StoreOptions } from '../options.ts'
import type { Scratch } from '../scratch.ts'
import { Connection, dispatcherRole, workerRole } from './connection.ts'

/** A file and what SQLite keeps beside it. */
const endings = ['', '-wal', '-shm', '-journal']

/** A scratch installation that is a file of its own. */
export async function openSqliteScratch(path: string, options: StoreOptions): Promise<Scratch> {
  return {
    name: options.names.jobs,
    settings: async () => settingsOf(path, options),
    remove: async () => {
      for (const ending of endings) rmSync(`${path}${ending}`, { force: true })
    },
  }
}

async function settingsOf(path: string, options: StoreOptions): Promise<Readonly<Record<string, string>>> {
  const connection = Connection.open({ ...options, path }, dispatcherRole)
  try {
    const ask = (text: string): Promise<unknown> =>
      connection.patiently(() => connection.db.prepare(text).pluck().get())
    return {
      SQLite: String(await ask('select sqlite_version()')),
      journal_mode: String(await ask('pragma journal_mode')),
      synchronous: `${dispatcherRole.durability} to dispatch, ${workerRole.durability} to work`,
    }
  } finally {
    connection.close()
  }
}
