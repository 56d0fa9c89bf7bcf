import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { type Ended, khepri, type StartOptions } from '../support/live.ts'
import { canBeWithoutRights, expectRefusal, letAllIn, withoutRights } from '../support/refusals.ts'
import { repository, TempProject } from '../support/temp-project.ts'

/** Many processes, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

const isRoot = process.getuid?.() === 0

const note = { 'package.json': '{}', 'jobs/note.mjs': 'export default () => {}' }

const run = (project: TempProject, args: readonly string[], options: Partial<StartOptions> = {}): Promise<Ended> =>
  khepri(args, { cwd: project.path, ...options })

/** What a command leaves in a project that it refuses to work in: nothing. */
function expectNoDatabase({ path }: TempProject): void {
  expect(readdirSync(path, { recursive: true }).filter((file) => String(file).includes('.db'))).toEqual([])
}

describe('a configuration is refused with 78, its file and its line, where', () => {
  it.concurrent.each<[what: string, file: string, text: string, says: string]>([
    [
      '.json lacks a comma',
      'khepri.config.json',
      '{\n  "table": "jobs"\n  "queue": "x"\n}',
      "khepri.config.json:3:3: expected ',' or '}' after a value\n",
    ],
    ['.json is empty', 'khepri.config.json', '', 'khepri.config.json:1:1: expected a JSON value, but the text ends\n'],
    [
      '.json has a key twice',
      'khepri.config.json',
      '{"queue":"a",\n"queue":"b"}',
      'khepri.config.json:2:1: "queue" stands here a second time\n',
    ],
    ['.json is a list', 'khepri.config.json', '[]', 'khepri.config.json must hold an object, got '],
    [
      '.json is nested 200,000 levels deep',
      'khepri.config.json',
      `${'['.repeat(200_000)}${']'.repeat(200_000)}`,
      'khepri.config.json is nested more than 100 levels deep\n',
    ],
    [
      '.ts has a syntax error',
      'khepri.config.ts',
      'export default {\n  table: "jobs",,\n}',
      'cannot import khepri.config.ts:2: ',
    ],
    [
      '.mjs has a syntax error',
      'khepri.config.mjs',
      'export default {\n  table:\n}',
      'cannot import khepri.config.mjs:3: ',
    ],
    [
      '.cjs has a syntax error',
      'khepri.config.cjs',
      'module.exports = {\n  table:\n}',
      'cannot import khepri.config.cjs:3: ',
    ],
    [
      '.ts has an enum',
      'khepri.config.ts',
      'enum A { B }\nexport default {}',
      'cannot import khepri.config.ts:1: TypeScript enum is not supported in strip-only mode\n  fix: Node strips types and nothing more',
    ],
    [
      '.ts has a parameter property',
      'khepri.config.ts',
      'class A { constructor(private x: number) {} }\nexport default {}',
      'cannot import khepri.config.ts:1: ',
    ],
    [
      '.ts has a decorator',
      'khepri.config.ts',
      'const d = () => {}\n@d class A {}\nexport default {}',
      'cannot import khepri.config.ts:2: ',
    ],
    [
      '.ts imports a file that is not there',
      'khepri.config.ts',
      'import x from "./lost.ts"\nexport default x',
      "cannot import khepri.config.ts: cannot find module '",
    ],
    [
      '.ts imports a package that is not there',
      'khepri.config.ts',
      'import x from "lost-package"\nexport default x',
      "cannot import khepri.config.ts: cannot find package 'lost-package'\n  fix: npm install lost-package",
    ],
    [
      '.ts imports by an alias of tsconfig.json',
      'khepri.config.ts',
      'import x from "@/jobs"\nexport default x',
      "cannot import khepri.config.ts: cannot find package '@/jobs'\n  fix: paths of tsconfig.json are not read",
    ],
    [
      '.mjs throws',
      'khepri.config.mjs',
      '\nthrow new Error("no luck")',
      'cannot import khepri.config.mjs:2: no luck\n',
    ],
    [
      '.mjs exports nothing',
      'khepri.config.mjs',
      'export const queue = "x"',
      'khepri.config.mjs has no default export\n',
    ],
    [
      '.mjs exports a number',
      'khepri.config.mjs',
      'export default 7',
      'khepri.config.mjs must hold an object, got 7\n',
    ],
    ['a key is unknown', 'khepri.config.json', '{"tabel":"jobs"}', 'unknown key "tabel". Did you mean "table"?\n'],
    [
      'a number is a text',
      'khepri.config.json',
      '{"concurrency":"many"}',
      'concurrency must be a whole number of at least 1, got "many"\n  fix: edit ',
    ],
    [
      'a queue has a bad option',
      'khepri.config.json',
      '{"queues":{"mail":{"concurrency":0}}}',
      'queues.mail.concurrency must be a whole number of at least 1, got 0\n',
    ],
    ['the lease is 0', 'khepri.config.json', '{"retryAfter":"0s"}', 'retryAfter must be at least 1s, got "0s"\n'],
    [
      'the table has a quote in its name',
      'khepri.config.json',
      `{"table":"a\\"; drop table x"}`,
      'table must be 1 to 40 of a-z, 0-9 and _, ',
    ],
    [
      'the database is of no known kind',
      'khepri.config.json',
      '{"database":"mysql://u:S3cr3t@h/d"}',
      'database: no store for "mysql:"\n',
    ],
    [
      'the URL cannot be read',
      'khepri.config.json',
      '{"database":"postgres://u:S3cr3t#@h/d"}',
      'database is not a URL that can be read\n',
    ],
    [
      'the jobs folder is not there',
      'khepri.config.json',
      '{"jobs":"./lost"}',
      'the jobs folder ./lost cannot be read (ENOENT)\n',
    ],
    [
      'a job name has two handlers',
      'khepri.config.json',
      '{"jobs":["./jobs",{"note":"./other.mjs"}]}',
      'job "note" has two handlers: ./jobs/note.mjs and ./other.mjs\n',
    ],
    [
      'a job entry has an unknown key',
      'khepri.config.json',
      '{"jobs":{"note":{"module":"./jobs/note.mjs","quue":"x"}}}',
      'unknown key "quue" in jobs.note. Did you mean "queue"?\n',
    ],
  ])('%s', async (_, file, text, says) => {
    using project = new TempProject({ ...note, [file]: text })
    const ended = await run(project, ['work'])
    expectRefusal(ended, { code: 78, says })
    expect(ended.stderr).not.toContain('S3cr3t')
    expectNoDatabase(project)
  })

  it.concurrent('two stand in one folder', async () => {
    using project = new TempProject({ ...note, 'khepri.config.json': '{}', 'khepri.config.ts': 'export default {}' })
    const ended = await run(project, ['work'])
    expectRefusal(ended, {
      code: 78,
      says: `${project.path} has two configurations: khepri.config.ts and khepri.config.json\n`,
    })
  })

  it.concurrent.each([
    ['--config names no file', 'lost.ts', 'the configuration lost.ts does not exist\n'],
    ['--config names a folder', 'jobs', 'the configuration jobs is not a file\n'],
  ])('%s', async (_, config, says) => {
    using project = new TempProject(note)
    expectRefusal(await run(project, ['work', '--config', config]), { code: 78, says })
  })

  it.concurrent.each([
    ['KHEPRI_DATABASE_URL', '', 'KHEPRI_DATABASE_URL is set but empty\n'],
    [
      'KHEPRI_TRIES',
      'many',
      'KHEPRI_TRIES must be a whole number of at least 1, got "many"\n  fix: change or unset KHEPRI_TRIES\n',
    ],
    ['KHEPRI_RETRY_AFTER', '-1s', 'KHEPRI_RETRY_AFTER must be a duration such as '],
    ['KHEPRI_CONFIG', 'lost.json', 'the configuration lost.json does not exist\n'],
  ])('%s is %j', async (name, value, says) => {
    using project = new TempProject(note)
    expectRefusal(await run(project, ['work'], { env: { [name]: value } }), { code: 78, says })
  })
})

