import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import type { Ended } from '../support/live.ts'
import { freshDatabase, postgresSkipReason } from '../support/postgres.ts'

const jobs = {
  'jobs/note.mjs': 'export default (_, { log, payloadText }) => log(payloadText)',
  'jobs/send-welcome.mjs': `import { defineJob } from 'khepri'
    export default defineJob({ queue: 'mail', handle() {}, schema: { '~standard': { version: 1, vendor: 'test', validate: (value) =>
      Number.isInteger(value.userId) ? { value } : { issues: [{ message: 'must be a whole number', path: ['userId'] }] } } } })`,
}

const project = (files: Readonly<Record<string, string>> = {}): Promise<KhepriProject> =>
  migratedProject({ ...jobs, ...files })

const dispatch = (made: KhepriProject, ...args: readonly string[]): Promise<Ended> => made.khepri(['dispatch', ...args])

/** What the note jobs were given, in the order in which they ran. */
async function notesOf(made: KhepriProject): Promise<readonly string[]> {
  const { stdout } = await made.khepri(['work', '--stop-when-empty', '--queue=*', '--json'])
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string; text: string })
  return events.filter(({ event }) => event === 'job.log').map(({ text }) => text)
}

const numbers = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, index) => `{"n":${from + index}}\n`).join('')

describe('khepri dispatch of one job', () => {
  it('prints the bare id, and on stderr what to do next', async () => {
    using made = await project()
    expect(await dispatch(made, '--job', 'send-welcome', '--payload', '{"userId":7}')).toEqual({
      code: 0,
      signal: null,
      stdout: '1\n',
      stderr: 'Dispatched send-welcome on mail. Run it: khepri work\n',
    })
  })

  it('prints nothing but the id with --quiet', async () => {
    using made = await project({ 'job.json': '{"job":"send-welcome","payload":{"userId":8}}\n' })
    expect(await dispatch(made, 'job.json', '--delay', '10m', '--quiet')).toMatchObject({
      code: 0,
      stdout: '1\n',
      stderr: '',
    })
  })

  it('keeps every byte of the payload: big numbers, order of keys, spaces, escapes, __proto__', async () => {
    using made = await project()
    const payload = String.raw`{"b":12345678901234567890123, "a":1.0,"__proto__":{"x":"\ud800\u0000"} }`
    await dispatch(made, '--job', 'note', '--payload', payload)
    expect(await notesOf(made)).toEqual([payload])
  })

  it('builds the payload of --set key=text and key:=json', async () => {
    using made = await project()
    await dispatch(made, '--job', 'note', '--set', 'name=Ada = "x"', '--set', 'id:=1e3', '--set', '__proto__=p')
    expect(await notesOf(made)).toEqual([String.raw`{"name":"Ada = \"x\"","id":1e3,"__proto__":"p"}`])
  })

  it('reads --payload @FILE, a list as one payload', async () => {
    using made = await project({ 'list.json': '\ufeff[1, 2]\r\n' })
    await dispatch(made, '--job', 'note', '--payload', '@list.json')
    expect(await notesOf(made)).toEqual(['[1, 2]'])
  })

  it('answers with the live id where a job holds the unique key, and exits 0', async () => {
    using made = await project()
    await dispatch(made, '--job', 'note', '--unique', 'only-one')
    expect(await dispatch(made, '--job', 'note', '--unique', 'only-one')).toMatchObject({
      code: 0,
      stdout: '1\n',
      stderr: 'Dispatched nothing; job 1 is live under the same unique key\n',
    })
  })

  it('with --json prints one document', async () => {
    using made = await project()
    const { stdout, stderr } = await dispatch(made, '--job', 'note', '--json')
    expect(JSON.parse(stdout)).toEqual({ dispatched: 1, duplicates: [], rejected: 0, ms: expect.any(Number), ids: [1] })
    expect(stderr).toBe('')
  })

  it('lets the terms of the command line outrank those of the file', async () => {
    using made = await project({ 'job.json': '{"job":"note","queue":"low","priority":5,"payload":"second"}' })
    await dispatch(made, 'job.json')
    await dispatch(made, 'job.json', '--priority', '-1', '--queue', 'low')
    const { stdout } = await made.khepri(['work', '--queue=low', '--stop-when-empty'])
    expect([...stdout.matchAll(/ DONE (\d)/g)].map(([, id]) => id)).toEqual(['2', '1'])
  })

  it('accepts a name that the configuration does not know only with --allow-unknown', async () => {
    using made = await project()
    expect(await dispatch(made, '--job', 'constructor')).toMatchObject({ code: 65, stdout: '' })
    expect(await dispatch(made, '--job', 'constructor', '--allow-unknown')).toMatchObject({ code: 0, stdout: '1\n' })
  })
})

