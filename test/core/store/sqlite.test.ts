import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { tableNames } from '../../../src/core/store/names.ts'
import { openSqliteAdmin } from '../../../src/core/store/sqlite/admin.ts'
import { Connection, operatorRole } from '../../../src/core/store/sqlite/connection.ts'
import { openSqliteStore } from '../../../src/core/store/sqlite/store.ts'
import { aProfile } from '../../../src/testing/conformance/builders.ts'
import {
  aJob,
  anAttempt,
  aRound,
  aWish,
  freshPath,
  migrate,
  migratedPath,
  openAdmin,
  openStore,
  storeOptions,
} from './sqlite-support.ts'

const processFile = join(import.meta.dirname, 'sqlite-process.ts')

/** A connection of another program. */
function stranger(path: string): Database.Database {
  const db = new Database(path)
  onTestFinished(() => void db.close())
  return db
}

describe('a file that is deleted under an open store', () => {
  const remove = (path: string) => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
  }

  test('is missed at once: nothing is said to be kept that nobody can find', async () => {
    const path = await migratedPath()
    const store = await openStore(path)
    await store.enqueue([aJob()])
    remove(path)
    await expect(store.enqueue([aJob()])).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    await expect(store.exchange(aRound({ reserve: aWish() }))).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })

  test('and made anew is opened anew, and its workers are not known there', async () => {
    const path = await migratedPath()
    const store = await openStore(path)
    await store.beat({ kind: 'joining', worker: 1, profile: aProfile() })
    await store.enqueue([aJob(), aJob()])
    remove(path)
    await migrate(path)
    await store.enqueue([aJob()])
    expect(countJobs(path)).toBe(1)
    expect(await store.beat({ kind: 'working', worker: 1 })).toEqual({ known: false })
  })
})

test('a log that a reader has let grow is cut once it is gone, while work goes on', async () => {
  const path = await migratedPath()
  const store = await openStore(path)
  const logBytes = () => statSync(`${path}-wal`).size
  const enqueue = async (bytes: number) => {
    for (let commits = 0; commits < 256; commits++) await store.enqueue([aJob({ envelope: 'x'.repeat(bytes) })])
  }
  const reader = stranger(path)
  reader.exec('begin; select count(*) from jobs')
  await enqueue(280_000)
  expect(logBytes()).toBeGreaterThan(64 * 1024 * 1024)
  reader.exec('commit')
  await enqueue(1)
  expect(logBytes()).toBeLessThan(32 * 1024 * 1024)
})

function countJobs(path: string): number {
  return stranger(path).prepare('select count(*) from jobs').pluck().get() as number
}

