import Database from 'better-sqlite3'
import postgres from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createKhepri, defineJob, type Khepri } from '../src/index.ts'
import { testKhepri } from '../src/testing/index.ts'
import { migratedDatabase } from './core/store/postgres-support.ts'
import { postgresSkipReason } from './support/postgres.ts'
import { TempProject } from './support/temp-project.ts'

/** A job that writes down its payloads, and one that says what follows it. */
function aJournal() {
  const journal: string[] = []
  const note = defineJob<{ readonly text: string }>({
    handle({ text }) {
      journal.push(text)
      if (text.startsWith('broken')) throw new Error(text)
    },
  })
  const lead = defineJob<{ readonly fails?: boolean }>({
    async handle({ fails = false }, { next }) {
      journal.push('lead')
      await next(note, { text: 'followed' })
      if (fails) throw new Error('after all')
    },
  })
  return { journal, jobs: { note, lead } }
}

const tooMany = Array.from({ length: 1_001 }, (_, index) => index + 1)

describe('after', () => {
  it('lets jobs run one after the other, whatever their order of dispatch and priority', async () => {
    const { journal, jobs } = aJournal()
    const khepri = testKhepri({ jobs })
    const first = await khepri.dispatch('note', { text: 'first' }, { delay: '1h' })
    const second = await khepri.dispatch('note', { text: 'second' }, { after: first.id, priority: -9 })
    await khepri.dispatch('note', { text: 'third' }, { after: [first.id, second.id] })
    expect(await khepri.runJobs()).toBe(0)
    expect(await khepri.runUntilIdle()).toBe(3)
    expect(journal).toEqual(['first', 'second', 'third'])
  })

  it.each([
    ['wait', ['broken']],
    ['cancel', ['broken']],
    ['run', ['broken', 'child']],
  ] as const)('with onParentFailure %j leads to %j where the parent fails', async (onParentFailure, ran) => {
    const { journal, jobs } = aJournal()
    const khepri = testKhepri({ jobs })
    const { id } = await khepri.dispatch('note', { text: 'broken' })
    await khepri.dispatch('note', { text: 'child' }, { after: id, onParentFailure })
    await khepri.runUntilIdle()
    expect(journal).toEqual(ran)
  })

  it('is refused for an id that was never given out, and with it every job of the call', async () => {
    const khepri = testKhepri({ jobs: aJournal().jobs })
    const text = 'never'
    const many = khepri.dispatchMany([
      { job: 'note', payload: { text } },
      { job: 'note', payload: { text }, after: 7 },
    ])
    await expect(many).rejects.toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('job 7') })
    expect(await khepri.runJobs()).toBe(0)
  })

  it.each([
    [{ after: 'first' }, /^after must be a whole number of at least 1/],
    [{ after: [1, 0] }, /^after must be a whole number of at least 1/],
    [{ onParentFailure: 'run' }, /^onParentFailure is given without after/],
    [{ after: 1, onParentFailure: 'hope' }, /^onParentFailure must be "wait", "cancel" or "run", got "hope"/],
    [{ after: 1, unique: 'k', onConflict: 'replace' }, /^after and onConflict: "replace" exclude each other/],
    [{ after: tooMany }, /^after names 1001 jobs, at most 1000/],
  ])('refuses what makes no sense, case %#', async (options, message) => {
    const khepri = testKhepri({ jobs: aJournal().jobs })
    await expect(khepri.dispatch('note', { text: 'x' }, options as never)).rejects.toThrow(
      expect.objectContaining({ code: 'DATA_INVALID', message: expect.stringMatching(message) }),
    )
  })
})