describe('a job module that cannot be loaded', () => {
  it.concurrent.each([
    ['a syntax error', 'note.ts', 'export default () => {\n  return ]\n}', 'cannot import ./jobs/note.ts:2: '],
    [
      'an enum',
      'note.ts',
      'enum A { B }\nexport default () => A.B',
      'cannot import ./jobs/note.ts:1: TypeScript enum is not supported in strip-only mode\n',
    ],
    ['no export', 'note.mjs', 'const a = 1', './jobs/note.mjs exports no job: it exports nothing\n'],
    [
      'a class of another kind',
      'note.mjs',
      'export default class {}',
      './jobs/note.mjs exports no job: its default export is a class that does not extend Job\n',
    ],
    [
      'bad terms',
      'note.mjs',
      "import { defineJob } from 'khepri'\nexport default defineJob({ tries: 0, handle() {} })",
      './jobs/note.mjs: tries must be a whole number of at least 1, got 0\n',
    ],
  ])('for %s makes dispatch refuse it with 78', async (_, file, text, says) => {
    using project = new TempProject({ 'package.json': '{}', [`jobs/${file}`]: text })
    expect(await run(project, ['migrate'])).toMatchObject({ code: 0 })
    expectRefusal(await run(project, ['dispatch', '--job', 'note']), { code: 78, says })
  })
})

