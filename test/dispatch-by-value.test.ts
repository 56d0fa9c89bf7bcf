import { describe, expect, it } from 'vitest'
import { createKhepri, defineJob, Job, type Khepri } from '../src/index.ts'
import { TempProject } from './support/temp-project.ts'

class SendWelcome extends Job {
  static override readonly queue = 'mail'
  readonly userId: number

  constructor(userId: number) {
    super()
    this.userId = userId
  }

  async handle(): Promise<void> {}
}

class Shout extends Job {
  readonly text: string

  constructor(text: string) {
    super()
    this.text = text
  }

  override toPayload(): { readonly loud: string } {
    return { loud: this.text.toUpperCase() }
  }

  async handle(): Promise<void> {}
}

class Stranger extends Job {
  readonly userId = 7
  async handle(): Promise<void> {}
}

const resize = defineJob<{ readonly width: number }>({ queue: 'images', handle() {} })
const note = (_payload: { readonly text: string }): void => {}
const jobs = { 'send-welcome': SendWelcome, shout: Shout, resize, note }

const inMemory = () => createKhepri({ database: 'memory:', jobs })

/** A value that the types refuse, as a program in JavaScript would pass it. */
const untyped = <T>(value: unknown): T => value as T

/** The name, queue and payload of everything that waits, in the order of dispatch. */
async function waiting<Jobs extends Record<string, unknown>>(khepri: Khepri<Jobs>): Promise<readonly unknown[]> {
  const store = await khepri.store()
  const { reserved } = await store.exchange({
    ...{ worker: 1, settle: [], enqueue: [], start: [], disown: [] },
    reserve: {
      ...{ queues: 'all', exceptQueues: [], only: null, except: [], exclude: [], maxVersion: 1, suspects: true },
      ...{ limit: 10, maxBytes: 1_000_000, batch: 1, started: 10, sleepMs: null },
    },
  })
  return reserved.map(({ job, queue, envelope }) => [
    job,
    queue,
    (JSON.parse(envelope) as { payload: unknown }).payload,
  ])
}

it('an instance of a class is dispatched under the name of its class, and its properties are the payload', async () => {
  await using khepri = closing(inMemory())
  expect(await khepri.app.dispatch(new SendWelcome(7))).toEqual({ id: 1, duplicate: false })
  expect(await waiting(khepri.app)).toEqual([['send-welcome', 'mail', { userId: 7 }]])
})

it('what toPayload of an instance answers is stored instead of its properties', async () => {
  await using khepri = closing(inMemory())
  await khepri.app.dispatch(new Shout('hello'))
  expect(await waiting(khepri.app)).toEqual([['shout', 'default', { loud: 'HELLO' }]])
})

it('the options of an instance come second, those of a value third', async () => {
  await using khepri = closing(inMemory())
  await khepri.app.dispatch(new SendWelcome(7), { queue: 'slow' })
  await khepri.app.dispatch(resize, { width: 80 }, { queue: 'fast' })
  expect(await waiting(khepri.app)).toEqual(
    expect.arrayContaining([
      ['send-welcome', 'slow', { userId: 7 }],
      ['resize', 'fast', { width: 80 }],
    ]),
  )
})

it('a definition, a function and a class are dispatched by value with a payload', async () => {
  await using khepri = closing(inMemory())
  await khepri.app.dispatch(resize, { width: 80 })
  await khepri.app.dispatch(note, { text: 'hello' })
  await khepri.app.dispatch(SendWelcome, { userId: 7 })
  expect(await waiting(khepri.app)).toEqual(
    expect.arrayContaining([
      ['resize', 'images', { width: 80 }],
      ['note', 'default', { text: 'hello' }],
      ['send-welcome', 'mail', { userId: 7 }],
    ]),
  )
})

