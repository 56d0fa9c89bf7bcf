import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Config, type ConfigInput, defineConfig, loadConfig, resolveConfig } from '../../src/core/config.ts'
import { configKeys } from '../../src/core/config-keys.ts'
import { environmentVariables } from '../../src/core/environment.ts'
import { TempProject } from '../support/temp-project.ts'

const resolve = (input: object, env: Record<string, string> = {}): Config =>
  resolveConfig(input as ConfigInput, { root: '/srv/app', file: '/srv/app/khepri.config.ts', env, flags: {} })

const load = (
  cwd: string,
  more: { flags?: { config?: string; database?: string }; env?: Record<string, string> } = {},
): Promise<Config> => loadConfig({ cwd, flags: {}, env: {}, ...more })

const invalid = (message: string): object => expect.objectContaining({ code: 'CONFIG_INVALID', message })

describe('resolveConfig', () => {
  test('without any setting gives every default', () => {
    expect(resolve({})).toEqual({
      file: '/srv/app/khepri.config.ts',
      root: '/srv/app',
      database: { kind: 'sqlite', path: '/srv/app/khepri.db', label: 'sqlite:./khepri.db' },
      table: 'jobs',
      failedTable: 'failed_jobs',
      schema: undefined,
      names: expect.objectContaining({ jobs: 'jobs', failed: 'failed_jobs', workers: 'jobs_workers' }),
      queue: 'default',
      queues: null,
      concurrency: null,
      retryAfterMs: 90_000,
      sleepMs: 1_000,
      timeoutMs: null,
      tries: 1,
      backoff: { kind: 'exponential', baseMs: 1_000, maxMs: 3_600_000, jitter: true },
      maxCrashes: 3,
      unknownJobs: 'fail',
      maxPayloadBytes: 1_048_576,
      keepDoneMs: null,
      keepFailedMs: null,
      keepCancelledMs: 604_800_000,
      prepare: true,
      role: 'both',
      ephemeral: false,
      scope: null,
      schedules: [],
      jobs: [],
      work: {},
    })
  })

  test('takes every key of the manual', () => {
    const config = resolve(
      defineConfig({
        database: 'postgres://app:s3cret@db1/app',
        table: 'work',
        failedTable: 'work_failed',
        schema: 'Tenant_1',
        queue: 'mail',
        queues: { critical: { concurrency: 8 }, default: {} },
        concurrency: 4,
        retryAfter: 30,
        sleep: '250ms',
        timeout: '5m',
        tries: 3,
        backoff: ['1s', '1m'],
        maxCrashes: 0,
        unknownJobs: 'wait',
        maxPayload: '512KiB',
        keepDone: '1d',
        keepFailed: '30d',
        keepCancelled: 0,
        prepare: false,
        jobs: ['./jobs', { report: './lib/report.ts' }],
      }),
    )
    expect(config).toMatchObject({
      database: { kind: 'postgres', label: 'postgres://app:***@db1:5432/app' },
      names: { jobs: 'work', failed: 'work_failed' },
      schema: 'Tenant_1',
      queues: [
        { name: 'critical', concurrency: 8 },
        { name: 'default', concurrency: null },
      ],
      retryAfterMs: 30_000,
      sleepMs: 250,
      timeoutMs: 300_000,
      backoff: { kind: 'list', delaysMs: [1_000, 60_000] },
      maxCrashes: 0,
      unknownJobs: 'wait',
      maxPayloadBytes: 524_288,
      keepDoneMs: 86_400_000,
      keepFailedMs: 2_592_000_000,
      keepCancelledMs: 0,
      prepare: false,
      jobs: [
        { kind: 'folder', path: '/srv/app/jobs', shown: './jobs' },
        { kind: 'map', entries: [['report', './lib/report.ts']] },
      ],
    })
  })

  test.each([
    [{ concurency: 4 }, 'unknown key "concurency". Did you mean "concurrency"?'],
    [{ concurrency: 'many' }, 'concurrency must be a whole number of at least 1, got "many"'],
    [{ concurrency: 0 }, 'concurrency must be a whole number of at least 1, got 0'],
    [
      { queues: { mail: { concurrency: 'many' } } },
      'queues.mail.concurrency must be a whole number of at least 1, got "many"',
    ],
    [{ queues: { mail: { concurency: 1 } } }, 'unknown key "concurency" in queues.mail. Did you mean "concurrency"?'],
    [{ queues: {} }, 'queues must be an object with at least one queue, got an object'],
    [{ queues: ['a'] }, 'queues must be an object such as { high: { concurrency: 8 }, default: {} }, got a list'],
    [{ queues: { 'a,b': {} } }, 'queues.a,b must be one name without a comma, got "a,b"'],
    [{ retryAfter: '0s' }, 'retryAfter must be at least 1s, got "0s"'],
    [{ retryAfter: '999ms' }, 'retryAfter must be at least 1s, got "999ms"'],
    [{ sleep: 'abc' }, 'sleep must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got "abc"'],
    [{ tries: 0 }, 'tries must be a whole number of at least 1, got 0'],
    [{ unknownJobs: 'skip' }, 'unknownJobs must be "fail" or "wait", got "skip"'],
    [
      { maxPayload: '1MiBs' },
      'maxPayload must be a size such as "1MiB" or "512KiB", at most 256MiB (a bare number is bytes), got "1MiBs"',
    ],
    [
      { maxPayload: '1GiB' },
      'maxPayload must be a size such as "1MiB" or "512KiB", at most 256MiB (a bare number is bytes), got "1GiB"',
    ],
    [
      { maxPayload: 0 },
      'maxPayload must be a size such as "1MiB" or "512KiB", at most 256MiB (a bare number is bytes), got 0',
    ],
    [{ prepare: 'no' }, 'prepare must be true or false, got "no"'],
    [{ schema: 'a"b' }, 'schema must be 1 to 63 letters, digits and _, not beginning with a digit, got "a\\"b"'],
    [{ table: 'Jobs; drop' }, 'table must be 1 to 40 of a-z, 0-9 and _, not beginning with a digit, got "Jobs; drop"'],
    [{ failedTable: 'jobs' }, 'failedTable "jobs" is a name that table "jobs" uses itself'],
    [{ jobs: 7 }, 'jobs must be a folder or a map from names to jobs, got 7'],
    [{ jobs: [['a']] }, 'jobs[0] must be a folder or a map from names to jobs, got a list'],
    [{ database: './khepri.db' }, expect.stringContaining('database must begin with a scheme')],
  ])('refuses %o', (input, message) => {
    expect(() => resolve(input)).toThrow(invalid(message as string))
  })

  test('says which file to edit', () => {
    expect(() => resolve({ tries: 0 })).toThrow(expect.objectContaining({ fix: 'edit /srv/app/khepri.config.ts' }))
  })

  test('reads sizes in both kinds of unit', () => {
    expect(
      ['100kB', '1KiB', '1.5MiB', 77, '77', '3 MB'].map((maxPayload) => resolve({ maxPayload }).maxPayloadBytes),
    ).toEqual([100_000, 1_024, 1_572_864, 77, 77, 3_000_000])
  })
})

