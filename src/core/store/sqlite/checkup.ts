import { KhepriError } from '../../errors.ts'
import { examined, type Finding, fault, ok } from '../../findings.ts'
import type { StoreOptions } from '../options.ts'
import { Connection, operatorRole } from './connection.ts'
import { refuseNetworkFileSystem, refuseUnusable } from './file-system.ts'

/** Looks whether an SQLite file can be worked with; changes nothing. Never throws. */
export async function checkSqlite(path: string, options: StoreOptions): Promise<readonly Finding[]> {
  const place = await examined('file system', () => {
    refuseUnusable(path, options.label)
    refuseNetworkFileSystem(path, options.label)
    return ok('file system', 'a local one')
  })
  if (place.state === 'fault') return [place]
  try {
    const connection = Connection.open({ ...options, path }, operatorRole)
    try {
      return [place, ...(await withConnection(connection, options.label))]
    } finally {
      connection.close()
    }
  } catch (error) {
    return [place, fault('database', error)]
  }
}

/** One check after the other: they share a connection, and one transaction at a time is what it has. */
async function withConnection(connection: Connection, label: string): Promise<readonly Finding[]> {
  const ask = (text: string): Promise<unknown> => connection.patiently(() => connection.db.prepare(text).pluck().get())
  return [
    await examined('database', async () => ok('database', `${label}, SQLite ${await ask('select sqlite_version()')}`)),
    await examined('writable', () => tryToWrite(connection)),
    await examined('journal', async () => judgeJournal(await ask('pragma journal_mode'), label)),
  ]
}

/** Takes the write lock, makes a table and undoes it. */
function tryToWrite(connection: Connection): Promise<Finding> {
  return connection.patiently(() => {
    connection.db.exec('begin immediate')
    try {
      connection.db.exec('create table khepri_doctor (id integer)')
    } finally {
      if (connection.db.inTransaction) connection.db.exec('rollback')
    }
    return ok('writable', 'yes')
  })
}

function judgeJournal(mode: unknown, label: string): Finding {
  if (mode === 'wal') return ok('journal', 'wal')
  throw new KhepriError('CONFIG_INVALID', `${label} is in journal mode "${mode}"; khepri needs "wal"`, {
    fix: 'khepri migrate sets it',
  })
}