describe('code that somebody else could have put there is refused with 77, where', () => {
  it.skipIf(!isRoot)('the configuration belongs to a stranger', async () => {
    using project = new TempProject({ ...note, 'khepri.config.json': '{}' })
    chownSync(join(project.path, 'khepri.config.json'), 12_345, 12_345)
    expectRefusal(await run(project, ['work']), {
      code: 77,
      says: 'khepri.config.json belongs to another user (uid 12345, you are 0)\n  fix: chown ',
    })
  })

  it.concurrent.each(['json', 'mjs', 'ts'])('a .%s configuration is writable by all', async (extension) => {
    using project = new TempProject(note)
    const file = `khepri.config.${extension}`
    chmodSync(project.write(file, extension === 'json' ? '{}' : 'console.log("it ran")\nexport default {}'), 0o666)
    const ended = await run(project, ['work'])
    expectRefusal(ended, { code: 77, says: `${file} is writable by all\n  fix: chmod o-w ${file}\n` })
    expect(ended.stderr).not.toContain('it ran')
  })

  it.concurrent('the jobs folder is writable by all', async () => {
    using project = new TempProject(note)
    chmodSync(join(project.path, 'jobs'), 0o777)
    expectRefusal(await run(project, ['dispatch', '--job', 'note']), {
      code: 77,
      says: './jobs is writable by all\n  fix: chmod o-w ./jobs\n',
    })
  })
})

describe('one configuration, from wherever it is used,', () => {
  it('means one database: from a sub-folder, from /, by --config, by a link to the command', async () => {
    using project = new TempProject({ ...note, 'khepri.config.json': '{"database":"sqlite:./q.db"}' })
    const config = join(project.path, 'khepri.config.json')
    const deep = join(project.path, 'a', 'b')
    mkdirSync(deep, { recursive: true })
    expect(await run(project, ['migrate'])).toMatchObject({ code: 0 })

    const dispatch = ['dispatch', '--job', 'note', '--quiet']
    const link = project.write('bin/.keep', '').replace('.keep', 'khepri')
    symlinkSync(join(repository, 'bin', 'run.cjs'), link)
    const ended = [
      await run(project, dispatch),
      await run(project, dispatch, { cwd: deep }),
      await run(project, [...dispatch, '--config', config], { cwd: '/' }),
      await run(project, [...dispatch, '-C', '../../khepri.config.json'], { cwd: deep }),
      await run(project, dispatch, { cwd: '/', env: { KHEPRI_CONFIG: config } }),
      await run(project, dispatch, { cwd: deep, shell: `"$1" "${link}" dispatch --job note --quiet` }),
    ]
    expect(ended.map(({ stdout }) => stdout)).toEqual(['1\n', '2\n', '3\n', '4\n', '5\n', '6\n'])
    const databases = readdirSync(project.path, { recursive: true }).filter((file) => /\.db$/.test(String(file)))
    expect(databases).toEqual(['q.db'])
  })

  it.concurrent.each([
    ['work'],
    ['failed'],
    ['retry', '1'],
    ['flush', '1'],
    ['dispatch', '--job', 'note'],
    ['migrate', '--check'],
  ])('%s %s in front of a missing database is 78 and makes none', async (...args) => {
    using project = new TempProject({ ...note, 'khepri.config.json': '{"database":"sqlite:./q.db"}' })
    const ended = await run(
      project,
      args.filter((word) => word !== undefined),
    )
    expectRefusal(ended, { code: 78, says: 'the schema of sqlite:./q.db is missing\n  fix: khepri migrate\n' })
    expectNoDatabase(project)
  })
})

describe('without a home folder', () => {
  it.concurrent.each([
    ['HOME is not set', 'unset HOME; exec "$@"'],
    ['HOME is empty', 'HOME= exec "$@"'],
    ['HOME is no folder', 'HOME=/nonexistent exec "$@"'],
  ])('khepri works: %s', async (_, shell) => {
    using project = new TempProject(note)
    expect(await run(project, ['migrate'], { shell })).toMatchObject({ code: 0, stderr: '' })
    expect(await run(project, ['flush', '--all'], { shell })).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing to delete\n',
    })
  })

  it.skipIf(!isRoot || !canBeWithoutRights)('khepri works as a user whom the system does not know', async () => {
    using project = new TempProject(note)
    letAllIn(project)
    chmodSync(project.path, 0o777)
    const shell = `unset HOME; ${withoutRights.replaceAll('65534', '54321')}`
    expect(await run(project, ['migrate'], { shell })).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(join(project.path, 'khepri.db'))).toBe(true)
  })
})
