import { sql as text } from 'drizzle-orm'
import { drizzle as drizzleOverPg } from 'drizzle-orm/node-postgres'
import { drizzle } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createKhepri, defineJob, type Enqueued } from '../src/index.ts'
import { migratedDatabase } from './core/store/postgres-support.ts'
import { postgresSkipReason } from './support/postgres.ts'

const note = defineJob<{ readonly text: string }>({ handle() {} })

/** A migrated database, an installation on it, and a client of postgres.js as an application has it. */
async function anApplication() {
  const url = await migratedDatabase()
  const khepri = createKhepri({ database: url, jobs: { note } })
  const sql = postgres(url, { max: 4, onnotice: () => {} })
  onTestFinished(async () => {
    await khepri.close()
    await sql.end({ timeout: 5 })
  })
  await sql`create table users (name text)`
  const users = async (): Promise<number> => Number((await sql`select count(*) from users`)[0]?.count)
  const live = async (): Promise<number> => Number((await sql`select count(*) from jobs`)[0]?.count)
  return { url, khepri, sql, users, live }
}

const undo = new Error('changed my mind')

describe.skipIf(postgresSkipReason() !== null)('inside a transaction on Postgres', () => {
  it('a job is there with the row of the caller once it commits, and not before', async () => {
    const { khepri, sql, users, live } = await anApplication()
    const enqueued = await sql.begin(async (tx) => {
      await tx`insert into users values ('Ada')`
      const answer = await khepri.with(tx).dispatch('note', { text: 'welcome' })
      expect(await live()).toBe(0)
      return answer
    })
    expect(enqueued).toEqual({ id: 1, duplicate: false })
    expect([await users(), await live()]).toEqual([1, 1])
    expect((await (await khepri.work({ stopWhenEmpty: true })).finished).done).toBe(1)
  })

  it('nothing is there after a rollback, neither row nor job nor unique key', async () => {
    const { khepri, sql, users, live } = await anApplication()
    const failing = sql.begin(async (tx) => {
      await tx`insert into users values ('Ada')`
      await khepri.with(tx).dispatch(note, { text: 'welcome' }, { unique: 'ada' })
      throw undo
    })
    await expect(failing).rejects.toBe(undo)
    expect([await users(), await live()]).toEqual([0, 0])
    expect(await khepri.dispatch('note', { text: 'again' }, { unique: 'ada' })).toMatchObject({ duplicate: false })
  })

  it('a unique key that a live job holds answers with its id, and the transaction goes on', async () => {
    const { khepri, sql, users } = await anApplication()
    const { id } = await khepri.dispatch('note', { text: 'one' }, { unique: 'k' })
    const answer = await sql.begin(async (tx) => {
      const again = await khepri.with(tx).dispatch('note', { text: 'two' }, { unique: 'k' })
      await tx`insert into users values ('Ada')`
      return again
    })
    expect(answer).toEqual({ id, duplicate: true })
    expect(await users()).toBe(1)
  })

  it('a unique key is held until the caller ends: a second dispatch waits for it', async () => {
    const { khepri, sql } = await anApplication()
    let waiting: Promise<Enqueued> | undefined
    await sql.begin(async (tx) => {
      await khepri.with(tx).dispatch('note', { text: 'one' }, { unique: 'k' })
      waiting = khepri.dispatch('note', { text: 'two' }, { unique: 'k' })
      while ((await sql`select from pg_locks where not granted`).length === 0);
    })
    expect(await waiting).toEqual({ id: 1, duplicate: true })
  })

  it('a delay counts from the dispatch, not from the beginning of a long transaction', async () => {
    const { khepri, sql } = await anApplication()
    await sql.begin(async (tx) => {
      await tx`select pg_sleep(0.2)`
      await khepri.with(tx).dispatch('note', { text: 'later' }, { delay: '1m' })
      const [row] = await tx`select available_at - 60000 - floor(extract(epoch from now()) * 1000) as late from jobs`
      expect(Number(row?.late)).toBeGreaterThanOrEqual(199)
    })
  })

  it('the caller sees its own job before it commits, and its savepoint undoes it', async () => {
    const { khepri, sql, live } = await anApplication()
    await sql.begin(async (tx) => {
      const undone = tx.savepoint(async (inner) => {
        await khepri.with(inner).dispatch('note', { text: 'never' })
        expect(await inner`select from jobs`).toHaveLength(1)
        throw undo
      })
      await expect(undone).rejects.toBe(undo)
      await khepri.with(tx).dispatch('note', { text: 'welcome' })
    })
    expect(await live()).toBe(1)
  })

  it('a client of pg commits and rolls back its jobs', async () => {
    const { url, khepri, live } = await anApplication()
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    const client = await pool.connect()
    await client.query('begin')
    await khepri.with(client).dispatch('note', { text: 'never' })
    await client.query('rollback')
    await client.query('begin')
    expect(await khepri.with(client).dispatch('note', { text: 'welcome' })).toMatchObject({ duplicate: false })
    await client.query('commit')
    client.release()
    expect(await live()).toBe(1)
  })

  it('drizzle over postgres.js and over pg commits and rolls back its jobs', async () => {
    const { url, khepri, sql, live } = await anApplication()
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    for (const db of [drizzle(sql), drizzleOverPg(pool)] as const) {
      const before = await live()
      const run = (end: () => void): Promise<unknown> =>
        (db as ReturnType<typeof drizzle>).transaction(async (tx) => {
          await tx.execute(text`insert into users values ('Ada')`)
          await khepri.with(tx).dispatch('note', { text: 'welcome' })
          end()
        })
      await run(() => {})
      const undone = run(() => {
        throw undo
      })
      await expect(undone).rejects.toBe(undo)
      expect(await live()).toBe(before + 1)
    }
  })

  it('a client whose columns are camel-cased, and whose lists are its own, does the same', async () => {
    const { url, khepri } = await anApplication()
    const sql = postgres(url, { max: 1, transform: postgres.camel, types: { bigint: postgres.BigInt } })
    onTestFinished(() => sql.end())
    const [one, two] = await sql.begin(async (tx) => [
      await khepri.with(tx).dispatch('note', { text: 'it "has" {signs}, \\ and all' }, { unique: 'a_b' }),
      await khepri.with(tx).dispatch('note', { text: 'two' }, { unique: 'a_b' }),
    ])
    expect([one, two]).toEqual([
      { id: 1, duplicate: false },
      { id: 1, duplicate: true },
    ])
  })

  it('a transaction that is broken already is told as what it is', async () => {
    const { khepri, sql, live } = await anApplication()
    const broken = sql.begin(async (tx) => {
      await tx`select 1 / 0`.catch(() => {})
      await khepri.with(tx).dispatch('note', { text: 'x' })
    })
    await expect(broken).rejects.toThrow(expect.objectContaining({ code: 'STORE_FAILED' }))
    expect(await live()).toBe(0)
  })

  it('pools, and clients that have not begun, are refused: there is nothing to roll back', async () => {
    const { url, khepri, sql } = await anApplication()
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    // @ts-expect-error: a pool is no transaction
    expect(() => khepri.with(sql)).toThrow('a pool of postgres.js')
    // @ts-expect-error: a pool is no transaction
    expect(() => khepri.with(pool)).toThrow('a pool of pg')
    // @ts-expect-error: drizzle outside of a transaction
    expect(() => khepri.with(drizzle(sql))).toThrow('a pool of postgres.js')
    const client = await pool.connect()
    await client.query('select 1')
    expect(() => khepri.with(client)).toThrow('a client of pg without a transaction')
    client.release()
  })
})
