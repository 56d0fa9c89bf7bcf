import Database from 'better-sqlite3'
import postgres from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createKhepri, defineJob } from '../src/index.ts'
import { fakeQueue, testKhepri } from '../src/testing/index.ts'
import { migratedDatabase } from './core/store/postgres-support.ts'
import { postgresSkipReason } from './support/postgres.ts'
import { TempProject } from './support/temp-project.ts'

/** A job that writes down its payloads. */
function aJournal() {
  const journal: string[] = []
  const note = defineJob<{ readonly text: string }>({
    tries: 2,
    backoff: '1m',
    handle({ text }, { attempt }) {
      journal.push(text)
      if (text === 'fails' && attempt === 1) throw new Error('broken')
    },
  })
  return { journal, jobs: { note } }
}

const replacing = { unique: 'k', onConflict: 'replace' } as const

it('replace runs the newest payload once, at the newest time', async () => {
  const { journal, jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  await khepri.dispatch('note', { text: 'first' }, { unique: 'k', delay: '10s' })
  expect(await khepri.dispatch('note', { text: 'second' }, { ...replacing, delay: '20s' })).toEqual({
    ...{ id: 1, duplicate: true, replaced: true },
  })
  await khepri.clock.advance('10s')
  expect(await khepri.runJobs()).toBe(0)
  await khepri.clock.advance('10s')
  expect(await khepri.runJobs()).toBe(1)
  expect(journal).toEqual(['second'])
})

it('replace on a job that runs, or waits for a retry, keeps it and says so', async () => {
  const { journal, jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  await khepri.dispatch('note', { text: 'fails' }, { unique: 'k' })
  await khepri.runJobs()
  expect(await khepri.dispatch('note', { text: 'new' }, replacing)).toMatchObject({ replaced: false })
  await khepri.runUntilIdle()
  expect(journal).toEqual(['fails', 'fails'])
})

it('error throws KEY_HELD with the id of the holder, and nothing of a dispatchMany is written', async () => {
  const { journal, jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  await khepri.dispatch('note', { text: 'first' }, { unique: 'k' })
  const refused = expect.objectContaining({
    code: 'KEY_HELD',
    message: expect.stringContaining('the live job 1 holds'),
  })
  await expect(khepri.dispatch('note', { text: 'x' }, { unique: 'k', onConflict: 'error' })).rejects.toThrow(refused)
  const many = khepri.dispatchMany([
    { job: 'note', payload: { text: 'never' } },
    { job: 'note', payload: { text: 'x' }, unique: 'k', onConflict: 'error' },
  ])
  await expect(many).rejects.toThrow(refused)
  await khepri.runUntilIdle()
  expect(journal).toEqual(['first'])
})

it('onConflict without a key, or with another word, is refused', async () => {
  const khepri = testKhepri({ jobs: aJournal().jobs })
  await expect(khepri.dispatch('note', { text: 'x' }, { onConflict: 'keep' })).rejects.toThrow(
    'onConflict is given without a unique key',
  )
  // @ts-expect-error: no such word
  await expect(khepri.dispatch('note', { text: 'x' }, { unique: 'k', onConflict: 'raise' })).rejects.toThrow(
    'onConflict must be "keep", "error" or "replace", got "raise"',
  )
})

it('in a transaction on SQLite an error leaves the transaction to the caller', async () => {
  using project = new TempProject()
  const { jobs } = aJournal()
  const khepri = createKhepri({ database: 'sqlite:./app.db', jobs }, { root: project.path })
  await khepri.migrate()
  const db = new Database(`${project.path}/app.db`)
  db.exec('create table users (name text)')
  await khepri.dispatch('note', { text: 'first' }, { unique: 'k', delay: '1h' })
  db.transaction(() => {
    db.prepare('insert into users values (?)').run('Ada')
    const refused = () => khepri.with(db).dispatchSync('note', { text: 'x' }, { unique: 'k', onConflict: 'error' })
    expect(refused).toThrow(expect.objectContaining({ code: 'KEY_HELD' }))
    expect(khepri.with(db).dispatchSync('note', { text: 'x' }, replacing)).toMatchObject({ id: 1, replaced: true })
  })()
  expect(db.prepare('select count(*) from users').pluck().get()).toBe(1)
  db.close()
  await khepri.close()
})

describe.skipIf(postgresSkipReason() !== null)('on Postgres', () => {
  async function anApplication() {
    const url = await migratedDatabase()
    const khepri = createKhepri({ database: url, jobs: aJournal().jobs })
    const sql = postgres(url, { max: 4, onnotice: () => {} })
    onTestFinished(async () => {
      await khepri.close()
      await sql.end({ timeout: 5 })
    })
    return { khepri, sql }
  }

  it('an error in a transaction of the caller does not break it, and a replacement is undone with it', async () => {
    const { khepri, sql } = await anApplication()
    await khepri.dispatch('note', { text: 'first' }, { unique: 'k', delay: '1h' })
    const undone = sql.begin(async (tx) => {
      const refused = khepri.with(tx).dispatch('note', { text: 'x' }, { unique: 'k', onConflict: 'error' })
      await expect(refused).rejects.toThrow(expect.objectContaining({ code: 'KEY_HELD' }))
      const replaced = await khepri.with(tx).dispatch('note', { text: 'second' }, replacing)
      expect(replaced).toEqual({ id: 1, duplicate: true, replaced: true })
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    const [row] = await sql`select envelope from jobs`
    expect(JSON.parse(row?.envelope)).toMatchObject({ payload: { text: 'first' } })
  })

  it('20 replacements of one key at once leave one job, and every answer names it', async () => {
    const { khepri, sql } = await anApplication()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => khepri.dispatch('note', { text: `${index}` }, replacing)),
    )
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect(answers.filter(({ replaced }) => replaced)).toHaveLength(19)
    expect(await sql`select from jobs`).toHaveLength(1)
  })
})

it('a fake queue obeys onConflict', async () => {
  const khepri = testKhepri({ jobs: aJournal().jobs })
  using queue = fakeQueue(khepri)
  await khepri.dispatch('note', { text: 'first' }, { unique: 'k' })
  await khepri.dispatch('note', { text: 'second' }, replacing)
  await expect(khepri.dispatch('note', { text: 'x' }, { unique: 'k', onConflict: 'error' })).rejects.toThrow(
    'holds the unique key "k"',
  )
  queue.assertPushedCount(1)
  queue.assertPushed('note', ({ text }) => text === 'second')
})
