import Database from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createKhepri, defineJob, type StandardSchema } from '../src/index.ts'
import { fakeQueue } from '../src/testing/index.ts'
import { TempProject } from './support/temp-project.ts'

const note = defineJob<{ readonly text: string }>({ handle() {} })
const checked = defineJob({ schema: z.object({ text: z.string() }), handle() {} })

/** Answers as schemas do that ask a server. */
const slowSchema: StandardSchema<{ readonly text: string }> = {
  '~standard': { version: 1, vendor: 'test', validate: async (value) => ({ value: value as { text: string } }) },
}
const slow = defineJob({ schema: slowSchema, handle() {} })

/** A migrated file, an installation on it, and a connection of the application's own with a table of its own. */
async function anApplication(jobs: Record<string, unknown> = {}) {
  const project = new TempProject({ 'jobs/later.mjs': 'export default () => {}' })
  const khepri = createKhepri(
    { database: 'sqlite:./app.db', jobs: { note, checked, slow, later: './jobs/later.mjs', ...jobs } },
    { root: project.path },
  )
  await khepri.migrate()
  const db = new Database(`${project.path}/app.db`)
  db.exec('create table users (name text)')
  onTestFinished(async () => {
    db.close()
    await khepri.close()
    project[Symbol.dispose]()
  })
  const users = (): unknown => db.prepare('select count(*) from users').pluck().get()
  const live = async (): Promise<readonly unknown[]> => {
    const names: unknown[] = []
    for await (const { job } of (await khepri.admin()).jobs({}, null)) names.push(job)
    return names
  }
  return { khepri, db, users, live, project }
}

it('a job is there with the row of the caller once it commits', async () => {
  const { khepri, db, users, live } = await anApplication()
  const insert = db.transaction(() => {
    db.prepare('insert into users values (?)').run('Ada')
    return khepri.with(db).dispatchSync('note', { text: 'welcome' })
  })
  expect(insert()).toEqual({ id: 1, duplicate: false })
  expect([users(), await live()]).toEqual([1, ['note']])
})

it('nothing is there after a rollback, neither row nor job nor unique key', async () => {
  const { khepri, db, users, live } = await anApplication()
  const fail = db.transaction(() => {
    db.prepare('insert into users values (?)').run('Ada')
    khepri.with(db).dispatchSync(note, { text: 'welcome' }, { unique: 'ada' })
    throw new Error('changed my mind')
  })
  expect(fail).toThrow('changed my mind')
  expect([users(), await live()]).toEqual([0, []])
  expect(await khepri.dispatch('note', { text: 'again' }, { unique: 'ada' })).toMatchObject({ duplicate: false })
})

it('a worker that looks before the commit sees no job', async () => {
  const { khepri, db } = await anApplication()
  db.prepare('begin immediate').run()
  khepri.with(db).dispatchSync('note', { text: 'welcome' })
  const counts = (await khepri.admin()).counts()
  expect(await counts).toEqual([])
  db.prepare('commit').run()
  expect((await (await khepri.work({ stopWhenEmpty: true })).finished).done).toBe(1)
})

it('a unique key that a live job holds answers with its id', async () => {
  const { khepri, db } = await anApplication()
  const { id } = await khepri.dispatch('note', { text: 'one' }, { unique: 'k' })
  const again = db.transaction(() => khepri.with(db).dispatchSync('note', { text: 'two' }, { unique: 'k' }))
  expect(again()).toEqual({ id, duplicate: true })
})

it('outside of a transaction it is one of its own', async () => {
  const { khepri, db, live } = await anApplication()
  expect(khepri.with(db).dispatchSync('note', { text: 'alone' })).toEqual({ id: 1, duplicate: false })
  expect(db.inTransaction).toBe(false)
  expect(await live()).toEqual(['note'])
})

it('drizzle over the connection does the same, in its transactions and in nested ones', async () => {
  const { khepri, db, live } = await anApplication()
  const orm = drizzle(db)
  orm.transaction((tx) => {
    tx.run(sql`insert into users values ('Ada')`)
    khepri.with(tx).dispatchSync('note', { text: 'welcome' })
    const undone = (): void =>
      tx.transaction((inner) => {
        khepri.with(inner).dispatchSync('checked', { text: 'never' })
        throw new Error('undone')
      })
    expect(undone).toThrow('undone')
  })
  khepri.with(orm).dispatchSync('note', { text: 'alone' })
  expect(await live()).toEqual(['note', 'note'])
})