describe('environment', () => {
  test('outranks the config, for every setting that is one value', () => {
    const env = {
      KHEPRI_DATABASE_URL: 'sqlite:./env.db',
      KHEPRI_TABLE: 'env_jobs',
      KHEPRI_FAILED_TABLE: 'env_failed',
      KHEPRI_SCHEMA: 'env',
      KHEPRI_QUEUE: 'env',
      KHEPRI_CONCURRENCY: '7',
      KHEPRI_RETRY_AFTER: '7',
      KHEPRI_SLEEP: '7s',
      KHEPRI_TIMEOUT: '7m',
      KHEPRI_TRIES: '7',
      KHEPRI_BACKOFF: '7s,1m',
      KHEPRI_MAX_CRASHES: '0',
      KHEPRI_UNKNOWN_JOBS: 'wait',
      KHEPRI_MAX_PAYLOAD: '7KiB',
      KHEPRI_KEEP_DONE: '7d',
      KHEPRI_KEEP_FAILED: '7h',
      KHEPRI_KEEP_CANCELLED: '7w',
      KHEPRI_PREPARE: 'false',
      KHEPRI_ROLE: 'worker',
      KHEPRI_EPHEMERAL: 'true',
    }
    expect(
      resolve({ concurrency: 1, queue: 'config', tries: 2, database: 'memory:', timeout: '1s' }, env),
    ).toMatchObject({
      database: { path: '/srv/app/env.db' },
      names: { jobs: 'env_jobs', failed: 'env_failed' },
      schema: 'env',
      queue: 'env',
      concurrency: 7,
      retryAfterMs: 7_000,
      sleepMs: 7_000,
      timeoutMs: 420_000,
      tries: 7,
      backoff: { kind: 'list', delaysMs: [7_000, 60_000] },
      maxCrashes: 0,
      unknownJobs: 'wait',
      maxPayloadBytes: 7_168,
      keepDoneMs: 604_800_000,
      keepFailedMs: 25_200_000,
      keepCancelledMs: 4_233_600_000,
      prepare: false,
      role: 'worker',
      ephemeral: true,
    })
    const settings = environmentVariables.filter(
      ({ name }) => !name.startsWith('KHEPRI_WORK_') && name !== 'KHEPRI_CONFIG',
    )
    expect(settings.map(({ name }) => name)).toEqual(Object.keys(env))
  })

  test.each([
    [{ KHEPRI_CONCURRENCY: 'many' }, 'KHEPRI_CONCURRENCY must be a whole number of at least 1, got "many"'],
    [{ KHEPRI_TRIES: '-1' }, 'KHEPRI_TRIES must be a whole number of at least 1, got "-1"'],
    [{ KHEPRI_PREPARE: 'yes' }, 'KHEPRI_PREPARE must be true or false, got "yes"'],
    [{ KHEPRI_DATABASE_URL: '' }, 'KHEPRI_DATABASE_URL is set but empty'],
    [
      { KHEPRI_SLEEP: 'abc' },
      'KHEPRI_SLEEP must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got "abc"',
    ],
  ])('refuses %o', (env, message) => {
    expect(() => resolve({}, env as Record<string, string>)).toThrow(invalid(message))
  })

  test('never reads KHEPRI_JOB_ variables and ignores unknown ones', () => {
    const env = {
      KHEPRI_JOB_QUEUE: 'evil',
      KHEPRI_JOB_TRIES: 'x',
      KHEPRI_NONSENSE: 'x',
      KHEPRI_JOBS: 'x',
      KHEPRI_QUEUES: 'x',
    }
    expect(resolve({}, env)).toEqual(resolve({}))
    expect(environmentVariables.filter(({ name }) => name.startsWith('KHEPRI_JOB'))).toEqual([])
  })

  test('hands KHEPRI_WORK_<FLAG> to the command line, settings only', () => {
    const env = {
      KHEPRI_WORK_QUEUE: 'high,default',
      KHEPRI_WORK_MAX_JOBS: '5',
      KHEPRI_WORK_JOB: 'a',
      KHEPRI_WORK_ALL: 'true',
    }
    expect(resolve({}, env).work).toEqual({ queue: 'high,default', 'max-jobs': '5' })
  })

  test('lists each variable once, with its meaning', () => {
    expect(new Set(environmentVariables.map(({ name }) => name)).size).toBe(environmentVariables.length)
    expect(environmentVariables.every(({ what }) => what.length > 5)).toBe(true)
  })
})

