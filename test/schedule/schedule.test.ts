import { describe, expect, test } from 'vitest'
import { createKhepri } from '../../src/app.ts'
import type { ConfigInput } from '../../src/core/config.ts'
import { refuseInMemory } from '../../src/schedule/schedule.ts'

type Schedules = NonNullable<ConfigInput['schedules']>

const jobs = { note: () => {} }

async function read(schedules: unknown) {
  return createKhepri({ database: 'memory:', jobs, schedules: schedules as Schedules }).schedules()
}

async function refusal(schedules: unknown): Promise<string> {
  try {
    await read(schedules)
  } catch (error) {
    const { code, message } = error as { readonly code: string; readonly message: string }
    return `${code}: ${message}`
  }
  return 'accepted'
}

describe('a schedule is refused when the configuration is loaded', () => {
  test.each([
    [{ a: 7 }, 'schedules.a must be an object with a job and cron, every or dailyAt, got 7'],
    [{ '': {} }, 'a name in schedules must be a name, got ""'],
    [{ a: { job: 'note', crom: '* * * * *' } }, 'unknown key "crom" in schedules.a. Did you mean "cron"?'],
    [{ a: { cron: '* * * * *' } }, 'schedules.a needs job, handle or exec, got none'],
    [{ a: { job: 'note', exec: './a.sh', every: '1m' } }, 'schedules.a needs job, handle or exec, got job and exec'],
    [{ a: { job: 'note', args: [], every: '1m' } }, 'schedules.a.args is for executables, and there is no exec'],
    [{ a: { handle: './a.ts', every: '1m' } }, 'schedules.a.handle must be a function, got "./a.ts"'],
    [{ a: { exec: '', every: '1m' } }, 'schedules.a.exec must be a path or a command, got ""'],
    [{ a: { job: 'note', tries: 0, every: '1m' } }, 'schedules.a.tries must be a whole number of at least 1, got 0'],
    [{ a: { job: 'note' } }, 'schedules.a: a schedule needs cron, every or dailyAt, got none'],
    [
      { a: { job: 'note', cron: '0 0 30 2 *' } },
      'schedules.a: the cron expression "0 0 30 2 *" can never fire: no month that it names has such a day',
    ],
    [
      { a: { job: 'note', every: '1m', misfire: 'twice' } },
      'schedules.a: misfire must be "once", "skip" or { catchUp: n }, got "twice"',
    ],
    [
      { a: { job: 'note', every: '1m', misfire: { catchUp: 0 } } },
      'schedules.a: misfire.catchUp must be a whole number from 1 to 1000, got 0',
    ],
    [
      { a: { job: 'note', every: '1m', overlap: 'maybe' } },
      'schedules.a: overlap must be "skip" or "allow" or "queue", got "maybe"',
    ],
    [
      { a: { job: 'note', every: '1m', whilePaused: true } },
      'schedules.a: whilePaused must be "enqueue" or "hold", got true',
    ],
    [{ a: { job: 'note', every: '1m', enabled: 'yes' } }, 'schedules.a: enabled must be true or false, got "yes"'],
    [
      { a: { job: 'note', every: '1m', jitter: '-1s' } },
      'schedules.a: jitter must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got "-1s"',
    ],
  ])('%j', async (schedules, message) => {
    expect(await refusal(schedules)).toBe(`CONFIG_INVALID: ${message}`)
  })

  test('a list is no set of schedules', async () => {
    expect(await refusal([])).toMatch(/^CONFIG_INVALID: schedules must be an object such as/)
  })

  test('one with a handler of its own and the name of a job is refused with both sources', async () => {
    const app = createKhepri({ database: 'memory:', jobs, schedules: { note: { handle: () => {}, every: '1m' } } })
    await expect(app.registry()).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/^job "note" has two handlers/),
    })
  })
})

test('a program is told of an invalid schedule when it begins to work, whether or not it looks after them', async () => {
  const app = createKhepri({ database: 'memory:', jobs, schedules: { a: { job: 'note', cron: '0 0 30 2 *' } } })
  await expect(app.work()).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  await app.close()
})

test('what is not said has its default', async () => {
  const [schedule] = await read({ a: { job: 'note', every: '1m' } })
  expect(schedule).toMatchObject({
    ...{ name: 'a', job: 'note', payloadText: '{}', terms: {}, offsetMs: 0, misfire: 'once', overlap: 'skip' },
    ...{ whilePaused: 'enqueue', enabled: true, ephemeral: false, description: null },
  })
  expect(schedule?.cadence.zone).toBe('UTC')
})

test('catching up allows its runs to overlap, unless the definition says otherwise', async () => {
  const misfire = { catchUp: 3 }
  const [plain, strict] = await read({
    a: { job: 'note', every: '1m', misfire },
    b: { job: 'note', every: '1m', misfire, overlap: 'skip' },
  })
  expect([plain?.overlap, strict?.overlap]).toEqual(['allow', 'skip'])
})

test('two definitions are the same text whatever the order of their keys, and another one for any change', async () => {
  const [one, two, ...others] = await read({
    a: { job: 'note', every: '1m', tries: 3, queue: 'mail', payload: { n: 1 } },
    b: { payload: { n: 1 }, queue: 'mail', tries: 3, every: '1m', job: 'note' },
    c: { job: 'note', every: '1m', tries: 3, queue: 'mail', payload: { n: 2 } },
    d: { job: 'note', every: '2m', tries: 3, queue: 'mail', payload: { n: 1 } },
    e: { job: 'note', every: '1m', tries: 4, queue: 'mail', payload: { n: 1 } },
    f: { job: 'note', every: '1m', tries: 3, queue: 'mail', payload: { n: 1 }, overlap: 'queue' },
    g: { job: 'note', every: '1m', tries: 3, queue: 'mail', payload: { n: 1 }, enabled: false },
  })
  expect(two?.stored.definition).toBe(one?.stored.definition)
  expect(new Set([one, ...others].map((schedule) => schedule?.stored.definition)).size).toBe(6)
})

describe('in memory', () => {
  test('schedules are refused in production, unless they are declared ephemeral or are not enabled', async () => {
    const [lone, ...fine] = await read({
      a: { job: 'note', every: '1m' },
      b: { job: 'note', every: '1m', ephemeral: true },
      c: { job: 'note', every: '1m', enabled: false },
    })
    expect(() => refuseInMemory(lone ? [lone, ...fine] : [], 'production')).toThrow(
      'schedules.a is in memory, and this is production: every process would fire its own',
    )
    expect(() => refuseInMemory(fine, 'production')).not.toThrow()
    expect(() => refuseInMemory(lone ? [lone] : [], undefined)).not.toThrow()
  })
})

test('the queues that schedules name are served by a worker that is told none', async () => {
  const schedules = { a: { job: 'note', every: '1m', queue: 'reports' } } as const
  const app = createKhepri({ database: 'memory:', jobs, schedules })
  const worker = await app.work({ stopWhenEmpty: true })
  expect(worker.options.queues).toEqual([['default', 'reports']])
  await app.close()
})