describe('a locked file', () => {
  test('is waited for, and the work is done once the lock is free', async () => {
    const path = await migratedPath()
    const holder = stranger(path)
    let looks = 0
    const random = () => {
      looks += 1
      if (looks === 3) holder.exec('commit')
      return 0
    }
    const store = await openStore(path, { random })
    await store.enqueue([aJob()])
    holder.exec('begin immediate')

    const { reserved } = await store.exchange(aRound({ reserve: aWish() }))

    expect(reserved).toHaveLength(1)
    expect(looks).toBe(3)
  })

  test('ends in STORE_BUSY after the deadline; nothing is written and the event loop stays free', async () => {
    const path = await migratedPath()
    const store = await openStore(path, { deadlineMs: 100 })
    const holder = stranger(path)
    holder.exec('begin immediate')
    let ticks = 0
    const ticking = setInterval(() => (ticks += 1), 1)
    onTestFinished(() => clearInterval(ticking))

    await expect(store.enqueue([aJob()])).rejects.toMatchObject({
      code: 'STORE_BUSY',
      message: expect.stringMatching(
        /^sqlite:\.\/test\.db was locked by other processes whenever khepri looked, for [1-9]\d*ms$/,
      ),
    })

    expect(ticks).toBeGreaterThan(0)
    holder.exec('rollback')
    expect(countJobs(path)).toBe(0)
  })

  test('is free again when the process that held it is killed', async () => {
    const path = await migratedPath()
    const store = await openStore(path)
    const holder = spawn(process.execPath, [processFile, 'lock', path], { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(holder.stdout, 'data')
    const enqueued = store.enqueue([aJob()])

    holder.kill('SIGKILL')

    expect(await enqueued).toEqual([{ id: 1, duplicate: false }])
  })

  test('does not disturb a reader: nextDue answers while somebody writes', async () => {
    const path = await migratedPath()
    const store = await openStore(path, { deadlineMs: 0 })
    await store.enqueue([aJob()])
    stranger(path).exec('begin immediate; delete from jobs')

    expect(await store.nextDue(aWish())).toBe(0)
  })
})

test('a store that is closed while a call waits for the lock ends that call, and opens nothing again', async () => {
  const path = await migratedPath()
  const store = await openStore(path)
  stranger(path).exec('begin immediate')
  const waiting = store.enqueue([aJob()])
  const closed = { code: 'STORE_UNREACHABLE', message: 'sqlite:./test.db was closed; nothing was written' }

  await store.close()

  await expect(waiting).rejects.toMatchObject(closed)
  await expect(store.enqueue([aJob()])).rejects.toMatchObject(closed)
})

describe('a file that cannot be used', () => {
  test('that is missing is SCHEMA_MISSING, and none is created', async () => {
    const path = freshPath()
    const missing = {
      code: 'SCHEMA_MISSING',
      message: 'the schema of sqlite:./test.db is missing',
      fix: 'khepri migrate',
    }

    await expect(openSqliteStore(path, storeOptions())).rejects.toMatchObject(missing)
    await expect(openSqliteAdmin(path, storeOptions())).rejects.toMatchObject(missing)
    expect(existsSync(path)).toBe(false)
  })

  test('that is empty is SCHEMA_MISSING', async () => {
    const path = freshPath()
    writeFileSync(path, '')

    await expect(openSqliteStore(path, storeOptions())).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })

  test('that is no database is named, and left as it is', async () => {
    const path = freshPath()
    writeFileSync(path, 'a letter to a friend, long enough to be taken for a header of a file of pages\n'.repeat(20))

    await expect(openSqliteStore(path, storeOptions())).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: 'sqlite:./test.db is not an SQLite database (SQLITE_NOTADB)',
    })
  })

  test('that is a folder is named', async () => {
    const path = freshPath()
    mkdirSync(path)

    await expect(openSqliteStore(path, storeOptions())).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: 'sqlite:./test.db is a folder',
    })
  })

  test('whose folder is missing gets no folder made', async () => {
    const path = join(dirname(freshPath()), 'nowhere', 'test.db')

    await expect(migrate(path)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE', fix: `mkdir -p ${dirname(path)}` })
    expect(existsSync(dirname(path))).toBe(false)
  })

  test.skipIf(process.platform === 'win32')('that this user may only read is STORE_DENIED', async () => {
    const path = await migratedPath()
    chmodSync(dirname(path), 0o755)
    chmodSync(path, 0o444)
    becomeNobody()

    await expect(openSqliteStore(path, storeOptions())).rejects.toMatchObject({ code: 'STORE_DENIED' })
  })

  test('that lost a table in the middle of the work is named, and the round changes nothing', async () => {
    const path = await migratedPath()
    const store = await openStore(path)
    await store.enqueue([aJob(), aJob()])
    const { reserved } = await store.exchange(aRound({ reserve: aWish() }))
    stranger(path).exec('drop table jobs_attempts')
    const [first, second] = reserved.map(({ id, fence }) => ({ id, fence }))
    if (!first || !second) throw new Error('two jobs were reserved')

    const round = aRound({
      settle: [
        { ...first, kind: 'complete', keep: false },
        { ...second, kind: 'fail', reason: 'tries', attempt: anAttempt },
      ],
    })
    await expect(store.exchange(round)).rejects.toMatchObject({
      code: 'SCHEMA_BROKEN',
      message:
        'the table "jobs_attempts" is missing from sqlite:./test.db, though its migrations say that it was created',
    })

    expect(stranger(path).prepare('select id from jobs where worker = 7').pluck().all()).toEqual([1, 2])
  })

  test('that refuses a row is STORE_FAILED, without the payload in the message or in its causes', async () => {
    const path = await migratedPath()
    stranger(path).exec("create trigger no before insert on jobs begin select raise(abort, 'no'); end")
    const store = await openStore(path)

    const error = await store.enqueue([aJob({ envelope: '{"token":"T0k3n-xyz"}' })]).catch((reason) => reason)

    expect(error.message).toBe('sqlite:./test.db refused a statement (SQLITE_CONSTRAINT_TRIGGER)')
    expect(`${error.stack} ${error.cause.stack}`).not.toContain('T0k3n')
  })
})

/** Root may write everything: gives that up until the test is over. */
function becomeNobody(): void {
  if (process.geteuid?.() !== 0) return
  process.seteuid?.(65_534)
  onTestFinished(() => process.seteuid?.(0))
}