describe('loadConfig', () => {
  test('without a config takes defaults and the working directory', async () => {
    using project = new TempProject({ 'package.json': '{}' })
    expect(await load(project.path)).toMatchObject({
      file: null,
      root: project.path,
      database: { path: join(project.path, 'khepri.db') },
    })
  })

  test('finds the config upward, and its paths start at its folder', async () => {
    using project = new TempProject({ 'khepri.config.json': '{"database":"sqlite:./q.db"}', 'package.json': '{}' })
    mkdirSync(join(project.path, 'a/b'), { recursive: true })
    for (const cwd of [project.path, join(project.path, 'a/b')])
      expect(await load(cwd)).toMatchObject({
        root: project.path,
        database: { path: join(project.path, 'q.db'), label: 'sqlite:./q.db' },
      })
  })

  test.each(['package.json', '.git/HEAD'])('does not search above a folder with %s', async (border) => {
    using project = new TempProject({
      'khepri.config.json': '{"queue":"outer"}',
      [`inner/${border}`]: '{}',
      'inner/deep/x': '',
    })
    expect((await load(join(project.path, 'inner/deep'))).file).toBeNull()
  })

  test('takes --config before KHEPRI_CONFIG before the search, relative to the working directory', async () => {
    using project = new TempProject({
      'khepri.config.json': '{"queue":"found"}',
      'a.json': '{"queue":"flag"}',
      'b.json': '{"queue":"env"}',
    })
    const env = { KHEPRI_CONFIG: './b.json' }
    expect((await load(project.path)).queue).toBe('found')
    expect((await load(project.path, { env })).queue).toBe('env')
    expect((await load(project.path, { env, flags: { config: 'a.json' } })).queue).toBe('flag')
  })

  test('takes --database before KHEPRI_DATABASE_URL before the config; a path in the flag starts at the working directory', async () => {
    using project = new TempProject({ 'khepri.config.json': '{"database":"sqlite:./config.db"}', 'sub/x': '' })
    const cwd = join(project.path, 'sub')
    const env = { KHEPRI_DATABASE_URL: 'sqlite:./env.db' }
    expect((await load(cwd)).database).toMatchObject({ path: join(project.path, 'config.db') })
    expect((await load(cwd, { env })).database).toMatchObject({ path: join(project.path, 'env.db') })
    expect((await load(cwd, { env, flags: { database: 'sqlite:./flag.db' } })).database).toMatchObject({
      path: join(cwd, 'flag.db'),
    })
  })

  test('a bad --database is wrong usage', async () => {
    using project = new TempProject()
    await expect(load(project.path, { flags: { database: 'mysql://x' } })).rejects.toMatchObject({
      code: 'USAGE',
      message: '--database: no store for "mysql:"',
    })
  })

  test('refuses two configurations in one folder', async () => {
    using project = new TempProject({ 'khepri.config.json': '{}', 'khepri.config.mjs': '' })
    await expect(load(project.path)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: `${project.path} has two configurations: khepri.config.mjs and khepri.config.json`,
    })
  })

  test('names a config that does not exist', async () => {
    using project = new TempProject()
    await expect(load(project.path, { flags: { config: 'nope.ts' } })).rejects.toMatchObject({
      code: 'CONFIG_MISSING',
      message: 'the configuration nope.ts does not exist',
    })
    await expect(load(project.path, { flags: { config: '.' } })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  test.each([
    [
      '{\n  "queue": "a" "tries": 2\n}',
      'khepri.config.json:2:16: expected \',\' or \'}\' after a value\n  2 |   "queue": "a" "tries": 2\n    |                ^',
    ],
    [
      '{"jobs":{"a":"./a.ts","a":"./b.ts"}}',
      'khepri.config.json:1:23: "a" stands here a second time\n  1 | {"jobs":{"a":"./a.ts","a":"./b.ts"}}\n    |                       ^',
    ],
    ['[]', 'khepri.config.json must hold an object, got a list'],
    [`{"jobs":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, 'khepri.config.json is nested more than 100 levels deep'],
    ['', 'khepri.config.json:1:1: expected a JSON value, but the text ends\n  1 |\n    | ^'],
  ])('refuses the JSON config %.40s with its place', async (text, message) => {
    using project = new TempProject({ 'khepri.config.json': text })
    await expect(load(project.path)).rejects.toMatchObject({ code: 'CONFIG_INVALID', message })
  })

  test('a JSON config may begin with a byte order mark, and must be UTF-8', async () => {
    using project = new TempProject({ 'khepri.config.json': '\ufeff{"queue":"mail"}' })
    expect((await load(project.path)).queue).toBe('mail')
    project.write('khepri.config.json', Buffer.from([0x7b, 0xff, 0x7d]))
    await expect(load(project.path)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: 'khepri.config.json is not UTF-8',
    })
  })

  test('takes ./jobs if it exists and nothing is said about jobs', async () => {
    using project = new TempProject({ 'khepri.config.json': '{}', 'jobs/a.mjs': '' })
    expect((await load(project.path)).jobs).toEqual([
      { kind: 'folder', path: join(project.path, 'jobs'), shown: './jobs' },
    ])
  })
})

describe('ownership', () => {
  test('refuses a config, and a folder of one, that all may write', async () => {
    using project = new TempProject({ 'khepri.config.json': '{}' })
    chmodSync(join(project.path, 'khepri.config.json'), 0o666)
    await expect(load(project.path)).rejects.toMatchObject({
      code: 'CONFIG_UNSAFE',
      message: 'khepri.config.json is writable by all',
      fix: 'chmod o-w khepri.config.json',
    })
    chmodSync(join(project.path, 'khepri.config.json'), 0o644)
    chmodSync(project.path, 0o777)
    await expect(load(project.path)).rejects.toMatchObject({ code: 'CONFIG_UNSAFE', message: '. is writable by all' })
    chmodSync(project.path, 0o1777)
    expect((await load(project.path)).queue).toBe('default')
  })

  test('follows links to whoever owns the file itself', async () => {
    using project = new TempProject({ 'real.json': '{"queue":"linked"}' })
    symlinkSync(join(project.path, 'real.json'), join(project.path, 'khepri.config.json'))
    expect((await load(project.path)).queue).toBe('linked')
  })

  test.skipIf(process.geteuid?.() !== 0)('refuses a config of another user (only root can set this up)', async () => {
    using project = new TempProject()
    const file = join(project.path, 'khepri.config.json')
    writeFileSync(file, '{}')
    chownSync(file, 65_534, 65_534)
    await expect(load(project.path)).rejects.toMatchObject({
      code: 'CONFIG_UNSAFE',
      message: 'khepri.config.json belongs to another user (uid 65534, you are 0)',
    })
  })
})

test('every key that a config may have is in its type', () => {
  const all: Required<ConfigInput> = {
    database: '',
    table: '',
    failedTable: '',
    schema: '',
    queue: '',
    queues: {},
    concurrency: 1,
    retryAfter: 1,
    sleep: 1,
    timeout: 1,
    tries: 1,
    backoff: 1,
    maxCrashes: 1,
    unknownJobs: 'fail',
    maxPayload: 1,
    keepDone: 1,
    keepFailed: 1,
    keepCancelled: 1,
    prepare: true,
    role: 'both',
    ephemeral: true,
    jobs: '',
    schedules: {},
    scope: () => ({}),
  }
  expect([...configKeys].sort()).toEqual(Object.keys(all).sort())
})
