import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'

/**
 * Loaded into khepri's processes before khepri: while the file that TEST_READ_ONLY_SWITCH names exists, every connection
 * of SQLite refuses to write, with the code that a read-only file system gives it. A file that is open for writing
 * cannot be made read-only from outside.
 */

const file = process.env.TEST_READ_ONLY_SWITCH
const everyMs = 50

const connections = new Map<Database.Database, boolean>()

function obey(db: Database.Database): void {
  const isReadOnly = existsSync(file ?? '')
  if (connections.get(db) === isReadOnly || !db.open || db.inTransaction) return
  connections.set(db, isReadOnly)
  db.pragma(`query_only = ${isReadOnly ? 'on' : 'off'}`)
}

function watch(): void {
  const { prepare } = Database.prototype
  Database.prototype.prepare = function (this: Database.Database, ...parameters: Parameters<typeof prepare>) {
    if (!connections.has(this)) obeyFirst(this)
    return prepare.apply(this, parameters)
  } as typeof prepare
  setInterval(() => {
    for (const db of connections.keys())
      if (db.open) obey(db)
      else connections.delete(db)
  }, everyMs).unref()
}

/** `pragma` prepares, too. */
function obeyFirst(db: Database.Database): void {
  connections.set(db, false)
  obey(db)
}

if (file !== undefined) watch()
