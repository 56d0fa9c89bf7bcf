import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Migrations } from '../../../src/core/store/migrations.ts'
import { tableNames } from '../../../src/core/store/names.ts'
import type { StoreOptions } from '../../../src/core/store/options.ts'
import { networkFileSystem, refuseNetworkFileSystem } from '../../../src/core/store/sqlite/file-system.ts'
import { openSqliteMigrations } from '../../../src/core/store/sqlite/migrate.ts'
import { openSqliteStore } from '../../../src/core/store/sqlite/store.ts'
import { aJob, aRound, aWish, freshPath, migrate, migratedPath, openStore, storeOptions } from './sqlite-support.ts'

const all = ['0000_jobs', '0001_attempts', '0002_workers', '0003_marks', '0004_schedules', '0005_parents']

async function open(path: string, given: Partial<StoreOptions> = {}): Promise<Migrations> {
  const migrations = await openSqliteMigrations(path, storeOptions(given))
  onTestFinished(() => migrations.close())
  return migrations
}

function database(path: string): Database.Database {
  const db = new Database(path)
  onTestFinished(() => void db.close())
  return db
}

const namesOf = (migrations: readonly { readonly name: string }[]) => migrations.map(({ name }) => name)

describe('status', () => {
  test('of a file that does not exist is three pending, and creates none', async () => {
    const path = freshPath()

    const { applied, pending, unknown } = await (await open(path)).status()

    expect([applied, namesOf(pending), unknown]).toEqual([[], all, []])
    expect(existsSync(path)).toBe(false)
  })

  test('of a migrated file is three applied', async () => {
    const migrations = await open(await migratedPath())

    expect(await migrations.status()).toEqual({ applied: all, pending: [], newer: [], unknown: [], missing: [] })
  })
})