test('a full database is STORE_FULL, keeps what it had, and takes jobs again when there is room', async () => {
  const path = await migratedPath()
  const connection = Connection.open({ ...storeOptions(), path }, operatorRole)
  onTestFinished(() => connection.close())
  const pages = connection.db.pragma('page_count', { simple: true })
  const insert = () =>
    connection.statement(
      `insert into jobs (queue, available_at, job, version, enqueued_at, envelope) values ('q', 0, 'note', 1, 0, ?)`,
    )
  connection.db.pragma(`max_page_count = ${pages}`)

  await expect(connection.write(() => insert().run('x'.repeat(100_000)))).rejects.toMatchObject({
    code: 'STORE_FULL',
    message: 'sqlite:./test.db is full (SQLITE_FULL)',
  })

  expect(countJobs(path)).toBe(0)
  connection.db.pragma('max_page_count = 1000000')
  await connection.write(() => insert().run('x'.repeat(100_000)))
  expect(countJobs(path)).toBe(1)
})

test('a driver without its native part is BINDING_MISSING with the command that mends it', async () => {
  const path = await migratedPath()
  const broken = `process.dlopen = () => { throw Object.assign(new Error('no'), { code: 'ERR_DLOPEN_FAILED' }) }`
  const preload = `data:text/javascript,${encodeURIComponent(broken)}`

  const run = promisify(execFile)(process.execPath, ['--import', preload, processFile, 'open', path])

  expect((await run).stdout).toBe('BINDING_MISSING: npm rebuild better-sqlite3\n')
})

test('two installations in one file do not see each other', async () => {
  const path = await migratedPath()
  const names = tableNames('mail', 'mail_failed')
  await migrate(path, storeOptions({ names }))
  const [ours, theirs] = [await openStore(path), await openStore(path, { names })]
  await ours.enqueue([aJob({ uniqueKey: 'k' })])
  await theirs.enqueue([aJob({ uniqueKey: 'k' }), aJob()])

  const { reserved } = await theirs.exchange(aRound({ reserve: aWish() }))
  await (await openAdmin(path, { names })).pause(['default'], null, null)

  expect(reserved).toHaveLength(2)
  expect(await theirs.nextDue(aWish())).toBe(null)
  expect(await ours.nextDue(aWish())).toBe(0)
})

test('a file name with quotes, spaces and a question mark is only a file name', async () => {
  const path = join(dirname(freshPath()), `it's a "file" ?mode=ro`)
  await migrate(path)
  const store = await openStore(path)

  expect(await store.enqueue([aJob()])).toEqual([{ id: 1, duplicate: false }])
  expect(existsSync(path)).toBe(true)
})

test('a priority that no job had before is found behind 70 others', async () => {
  const store = await openStore(await migratedPath())
  const later = Array.from({ length: 70 }, (_, priority) => aJob({ priority, due: { delayMs: 60_000 } }))
  await store.enqueue([...later, aJob({ priority: 80 }), aJob({ priority: 75 })])

  const { reserved } = await store.exchange(aRound({ reserve: aWish() }))

  expect(reserved.map(({ priority }) => priority)).toEqual([75, 80])
  expect(await store.nextDue(aWish({ exclude: reserved.map(({ id }) => id) }))).toBeGreaterThan(0)
})

test('a suspect that is passed over does not use up the bytes of the jobs behind it', async () => {
  const path = await migratedPath()
  const store = await openStore(path)
  await store.enqueue([aJob(), aJob({ envelope: `{"text":"${'x'.repeat(100)}"}` }), aJob()])
  stranger(path).exec('update jobs set suspect = 1 where id = 2')

  const { reserved } = await store.exchange(aRound({ reserve: aWish({ maxBytes: 40 }) }))

  expect(reserved.map(({ id }) => id)).toEqual([1, 3])
})

test('a listing of 1,000 failed jobs holds 100 of them at a time, and ends where the reader stops', async () => {
  const path = await migratedPath()
  const fill = stranger(path).prepare(
    `insert into failed_jobs (id, fence, queue, priority, job, failures, crashes, version, enqueued_at, failed_at, reason,
       error_type, error, envelope) values (?, 1, 'q', 0, 'note', 1, 0, 1, 0, ?, 'tries', 'Error', 'no', '{}')`,
  )
  for (let id = 1; id <= 1_000; id++) fill.run(id, Math.ceil(id / 10))
  const admin = await openAdmin(path)
  const seen: number[] = []

  for await (const { id } of admin.failed({}, null)) {
    seen.push(id)
    if (seen.length === 1) stranger(path).exec('delete from failed_jobs where id between 1 and 850')
  }

  expect(seen).toEqual(Array.from({ length: 150 }, (_, index) => 1_000 - index))
})