describe('next', () => {
  it('dispatches with the completion, and not where the attempt fails', async () => {
    const { journal, jobs } = aJournal()
    const khepri = testKhepri({ jobs })
    await khepri.dispatch('lead', { fails: true })
    await khepri.runUntilIdle()
    expect(journal).toEqual(['lead'])

    await khepri.dispatch('lead', {})
    await khepri.runUntilIdle()
    expect(journal).toEqual(['lead', 'lead', 'followed'])
  })

  it('fails the attempt where the job is refused, also where nobody waits for it', async () => {
    const lead = defineJob({ handle: (_, { next }) => void next('unknown') })
    const khepri = testKhepri({ jobs: { lead } })
    await khepri.dispatch('lead')
    await khepri.runJobs()
    expect(await khepri.failedJobs()).toMatchObject([{ error: expect.stringContaining('unknown job "unknown"') }])
  })

  it('takes no options of a dispatch that stands alone', async () => {
    const { jobs } = aJournal()
    const lead = defineJob({ handle: (_, { next }) => next('note', { text: 'x' }, { after: 1 } as never) })
    const outcome = await testKhepri({ jobs: { ...jobs, lead } }).runJob('lead')
    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'DATA_INVALID' } })
  })

  it('is told by runJob and written nowhere', async () => {
    const { jobs } = aJournal()
    const khepri = testKhepri({ jobs })
    expect(await khepri.runJob('lead', {})).toMatchObject({
      kind: 'done',
      next: [{ job: 'note', payload: { text: 'followed' } }],
    })
    expect(await khepri.runJobs()).toBe(0)
  })

  it('is heard as enqueued in the process of its worker', async () => {
    const { jobs } = aJournal()
    const khepri = testKhepri({ jobs })
    const heard: unknown[] = []
    await khepri.dispatch('lead', {})
    khepri.events.on('job.enqueued', (job) => heard.push(job))
    await khepri.runJobs()
    expect(heard).toEqual([{ id: 2, job: 'note', queue: 'default' }])
  })
})

interface Opened {
  readonly khepri: Khepri
  /** Dispatches a parent and a child in a transaction of the caller's; answers what the callback does in it. */
  readonly inTransaction: (commit: boolean) => Promise<void>
}

async function onSqlite(): Promise<Opened & { readonly journal: readonly string[] }> {
  const { journal, jobs } = aJournal()
  const project = new TempProject()
  onTestFinished(() => project[Symbol.dispose]())
  const khepri = createKhepri({ database: 'sqlite:./test.db', jobs }, { root: project.path })
  onTestFinished(() => khepri.close())
  await khepri.migrate()
  const db = new Database(`${project.path}/test.db`)
  onTestFinished(() => void db.close())
  const inTransaction = async (commit: boolean): Promise<void> => {
    db.exec('begin immediate')
    const { id } = khepri.with(db).dispatchSync('note', { text: 'parent' })
    khepri.with(db).dispatchSync('note', { text: 'child' }, { after: id })
    db.exec(commit ? 'commit' : 'rollback')
  }
  return { khepri: khepri as unknown as Khepri, journal, inTransaction }
}

async function onPostgres(): Promise<Opened & { readonly journal: readonly string[] }> {
  const { journal, jobs } = aJournal()
  const url = await migratedDatabase()
  const khepri = createKhepri({ database: url, jobs })
  onTestFinished(() => khepri.close())
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  onTestFinished(() => sql.end())
  const inTransaction = async (commit: boolean): Promise<void> => {
    const rollback = new Error('rolled back')
    await sql
      .begin(async (tx) => {
        const { id } = await khepri.with(tx).dispatch('note', { text: 'parent' })
        await khepri.with(tx).dispatch('note', { text: 'child' }, { after: id })
        if (!commit) throw rollback
      })
      .catch((error: unknown) => expect(error).toBe(rollback))
  }
  return { khepri: khepri as unknown as Khepri, journal, inTransaction }
}

describe.each([
  ['sqlite', onSqlite, null],
  ['postgres', onPostgres, postgresSkipReason()],
] as const)('a transaction of the caller on %s', (_, open, missing) => {
  it.skipIf(missing !== null)('takes a job and what waits for it, or neither', async () => {
    const { khepri, journal, inTransaction } = await open()
    await inTransaction(false)
    await inTransaction(true)
    await (await khepri.work({ stopWhenEmpty: true })).finished
    expect(journal).toEqual(['parent', 'child'])
  })

  it.skipIf(missing !== null)(
    'leaves nothing waiting for a job that was cancelled, even where each worker lives for a moment',
    async () => {
      const { khepri, journal } = await open()
      const { id } = await khepri.dispatch('note', { text: 'parent' }, { delay: '1h' })
      await khepri.dispatch('note', { text: 'child' }, { after: id, onParentFailure: 'run' })
      await khepri.dispatch('note', { text: 'called off' }, { after: id })
      const admin = await khepri.admin()
      await admin.cancel([id])
      await (await khepri.work({ stopWhenEmpty: true })).finished
      expect(journal).toEqual(['child'])
      expect(await admin.counts()).toEqual([])
    },
  )

  it.skipIf(missing !== null)('hears of a job that was never given out, and nothing is written', async () => {
    const { khepri } = await open()
    await expect(khepri.dispatch('note', { text: 'x' }, { after: 1_000 })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await (await khepri.admin()).counts()).toEqual([])
  })
})