it('an instance that a worker runs is rebuilt with its properties', async () => {
  const greeted: unknown[] = []
  class Greet extends Job {
    readonly userId: number
    constructor(userId: number) {
      super()
      this.userId = userId
    }
    handle(): void {
      greeted.push(this.userId)
    }
  }
  await using khepri = closing(createKhepri({ database: 'memory:', jobs: { greet: Greet } }))
  await khepri.app.dispatch(new Greet(7))
  await (await khepri.app.work({ stopWhenEmpty: true })).finished
  expect(greeted).toEqual([7])
})

it.each<[string, unknown, string]>([
  ['an instance of a class', new Stranger(), 'an instance of Stranger is not one of the values in jobs'],
  ['a class', Stranger, 'Stranger is not one of the values in jobs'],
  ['a definition', defineJob({ handle() {} }), 'a job definition is not one of the values in jobs'],
  ['a number', 7, 'a number is not one of the values in jobs'],
  ['nothing', undefined, 'undefined is not one of the values in jobs'],
])('%s that jobs does not hold is refused with a way out', async (_, job, message) => {
  await using khepri = closing(inMemory())
  await expect(khepri.app.dispatch(untyped<typeof resize>(job), { width: 1 })).rejects.toThrow(
    expect.objectContaining({ code: 'JOB_UNKNOWN', message, fix: expect.stringContaining('dispatched by its name') }),
  )
})

it('a job that is registered by its path is not found by its value', async () => {
  using project = new TempProject({ 'jobs/later.mjs': 'export default () => {}' })
  const options = { root: project.path }
  await using khepri = closing(createKhepri({ database: 'memory:', jobs: { later: './jobs/later.mjs' } }, options))
  await expect(khepri.app.dispatch(untyped<never>(note))).rejects.toThrow('note is not one of the values in jobs')
  expect(await khepri.app.dispatch('later')).toEqual({ id: 1, duplicate: false })
})

it('what is no object in the place of the options is refused', async () => {
  await using khepri = closing(inMemory())
  await expect(khepri.app.dispatch(new SendWelcome(7), untyped<object>('10m'))).rejects.toThrow(
    'the options of dispatch must be an object, got a string',
  )
})

describe('the types', () => {
  /** Compiled and never run: what the compiler refuses here is what it refuses in an application. */
  const program = async (khepri: ReturnType<typeof inMemory>, anyJobs: Khepri): Promise<void> => {
    await khepri.dispatch('resize', { width: 80 })
    await khepri.dispatch(resize, { width: 80 }, { delay: '10m' })
    await khepri.dispatch(new SendWelcome(7), { delay: '10m' })
    await anyJobs.dispatch('resize', { width: 80 })
    await anyJobs.dispatch(resize, { width: 80 })
    await anyJobs.dispatch(new Stranger())
    // @ts-expect-error: the payload of a name is typed by its job
    await khepri.dispatch('resize', { width: '80' })
    // @ts-expect-error: the payload of a definition is typed by it
    await khepri.dispatch(resize, { width: '80' })
    // @ts-expect-error: a payload that may not be {} must be given
    await khepri.dispatch(resize)
    // @ts-expect-error: the payload of a function is its parameter
    await khepri.dispatch(note, { text: 7 })
    // @ts-expect-error: the payload of a class is its properties
    await khepri.dispatch(SendWelcome, { userId: '7' })
    // @ts-expect-error: an instance brings its payload itself
    await khepri.dispatch(new SendWelcome(7), { userId: 7 })
    // @ts-expect-error: a definition that jobs does not hold
    await khepri.dispatch(defineJob<{ readonly other: string }>({ handle() {} }), { other: 'x' })
    // @ts-expect-error: no job has this name
    await khepri.dispatch('resise', { width: 80 })
    // @ts-expect-error: also where the jobs are not known the payload of a value is typed by it
    await anyJobs.dispatch(resize, { width: '80' })
  }

  it('are held by the compiler', () => {
    expect(program).toBeTypeOf('function')
  })
})

/** Closes an installation at the end of a test. */
function closing<Jobs extends Record<string, unknown>>(app: Khepri<Jobs>) {
  return { app, [Symbol.asyncDispose]: () => app.close() }
}