it('a connection that reads whole numbers as BigInt still gets numbers from khepri', async () => {
  const { khepri, db } = await anApplication()
  db.defaultSafeIntegers(true)
  expect(khepri.with(db).dispatchSync('note', { text: 'one' }, { unique: 'k' })).toEqual({ id: 1, duplicate: false })
  expect(khepri.with(db).dispatchSync('note', { text: 'two' }, { unique: 'k' })).toEqual({ id: 1, duplicate: true })
})

describe('what cannot be is refused with a reason', () => {
  it('a schema that answers with a promise', async () => {
    const { khepri, db, live } = await anApplication()
    expect(() => khepri.with(db).dispatchSync('slow', { text: 'x' })).toThrow(
      expect.objectContaining({ code: 'USAGE', message: expect.stringContaining('answers with a promise') }),
    )
    expect(await live()).toEqual([])
  })

  it('a payload that its schema refuses', async () => {
    const { khepri, db } = await anApplication()
    expect(() => khepri.with(db).dispatchSync('checked', { text: 7 as unknown as string })).toThrow(
      expect.objectContaining({ code: 'PAYLOAD_REFUSED' }),
    )
  })

  it('a module that would have to be imported first', async () => {
    const { khepri, db } = await anApplication()
    expect(() => khepri.with(db).dispatchSync('later')).toThrow('the module of later was not imported yet')
  })

  it('a name that nobody knows', async () => {
    const { khepri, db } = await anApplication()
    // @ts-expect-error: no job has this name
    expect(() => khepri.with(db).dispatchSync('nobody')).toThrow(expect.objectContaining({ code: 'JOB_UNKNOWN' }))
  })

  it('a connection to another file, and one in memory', async () => {
    const { khepri, project } = await anApplication()
    using other = new Closing(`${project.path}/other.db`)
    using memory = new Closing(':memory:')
    for (const { db } of [other, memory])
      expect(() => khepri.with(db).dispatchSync('note', { text: 'x' })).toThrow(
        expect.objectContaining({ code: 'USAGE', message: expect.stringContaining('another file') }),
      )
  })

  it('a file without the tables', async () => {
    const { project } = await anApplication()
    using bare = new Closing(`${project.path}/bare.db`)
    bare.db.exec('create table users (name text)')
    const khepri = createKhepri({ database: 'sqlite:./bare.db', jobs: { note } }, { root: project.path })
    expect(() => khepri.with(bare.db).dispatchSync('note', { text: 'x' })).toThrow(
      expect.objectContaining({ code: 'SCHEMA_MISSING' }),
    )
  })

  it('a lock that somebody else holds', async () => {
    const { khepri, db, project } = await anApplication()
    using other = new Closing(`${project.path}/app.db`)
    other.db.prepare('begin immediate').run()
    db.pragma('busy_timeout = 0')
    expect(() => khepri.with(db).dispatchSync('note', { text: 'x' })).toThrow(
      expect.objectContaining({ code: 'STORE_BUSY', fix: expect.stringContaining('.immediate()') }),
    )
  })

  it('SQLite where the jobs are in memory, and what is no connection', async () => {
    const { db } = await anApplication()
    const khepri = createKhepri({ database: 'memory:', jobs: { note } })
    expect(() => khepri.with(db).dispatchSync('note', { text: 'x' })).toThrow('the database of this khepri is memory:')
    // @ts-expect-error: no connection
    expect(() => khepri.with({})).toThrow('neither a transaction nor a connection')
    await khepri.close()
  })
})

it('a fake queue takes what is dispatched inside a transaction', async () => {
  const { khepri, db, live } = await anApplication()
  using queue = fakeQueue(khepri)
  db.transaction(() => khepri.with(db).dispatchSync('note', { text: 'welcome' }))()
  queue.assertPushed('note')
  expect(await live()).toEqual([])
})

it('the types offer dispatchSync alone, and know the payload', async () => {
  const { db, project } = await anApplication()
  const khepri = createKhepri({ database: 'sqlite:./app.db', jobs: { note } }, { root: project.path })
  const inside = khepri.with(db)
  // @ts-expect-error: code after an await would run outside of the transaction
  expect(inside.dispatch).toBeUndefined()
  // @ts-expect-error: the payload is typed by its job
  inside.dispatchSync('note', { text: 7 })
  expect(Object.keys(inside)).toEqual(['dispatchSync'])
  await khepri.close()
})

/** A connection that is closed at the end of its block. */
class Closing {
  readonly db: Database.Database
  constructor(path: string) {
    this.db = new Database(path)
  }
  [Symbol.dispose](): void {
    this.db.close()
  }
}
