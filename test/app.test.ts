import { expect, it } from 'vitest'
import type { DispatchOptions } from '../src/core/dispatch-call.ts'
import type { WorkOptions } from '../src/core/work.ts'
import { createKhepri, defineJob, loadKhepri } from '../src/index.ts'
import { TempProject } from './support/temp-project.ts'

const note = defineJob({ async handle() {} })

const inMemory = () => createKhepri({ database: 'memory:', jobs: { note } })

/** A value that the types refuse, as a program in JavaScript would pass it. */
const untyped = <T>(value: unknown): T => value as T

const refusal = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) })

it('a misspelled term of defineJob is not ignored', () => {
  expect(() => defineJob(untyped<typeof note>({ trys: 3, handle() {} }))).toThrow(
    refusal('CONFIG_INVALID', 'unknown key "trys" in defineJob'),
  )
})

it('a misspelled option of dispatch, dispatchMany or pushRaw is not ignored', async () => {
  const khepri = inMemory()
  const misspelled = untyped<DispatchOptions>({ dely: '10m' })
  const wanted = refusal('DATA_INVALID', 'unknown key "dely"')
  await expect(khepri.dispatch('note', {}, misspelled)).rejects.toThrow(wanted)
  await expect(khepri.dispatchMany([{ job: 'note', payload: {}, ...misspelled }])).rejects.toThrow(wanted)
  await expect(khepri.pushRaw('{}', misspelled)).rejects.toThrow(wanted)
  await khepri.close()
})

it.each<[string, unknown, string]>([
  [
    'a misspelled one',
    { concurency: 4 },
    'unknown key "concurency" in the options of work. Did you mean "concurrency"?',
  ],
  ['a text for a number', { concurrency: 'x' }, 'concurrency must be a whole number of at least 1, got "x"'],
  ['one queue for groups of them', { queues: 'default' }, 'queues must be "all" or a list of groups'],
  ['names for groups', { queues: ['default'] }, 'queues must be "all" or a list of groups'],
  ['a queue that cannot be', { queues: [['a,b']] }, 'a name in queues must be one name without a comma'],
  ['a duration with a unit', { sleepMs: '1s' }, 'sleepMs must be a number of milliseconds, got "1s"'],
  ['an object of limits', { queueLimits: { mail: 8 } }, 'queueLimits must be a Map'],
  ['a limit of nothing', { queueLimits: new Map([['mail', 0]]) }, 'queueLimits of mail must be a whole number'],
  ['a word for a truth', { once: 'yes' }, 'once must be true or false, got "yes"'],
  ['a name for a list of names', { only: 'note' }, 'only must be a list of job names'],
  ['a backoff in words', { backoff: '10s' }, 'backoff must be an object'],
])('an option of work is not taken unchecked: %s', async (_, options, message) => {
  const khepri = inMemory()
  await expect(khepri.work(untyped<Partial<WorkOptions>>(options))).rejects.toThrow(refusal('DATA_INVALID', message))
  await khepri.close()
})

it('an unknown part of createKhepri is not ignored', () => {
  expect(() => createKhepri({ database: 'memory:' }, untyped({ clok: 1 }))).toThrow(
    refusal('CONFIG_INVALID', 'unknown key "clok" in the parts. Did you mean "clock"?'),
  )
})

it('a database that is undefined does not become a file in the working directory', () => {
  expect(() => createKhepri(untyped({ database: process.env.NO_SUCH_VARIABLE }))).toThrow(
    refusal('CONFIG_INVALID', 'database is given and is undefined'),
  )
})

it('an object with a handler that defineJob has not seen is refused at construction', () => {
  expect(() => createKhepri({ jobs: untyped({ b: { async handle() {} } }) })).toThrow(
    expect.objectContaining({ message: 'jobs.b has a handle and is no job yet', fix: 'wrap it in defineJob(…)' }),
  )
})

it('a payload that is not given is {}, as on the command line', async () => {
  const khepri = inMemory()
  const payloads: unknown[] = []
  const seen = createKhepri({ database: 'memory:', jobs: { seen: (payload: unknown) => payloads.push(payload) } })
  await seen.dispatch('seen')
  await (await seen.work({ stopWhenEmpty: true })).finished
  expect(payloads).toEqual([{}])
  await Promise.all([khepri.close(), seen.close()])
})

it('after close() nothing opens the database again', async () => {
  const khepri = inMemory()
  await khepri.dispatch('note')
  await khepri.close()
  const closed = refusal('USAGE', 'this khepri was closed')
  await expect(khepri.dispatch('note')).rejects.toThrow(closed)
  await expect(khepri.work()).rejects.toThrow(closed)
  await expect(khepri.admin()).rejects.toThrow(closed)
  await khepri.close()
})

it('while close() drains its workers their handlers may still dispatch', async () => {
  const started = Promise.withResolvers<void>()
  const khepri = createKhepri({
    database: 'memory:',
    jobs: {
      first: async () => {
        started.resolve()
        await closing.promise
        await khepri.dispatch('second')
        done.push('first')
      },
      second: async () => {},
    },
  })
  const closing = Promise.withResolvers<void>()
  const done: string[] = []
  await khepri.dispatch('first')
  await khepri.work()
  await started.promise
  const closed = khepri.close()
  closing.resolve()
  await closed
  expect(done).toEqual(['first'])
})

it('a schema beside an SQLite file is not silently without effect', () => {
  expect(() => createKhepri({ database: 'sqlite:./khepri.db', schema: 'mail' })).toThrow(
    refusal('CONFIG_INVALID', 'schema is for Postgres only'),
  )
})

it('a missing schema of tables with other names is not told without these names', async () => {
  using project = new TempProject({ 'khepri.db': '' })
  const khepri = createKhepri({ database: 'sqlite:./khepri.db', table: 'mail_jobs' }, { root: project.path })
  await expect(khepri.store()).rejects.toThrow('the schema of sqlite:./khepri.db (table mail_jobs) is missing')
})

it('loadKhepri finds the configuration of a folder as the command line does', async () => {
  using project = new TempProject({ 'package.json': '{}', 'khepri.config.json': '{"database":"memory:","tries":7}' })
  const khepri = await loadKhepri({ cwd: project.path })
  expect(khepri.config).toMatchObject({ tries: 7, database: { kind: 'memory' } })
  await khepri.close()
})