describe('refusals of khepri dispatch', () => {
  it('name the unknown job, the nearest known one and the way out', async () => {
    using made = await project()
    expect(await dispatch(made, '--job', 'send-welcom', '--payload', '{}')).toMatchObject({
      code: 65,
      stdout: '',
      stderr:
        'error: unknown job "send-welcom". Did you mean "send-welcome"?\n  fix: khepri jobs lists the known ones; --allow-unknown dispatches it all the same\n',
    })
  })

  it('point at the place of a JSON fault', async () => {
    using made = await project({ 'broken.json': '{\n  "job": "note",\n  "payload": 7 "queue": "high"\n}\n' })
    expect(await dispatch(made, 'broken.json')).toMatchObject({
      code: 65,
      stderr: `error: broken.json:3:16: expected ',' or '}' after a value\n  3 |   "payload": 7 "queue": "high"\n    |                ^\n`,
    })
  })

  it.each([
    ['an unknown key', '{"job":"note","retries":3}', 65, /jobs\.txt:1: unknown key "retries"\. Did you mean "tries"\?/],
    ['a doubled key', '{"job":"note","tries":1,"tries":2}', 65, /jobs\.txt:1:25: "tries" stands here a second time/],
    ['a bad value', '{"job":"note","tries":0}', 65, /jobs\.txt:1: tries must be a whole number of at least 1, got 0/],
    [
      'a refused payload',
      '{"job":"send-welcome","payload":{"userId":"7"}}',
      65,
      /jobs\.txt:1: the payload of send-welcome is refused by its schema: .*must be a whole number/,
    ],
    ['an empty file', '', 65, /jobs\.txt is empty/],
    ['trailing garbage', '{"job":"note"} x', 65, /jobs\.txt:1:16/],
    ['two values on one line', '{"job":"note"}{"job":"note"}', 65, /jobs\.txt:1:15/],
    ['a number', '7', 65, /jobs\.txt:1: a job must be an object .* got a number/],
    [
      '200,000 levels',
      `{"job":"note","payload":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
      65,
      /nested more than 1,000 levels deep/,
    ],
    ['2 MiB', `{"job":"note","payload":"${'x'.repeat(2 * 1024 * 1024)}"}`, 65, /bytes/],
  ])('%s in a file', async (_, text, code, message) => {
    using made = await project({ 'jobs.txt': text })
    const ended = await dispatch(made, 'jobs.txt')
    expect(ended.stderr).toMatch(message)
    expect(ended.stderr).not.toMatch(/\n +at /)
    expect(ended).toMatchObject({ code, stdout: '' })
    expect(made.count()).toBe(0)
  })

  it.each([
    ['nope.json', 'cannot read nope.json: no such file'],
    ['folder', 'folder is a directory, not a file'],
    ['pipe', 'pipe is not a regular file'],
  ])('%s exits 66', async (file, message) => {
    using made = await project()
    mkdirSync(join(made.path, 'folder'))
    execFileSync('mkfifo', [join(made.path, 'pipe')])
    const { code, stderr } = await dispatch(made, file)
    expect(stderr).toContain(`error: ${message}`)
    expect(code).toBe(66)
  })

  it.each([
    [[], 'nothing to dispatch'],
    [['job.json', '--payload', '{}'], '--payload and FILE exclude each other'],
    [['--job', 'note', '--payload', '{}', '--set', 'a=1'], '--payload and --set exclude each other'],
    [['--job', 'note', '--set', 'a'], '--set must be key=text or key:=json, got "a"'],
    [['--job', 'note', '--set', 'a=1', '--set', 'a=2'], '--set gives "a" twice'],
    [['--job', 'note', '--delay', '1m', '--at', '2030-01-01T00:00:00Z'], '--delay and --at exclude each other'],
    [['--job', 'note', '--at', '2030-01-01T00:00:00'], '--at needs an offset'],
    [['--job', 'note', '--delay', 'abc'], '--delay must be a duration'],
    [['--job', 'note', '--tries', '0'], '--tries must be a whole number of at least 1, got "0"'],
    [['--job', 'note', '--priority', '1.5'], '--priority must be a whole number'],
    [['--job', 'note', '--queue', 'a,b'], '--queue must be one name without a comma'],
    [['--job='], '--job must be a name, got ""'],
    [['-', '-'], 'stdin can be read only once'],
    [['-', '--rejects', 'bad'], '--rejects needs --skip-invalid'],
    [['--nope'], 'unknown flag --nope'],
  ])('dispatch %j is wrong usage and exits 2', async (args, message) => {
    using made = new KhepriProject(jobs)
    const { code, stderr, stdout } = await dispatch(made, ...args)
    expect(stderr).toContain(`error: ${message}`)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })
})

describe('files', () => {
  it('of every form are dispatched in order, their ids one a line', async () => {
    using made = await project({
      'one.json': '{"job":"note","payload":1}',
      'list.json': '[{"job":"note","payload":2},\n {"job":"note","payload":3}]',
      'lines.ndjson': '{"job":"note","payload":4}\r\n\r\n{"job":"note","payload":5}\r\n',
    })
    expect(await dispatch(made, 'one.json', 'list.json', 'lines.ndjson')).toMatchObject({
      code: 0,
      stdout: '1\n2\n3\n4\n5\n',
      stderr: 'Dispatched 5 jobs. Run them: khepri work\n',
    })
    expect(await notesOf(made)).toEqual(['1', '2', '3', '4', '5'])
  })

  it('are all checked before the first row: a fault in the last line of the second writes nothing', async () => {
    using made = await project({ 'good.ndjson': numbers(1, 500), 'bad.ndjson': `${numbers(1, 499)}{"n":\n` })
    const { code, stderr, stdout } = await dispatch(made, 'good.ndjson', 'bad.ndjson', '--job', 'note')
    expect(stderr).toMatch(/^error: bad\.ndjson:500:6: /)
    expect(stdout).toBe('')
    expect(code).toBe(65)
    expect(made.count()).toBe(0)
  })

  it('of 1,000 jobs print their number on stderr, and no id', async () => {
    using made = await project({ 'users.ndjson': numbers(1, 1_000) })
    const { code, stdout, stderr } = await dispatch(made, 'users.ndjson', '--job', 'note')
    expect(stderr).toMatch(/^Dispatched 1,000 jobs in \S+ \([\d,]+\/s\)\n$/)
    expect(stdout).toBe('')
    expect(code).toBe(0)
    expect(made.count()).toBe(1_000)
  })

  it('of more than 100,000 jobs are written in chunks, each job once', async () => {
    using made = await project({ 'users.ndjson': numbers(1, 100_001) })
    const { stderr } = await dispatch(made, 'users.ndjson', '--job', 'note')
    expect(stderr).toMatch(/Dispatched 100,001 jobs in /)
    expect(made.count()).toBe(100_001)
  })

  it('with --dry-run are checked and nothing is written', async () => {
    using made = await project({ 'users.ndjson': numbers(1, 3) })
    expect(await dispatch(made, 'users.ndjson', '--job', 'note', '--dry-run')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Checked 3 jobs, dispatched nothing\n',
    })
    expect(made.count()).toBe(0)
  })

  it('with --skip-invalid leave out what is wrong, name the first of it and exit 1', async () => {
    using made = await project({
      'mixed.ndjson': '{"job":"note"}\n{"job":"nobody"}\n{"job":"note","tries":-1}\n{"job":"note"}\n',
    })
    expect(await dispatch(made, 'mixed.ndjson', '--skip-invalid')).toMatchObject({
      code: 1,
      stdout: '1\n2\n',
      stderr: 'Dispatched 2 jobs; 2 lines rejected (first: line 2, unknown job "nobody"). Run them: khepri work\n',
    })
  })
})

describe('a stream', () => {
  const hundred = `${numbers(1, 41)}{"n": 1 "m": 2}\n${numbers(42, 98)}[\n`

  it('with --skip-invalid dispatches the rest, keeps the rejects in a file and exits 1', async () => {
    using made = await project()
    const ended = await made.khepri(['dispatch', '-', '--job', 'note', '--skip-invalid', '--rejects', 'bad.ndjson'], {
      stdin: hundred,
    })
    expect(ended.stderr).toMatch(
      /^Dispatched 98 jobs in \S+; 2 lines rejected, see bad\.ndjson \(first: line 42:9, expected ',' or '}' after a value\)\n$/,
    )
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(readFileSync(join(made.path, 'bad.ndjson'), 'utf8')).toBe('{"n": 1 "m": 2}\n[\n')
    expect(made.count()).toBe(98)
  })

  it('does not write over rejects that are there, and dispatches nothing', async () => {
    using made = await project({ 'bad.ndjson': 'precious' })
    const ended = await made.khepri(['dispatch', '-', '--job', 'note', '--skip-invalid', '--rejects', 'bad.ndjson'], {
      stdin: hundred,
    })
    expect(ended).toMatchObject({ code: 73 })
    expect(readFileSync(join(made.path, 'bad.ndjson'), 'utf8')).toBe('precious')
    expect(made.count()).toBe(0)
  })

  it('leaves no file of rejects where there are none', async () => {
    using made = await project()
    await made.khepri(['dispatch', '-', '--job', 'note', '--skip-invalid', '--rejects', 'bad.ndjson'], {
      stdin: numbers(1, 3),
    })
    expect(existsSync(join(made.path, 'bad.ndjson'))).toBe(false)
  })

  it('that breaks in line 25 with --chunk 10 names line 20 as the last that is in', async () => {
    using made = await project()
    const ended = await made.khepri(['dispatch', '-', '--job', 'note', '--chunk', '10'], {
      stdin: `${numbers(1, 24)}{\n${numbers(26, 30)}`,
    })
    expect(ended.stderr).toMatch(
      /^error: stdin:25:2: [\s\S]*\n20 jobs are in, up to stdin:20\n {2}fix: dispatch what comes after line 20 of stdin\n$/,
    )
    expect(ended).toMatchObject({ code: 65, stdout: '' })
    expect(made.count()).toBe(20)
  })

  it('works on Postgres as well', async ({ skip }) => {
    const missing = postgresSkipReason()
    if (missing !== null) return skip(missing)
    const database = await freshDatabase()
    using made = new KhepriProject(jobs)
    const env = { KHEPRI_DATABASE_URL: database.url }
    await made.khepri(['migrate'], { env })
    const ended = await made.khepri(['dispatch', '-', '--job', 'note', '--chunk', '100'], {
      env,
      stdin: numbers(1, 1_000),
    })
    expect(ended.stderr).toMatch(/^Dispatched 1,000 jobs in /)
    const { stdout } = await made.khepri(['work', '--stop-when-empty', '--log', 'results'], { env })
    expect(stdout).toMatch(/stopped: 1000 done, 0 retried, 0 failed/)
    await database.drop()
  })
})

it.each(['memory:', 'sync:'])(
  'into %s is refused: exit 0 would promise what ends with the command',
  async (database) => {
    using project = new KhepriProject({ 'jobs/note.mjs': 'export default () => {}' })
    expect(await project.khepri(['dispatch', '--job=note', `--database=${database}`])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(`${database} ends with this command, and with it what would be dispatched`),
    })
  },
)

it('takes a file behind a flag that may be given several times', async () => {
  using project = await migratedProject({ 'jobs/note.mjs': 'export default () => {}', 'job.json': '{"n":1}' })
  const flags = ['--job=note', '--set', 'a=1']
  const { stderr } = await project.khepri(['dispatch', ...flags, 'job.json'])
  expect(stderr).toContain('--set')
  expect(stderr).not.toContain('"job.json"')
  expect(await project.khepri(['dispatch', '--job=note'])).toMatchObject({ code: 0, stdout: '1\n' })
  expect(await project.khepri(['dispatch', '--after', '1', '--job=note', 'job.json'])).toMatchObject({
    code: 0,
    stdout: '2\n',
  })
})