describe('apply', () => {
  test('creates the file in WAL mode with three migrations, and a second time finds nothing to do', async () => {
    const path = freshPath()
    const migrations = await open(path)

    expect(namesOf(await migrations.apply())).toEqual(all)
    expect(await migrations.apply()).toEqual([])
    expect(database(path).pragma('journal_mode', { simple: true })).toBe('wal')
  })

  // Twenty processes on a machine that many share: nothing here waits for time to pass.
  test('by twenty processes at once applies each file once', { timeout: 240_000 }, async () => {
    const path = freshPath()
    const file = join(import.meta.dirname, 'sqlite-process.ts')
    const run = promisify(execFile)

    const runs = await Promise.all(Array.from({ length: 20 }, () => run(process.execPath, [file, 'migrate', path])))

    const applied = runs.flatMap(({ stdout }) => stdout.split('\n').filter((line) => line !== ''))
    expect(applied.sort()).toEqual(all)
  })

  test('waits for a lock that another connection holds', async () => {
    const path = freshPath()
    const holder = database(path)
    holder.exec('create table theirs (id); begin immediate')
    let looks = 0
    const random = () => {
      looks += 1
      if (looks === 2) holder.exec('commit')
      return 0
    }

    expect(namesOf(await (await open(path, { random })).apply())).toEqual(all)
  })

  test('goes on where an older khepri stopped', async () => {
    const path = await pathAt('0000_jobs')
    const migrations = await open(path)

    expect(namesOf((await migrations.status()).pending)).toEqual([
      '0001_attempts',
      '0002_workers',
      '0003_marks',
      '0004_schedules',
      '0005_parents',
    ])
    expect(namesOf(await migrations.apply())).toEqual([
      '0001_attempts',
      '0002_workers',
      '0003_marks',
      '0004_schedules',
      '0005_parents',
    ])
  })

  test.each([
    'create table jobs (id)',
    'create table "Failed_Jobs" (id)',
    'create table a (b); create index jobs_ready on a (b)',
  ])('refuses a name of ours that is not ours and changes nothing: %s', async (sql) => {
    const path = freshPath()
    database(path).exec(sql)
    const before = readFileSync(path)

    await expect((await open(path)).apply()).rejects.toMatchObject({ code: 'SCHEMA_FOREIGN' })

    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('refuses a table of migrations that is none', async () => {
    const path = freshPath()
    database(path).exec('create table jobs_migrations (version integer)')

    await expect((await open(path)).apply()).rejects.toMatchObject({
      code: 'SCHEMA_FOREIGN',
      message: '"jobs_migrations" exists in sqlite:./test.db and does not belong to khepri',
      fix: 'choose other names: set table and failedTable in the configuration',
    })
  })

  test('leaves the tables of a user and of another installation alone', async () => {
    const path = await migratedPath()
    database(path).exec('create table users (id)')

    await migrate(path, storeOptions({ names: tableNames('mail', 'mail_failed') }))

    const tables = database(path).prepare("select name from sqlite_schema where type = 'table'").pluck().all()
    expect(tables).toEqual(expect.arrayContaining(['users', 'jobs', 'failed_jobs', 'mail', 'mail_failed']))
  })
})

/** A file that an older khepri migrated up to the given name. */
async function pathAt(last: string): Promise<string> {
  const path = await migratedPath()
  database(path).exec(`
    delete from jobs_migrations where name > '${last}';
    drop table jobs_attempts; drop table jobs_workers; drop table jobs_queues;
    drop table jobs_schedules; drop table jobs_slots; drop table jobs_ticks; drop table jobs_parents`)
  return path
}

describe('a store', () => {
  test('on an older schema is SCHEMA_BEHIND with the names that are missing', async () => {
    await expect(openSqliteStore(await pathAt('0000_jobs'), storeOptions())).rejects.toMatchObject({
      code: 'SCHEMA_BEHIND',
      message:
        'the schema of sqlite:./test.db is behind: 0001_attempts, 0002_workers, 0003_marks, 0004_schedules, 0005_parents not applied',
      fix: 'khepri migrate',
    })
  })

  test('on a newer schema is SCHEMA_AHEAD, and migrate refuses it too', async () => {
    const path = await migratedPath()
    database(path).exec("insert into jobs_migrations values ('0004_moons', 0, null)")
    const ahead = {
      code: 'SCHEMA_AHEAD',
      message: 'the schema of sqlite:./test.db is newer than this khepri: it does not know 0004_moons',
    }

    await expect(openSqliteStore(path, storeOptions())).rejects.toMatchObject(ahead)
    await expect((await open(path)).apply()).rejects.toMatchObject(ahead)
    expect((await (await open(path)).status()).unknown).toEqual(['0004_moons'])
  })

  test('on a newer schema that admits this khepri opens, works, and migrate has nothing to do', async () => {
    const path = await migratedPath()
    database(path).exec("insert into jobs_migrations values ('0004_moons', 0, '0.1.0')")
    const store = await openStore(path)

    expect(await store.enqueue([aJob()])).toEqual([{ id: 1, duplicate: false }])
    expect(await (await open(path)).apply()).toEqual([])
    expect(await (await open(path)).status()).toMatchObject({ newer: ['0004_moons'], unknown: [] })
  })

  test('that is migrated while it is open goes on working', async () => {
    const path = await migratedPath()
    const store = await openStore(path)
    database(path).exec(
      `alter table jobs add column later text; create index jobs_later on jobs (later);
       insert into jobs_migrations values ('0004_moons', 0, '0.1.0')`,
    )
    await store.enqueue([aJob()])
    const { reserved } = await store.exchange(aRound({ reserve: aWish() }))
    const settle = reserved.map(({ id, fence }) => ({ id, fence, kind: 'complete', keep: true }) as const)

    expect((await store.exchange(aRound({ settle }))).lost).toEqual([])
  })

  test('on a schema that needs a newer khepri is SCHEMA_AHEAD, and migrate and status say so too', async () => {
    const path = await migratedPath()
    database(path).exec("insert into jobs_migrations values ('0004_moons', 0, '99.1.0')")
    const ahead = {
      code: 'SCHEMA_AHEAD',
      message: expect.stringMatching(/^the schema of sqlite:\.\/test\.db needs khepri 99\.1\.0 or newer, this is \d/),
      fix: 'npm install khepri@^99.1.0',
    }

    await expect(openSqliteStore(path, storeOptions())).rejects.toMatchObject(ahead)
    await expect((await open(path)).apply()).rejects.toMatchObject(ahead)
    expect((await (await open(path)).status()).unknown).toEqual(['0004_moons'])
  })

  test('finds beside each migration the khepri that it admits', async () => {
    const rows = database(await migratedPath()).prepare('select name, least_worker from jobs_migrations order by name')

    expect(rows.raw().all()).toEqual(all.map((name) => [name, '0.1.0']))
  })
})

test('a dropped table is not "nothing to do": it is named', async () => {
  const path = await migratedPath()
  database(path).exec('drop table jobs_workers')

  await expect((await open(path)).apply()).rejects.toMatchObject({
    code: 'SCHEMA_BROKEN',
    message: expect.stringContaining('the table "jobs_workers" is missing'),
  })
  expect(await (await open(path)).status()).toMatchObject({ pending: [], missing: ['jobs_workers'] })
})

describe('a network file system', () => {
  test.each([
    [0x6969, 'NFS'],
    [0xff534d42, 'CIFS'],
    [-0xacb2be, 'CIFS'],
    [0x01021997, '9p'],
    [0x65735546, 'FUSE or virtiofs'],
  ])('of type %i is %s and refused with a way out', (type, kind) => {
    expect(networkFileSystem(type)).toBe(kind)
    expect(() => refuseNetworkFileSystem('/mnt/q.db', 'sqlite:/mnt/q.db', () => type)).toThrow(
      `sqlite:/mnt/q.db lies on ${kind}, where SQLite's locks cannot be trusted`,
    )
  })

  test.each([0xef53, 0x58465342, 0x9123683e, 0x01021994])('is not what type %i is', (type) => {
    expect(networkFileSystem(type)).toBe(null)
  })
})
