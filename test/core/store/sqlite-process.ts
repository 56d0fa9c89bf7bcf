import { argv } from 'node:process'
import Database from 'better-sqlite3'
import { tableNames } from '../../../src/core/store/names.ts'
import { openSqliteMigrations } from '../../../src/core/store/sqlite/migrate.ts'
import { openSqliteStore } from '../../../src/core/store/sqlite/store.ts'

/** What the tests run in processes of their own: `node sqlite-process.ts migrate|lock|open PATH`. */

const [, , action, path = ''] = argv
const options = {
  names: tableNames('jobs', 'failed_jobs'),
  schema: undefined,
  label: 'sqlite:./test.db',
  clock: undefined,
  random: Math.random,
  prepare: true,
  deadlineMs: 30_000,
}

/** Prints the names of the migrations that this process applied. */
async function migrate(): Promise<void> {
  const migrations = await openSqliteMigrations(path, options)
  for (const { name } of await migrations.apply()) console.log(name)
  await migrations.close()
}

/** Holds the write lock until its standard input ends. */
async function lock(): Promise<void> {
  const db = new Database(path)
  db.exec('begin immediate')
  console.log('locked')
  for await (const _ of process.stdin);
  db.close()
}

/** Prints the code and the fix of the error that opening a store ends with. */
async function open(): Promise<void> {
  const error = await openSqliteStore(path, options).then(
    () => ({ code: 'none', fix: '' }),
    (reason: { code: string; fix: string }) => reason,
  )
  console.log(`${error.code}: ${error.fix}`)
}

if (action === 'migrate') await migrate()
if (action === 'lock') await lock()
if (action === 'open') await open()
