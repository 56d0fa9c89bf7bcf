import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { commandTable } from '../../src/cli/command-table.ts'
import { exitCodeTable } from '../../src/cli/exit-codes.ts'
import { environmentVariables } from '../../src/core/environment.ts'
import { version } from '../../src/core/package.ts'
import { atTerminal, Live, run, terminalSkipReason } from '../support/cli.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { repository, TempProject } from '../support/temp-project.ts'

const bin = join(repository, 'bin', 'run.cjs')
const noTerminal = terminalSkipReason()

/** Writes failed jobs without running any: for lists that are long. */
function insertFailures(project: KhepriProject, count: number): void {
  const db = new Database(join(project.path, 'khepri.db'))
  db.prepare(
    `with recursive n(id) as (select 1 union all select id + 1 from n where id < ?)
     insert into failed_jobs select id, 1, 'default', 0, 'boom', 1, 0, null, 1, 0, id, 'tries', 'Error', 'it broke', '{}' from n`,
  ).run(count)
  db.close()
}

describe('the words before any command', () => {
  it.each([['--version'], ['-V'], ['version'], ['work', '-V']])('%s %s says the version', async (...words) => {
    expect(await run(words, { cwd: repository })).toMatchObject({
      code: 0,
      stdout: `khepri ${version()}\n`,
      stderr: '',
    })
  })

  it('khepri alone and khepri help list every command', async () => {
    const [alone, help] = await Promise.all([run([], { cwd: repository }), run(['help'], { cwd: repository })])
    expect(alone).toEqual(help)
    for (const name of commandTable.keys()) expect(help.stdout).toMatch(new RegExp(`^  ${name} +\\w`, 'm'))
  })

  it('help COMMAND, COMMAND --help and COMMAND -h say the same, with every flag', async () => {
    const all = await Promise.all(
      [
        ['help', 'retry'],
        ['retry', '--help'],
        ['retry', '--nope', '-h'],
      ].map((words) => run(words, { cwd: repository })),
    )
    expect(new Set(all.map(({ stdout }) => stdout)).size).toBe(1)
    expect(all[0]).toMatchObject({ code: 0, stderr: '' })
    expect(all[0]?.stdout).toContain('$ khepri retry [ID...] [FLAGS]')
    for (const flag of ['--all', '--queue=NAME', '--dry-run', '--database=URL', '--json'])
      expect(all[0]?.stdout).toContain(flag)
  })

  it('help exit-codes and help environment list them all', async () => {
    const codes = await run(['help', 'exit-codes', '--json'], { cwd: repository })
    expect(JSON.parse(codes.stdout)).toEqual(exitCodeTable)
    const { stdout } = await run(['help', 'environment'], { cwd: repository })
    for (const { name } of environmentVariables) expect(stdout).toContain(name)
  })

  it('global flags may stand before the command', async () => {
    using project = new KhepriProject()
    const { code, stdout } = await project.khepri(['--json', '--database', 'sqlite:./other.db', 'migrate', '--status'])
    expect({ code, names: JSON.parse(stdout).map(({ name }: { name: string }) => name) }).toEqual({
      code: 0,
      names: ['0000_jobs', '0001_attempts', '0002_workers', '0003_marks', '0004_schedules', '0005_parents'],
    })
  })
})

describe('wrong usage', () => {
  const cases: readonly (readonly [string, readonly string[], string])[] = [
    ['a mistyped command', ['wrok'], 'error: unknown command "wrok". Did you mean "work"?\n  fix: khepri help\n'],
    ['a mistyped flag', ['work', '--concurency=4'], 'error: unknown flag --concurency. Did you mean --concurrency?\n'],
    [
      'a flag that every object has',
      ['failed', '--constructor'],
      'error: unknown flag --constructor\n  fix: khepri failed --help lists the flags\n',
    ],
    [
      '__proto__ as a flag',
      ['failed', '--__proto__=1'],
      'error: unknown flag --__proto__\n  fix: khepri failed --help lists the flags\n',
    ],
    ['a flag without its value', ['failed', '--queue'], 'error: --queue needs a value\n  fix: khepri failed --help\n'],
    [
      'a flag twice',
      ['failed', '--queue=a', '--queue=b'],
      'error: --queue can be given only once\n  fix: khepri failed --help\n',
    ],
    ['an empty queue', ['failed', '--queue='], 'error: --queue must be a name, got ""\n'],
    ['no queue in a list', ['work', '--queue='], 'error: --queue needs at least one name, got ""\n'],
    ['empty queues in a list', ['work', '--queue=,'], 'error: --queue has an empty name in ","\n'],
    [
      'a duration that is none',
      ['work', '--sleep=abc'],
      'error: --sleep must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got "abc"\n',
    ],
    [
      'a word that is none of few',
      ['failed', '--by=eror'],
      'error: --by must be one of error, job, queue, got "eror". Did you mean "error"?\n  fix: khepri failed --help\n',
    ],
    [
      'an argument that is none of few',
      ['completion', 'fishh'],
      'error: the argument must be one of bash, zsh, fish, got "fishh". Did you mean "fish"?\n  fix: khepri completion --help\n',
    ],
    [
      'an argument that can only be one word',
      ['make', 'jbo', 'tidy'],
      'error: the argument must be job, got "jbo". Did you mean "job"?\n  fix: khepri make --help\n',
    ],
    [
      'a number that is none',
      ['failed', '--limit=1.5'],
      'error: --limit must be a whole number of at least 1, got "1.5"\n',
    ],
    [
      'an id that is none',
      ['retry', 'nope'],
      'error: "nope" is not a job id; ids are whole numbers\n  fix: khepri dispatch prints the ids of jobs, khepri failed lists those that failed\n',
    ],
    ['one argument too many', ['migrate', 'now'], 'error: unexpected argument "now"\n  fix: khepri migrate --help\n'],
    ['two forms at once', ['failed', '--json', '--plain'], 'error: --json and --plain exclude each other\n'],
    [
      'an unknown time zone',
      ['failed', '--timezone=Mars'],
      'error: --timezone must be a time zone such as Europe/Berlin or UTC, got "Mars"\n',
    ],
  ]
  it.each(cases)('%s exits 2 and says so in one sentence', async (_what, words, stderr) => {
    const ended = await run(words, { cwd: repository })
    const message = words.includes('--json')
      ? JSON.stringify({ error: { code: 'USAGE', message: stderr.slice(7, -1), fix: null, exit: 2 } })
      : stderr
    expect(ended).toMatchObject({ code: 2, stdout: '', stderr: words.includes('--json') ? `${message}\n` : message })
  })

  it('is one line of JSON with --json', async () => {
    expect(await run(['wrok', '--json'], { cwd: repository })).toMatchObject({
      code: 2,
      stdout: '',
      stderr:
        '{"error":{"code":"USAGE","message":"unknown command \\"wrok\\". Did you mean \\"work\\"?","fix":"khepri help","exit":2}}\n',
    })
  })

  it.each([...commandTable.keys()])('khepri %s refuses --nope', async (name) => {
    const { code, stdout, stderr } = await run([name, '--nope'], { cwd: repository })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^error: unknown flag --nope/)
  })
})

describe('errors of the surroundings', () => {
  it('a database that is not there is 78 with the command to run, and no file is made', async () => {
    using project = new KhepriProject({ 'khepri.config.json': '{}' })
    expect(await project.khepri(['failed'])).toMatchObject({
      code: 78,
      stdout: '',
      stderr: 'error: the schema of sqlite:./khepri.db is missing\n  fix: khepri migrate\n',
    })
    expect(statSync(join(project.path, 'khepri.db'), { throwIfNoEntry: false })).toBeUndefined()
  })

  it('a Postgres that cannot be reached is 69, its password masked', async () => {
    const { code, stdout, stderr } = await run(['failed', '--database=postgres://app:s3cret@127.0.0.1:1/app'], {
      cwd: repository,
    })
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' })
    expect(stderr).toMatch(
      /^error: cannot reach postgres:\/\/app:\*\*\*@127\.0\.0\.1:1\/app: connection refused\n {2}fix: /,
    )
  })

  it('a configuration that is not there is 78', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['failed', '--config', 'nope.ts'])).toMatchObject({ code: 78, stdout: '' })
  })

  it('a module whose code never ends is named, and does not end in success', async () => {
    using project = new KhepriProject({ 'jobs/never.mjs': 'await new Promise(() => {}); export default () => {}' })
    expect(await project.khepri(['jobs'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: cannot import \.\/jobs\/never\.mjs: its top-level await does not end/),
    })
  })

  it('a stack is shown only with --verbose or DEBUG', async () => {
    using project = new KhepriProject()
    const [brief, verbose, debug] = await Promise.all([
      project.khepri(['failed']),
      project.khepri(['failed', '-v']),
      project.khepri(['failed'], { env: { DEBUG: '*' } }),
    ])
    expect(brief.stderr).not.toContain('    at ')
    expect(verbose.stderr).toContain('    at ')
    expect(debug.stderr).toContain('    at ')
  })
})

describe('stdout', () => {
  it('of 20,000 lines is not cut at exit, in a pipe that is read slowly', async () => {
    using project = await migratedProject()
    insertFailures(project, 20_000)
    const { code, stdout } = await project.khepri(['failed', '--plain'], { shell: '"$@" | { sleep 0.2; cat; }' })
    expect(code).toBe(0)
    expect(stdout.split('\n')).toHaveLength(20_001)
    expect(stdout.endsWith('it broke\n')).toBe(true)
  })

  it('whose reader has gone ends a listing quietly', async () => {
    using project = await migratedProject()
    insertFailures(project, 20_000)
    const { stdout, stderr } = await project.khepri(['failed', '--plain'], {
      shell: '{ "$@"; echo "exit $?" >&2; } | head -n 1',
    })
    expect(stdout.split('\n')).toHaveLength(2)
    expect(stderr).toBe('exit 0\n')
  })

  it('and stderr whose reader has gone do not make a failure of a success', async () => {
    using project = await migratedProject()
    // Begins once the pipe is broken, and tells the exit code elsewhere.
    const shell = 'trap "" PIPE; { while echo; do :; done 2>/dev/null; "$@"; echo "exit $?" >&3; } 3>&2 2>&1 | true'
    expect(await project.khepri(['failed'], { shell })).toMatchObject({ stderr: 'exit 0\n' })
  })

  it.skipIf(!statSync('/dev/full', { throwIfNoEntry: false }))('on a full disk is 74', async () => {
    using project = await migratedProject()
    insertFailures(project, 1)
    expect(await project.khepri(['failed'], { shell: '"$@" > /dev/full' })).toMatchObject({
      code: 74,
      stderr: 'error: writing to stdout failed: no space left on device\n  fix: is the disk full?\n',
    })
  })

  it('holds results only, whatever the modules of the user print', async () => {
    using project = new KhepriProject({ 'jobs/loud.mjs': 'console.log("loaded"); export default () => {}' })
    const { code, stdout, stderr } = await project.khepri(['jobs', '--plain'])
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'loud\tdefault\t1\t-\t./jobs/loud.mjs\n',
      stderr: 'loaded\n',
    })
  })

  it('is not the place for an error that a module left in a timer: it is named on stderr, and jobs exits 1', async () => {
    using project = new KhepriProject({
      'jobs/late.mjs':
        'setTimeout(() => { throw new Error("too late") }); export default () => {}; await new Promise((done) => setTimeout(done, 20))',
    })
    const { code, stdout, stderr } = await project.khepri(['jobs', '--plain'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'late\tdefault\t1\t-\t./jobs/late.mjs\n' })
    expect(stderr).toBe(
      'warning: ./jobs/late.mjs: nobody caught an error: too late\n  fix: await what the file starts, and catch what its timers throw\n',
    )
  })

  it('and all else is over when the command is, though a module left a timer', async () => {
    using project = new KhepriProject({ 'jobs/busy.mjs': 'setInterval(() => {}, 1_000); export default () => {}' })
    expect(await project.khepri(['jobs'])).toMatchObject({ code: 0, signal: null })
  })
})

describe.skipIf(noTerminal !== null)('a terminal', () => {
  it('gets ages, colour and lines that fit', async () => {
    using project = await migratedProject()
    insertFailures(project, 1)
    const { stdout } = await atTerminal(['failed'], { cwd: project.path, columns: 50, env: { TERM: 'xterm' } })
    expect(stdout).toMatch(
      /^\u001b\[2mID {2}Queue {4}Job {3}Failed at {3}Error\u001b\[22m\n1 {3}default {2}boom {2}\d+d ago {2}it broke\n$/,
    )
  })

  it('gets no colour with NO_COLOR, and a pipe gets it with --color=always', async () => {
    using project = await migratedProject()
    insertFailures(project, 1)
    const quiet = await atTerminal(['failed'], { cwd: project.path, env: { TERM: 'xterm', NO_COLOR: '1' } })
    const forced = await project.khepri(['failed', '--color=always'])
    expect(quiet.stdout).not.toContain('\u001b')
    expect(forced.stdout).toContain('\u001b[2mID')
  })

  it('gets 20 of many, and is told how to see more', async () => {
    using project = await migratedProject()
    insertFailures(project, 30)
    const { stdout } = await atTerminal(['failed'], { cwd: project.path })
    expect(stdout.match(/it broke/g)).toHaveLength(20)
    expect(stdout).toContain('More than 20: --limit 100 shows more, --by error counts them')
  })
})

it('help version is about the version and not the list of commands', async () => {
  using project = new KhepriProject()
  const { code, stdout } = await project.khepri(['help', 'version'])
  expect({ code, first: stdout.split('\n', 1)[0] }).toEqual({ code: 0, first: 'Show the version' })
  expect(stdout).not.toContain('COMMANDS')
})

describe('the bin file', () => {
  const guarded = (node: string): string =>
    `Object.defineProperty(process.versions, 'node', { value: '${node}' }); process.argv = [process.execPath, 'khepri', 'work']; require(${JSON.stringify(bin)})`

  it.each(['8.17.0', '20.20.2', '22.17.1'])('on Node %s says one sentence and a fix, exit 78', (node) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', guarded(node)], { encoding: 'utf8' })
    expect({ status, stdout }).toEqual({ status: 78, stdout: '' })
    expect(stderr).toBe(
      `error: khepri needs Node.js 22.18 or newer, and this is ${node} (${process.execPath})\n  fix: install Node.js 24, or put a newer one first on the PATH\n`,
    )
  })

  it('the library on an old Node does not end in a SyntaxError', () => {
    const index = JSON.stringify(pathToFileURL(join(dirname(bin), '..', 'dist', 'index.js')).href)
    const code = `Object.defineProperty(process.versions, 'node', { value: '20.20.2' })
      delete require('node:module').registerHooks
      import(${index}).catch(({ code, message }) => console.log(code, message))`
    const { stdout } = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' })
    expect(stdout).toMatch(/^CONFIG_INVALID khepri needs Node\.js 22\.18 or newer, and this is 20\.20\.2 /)
  })

  it('in a clone that is not built says how to build it, exit 78', () => {
    using clone = new TempProject()
    mkdirSync(join(clone.path, 'bin'))
    copyFileSync(bin, join(clone.path, 'bin', 'run.cjs'))
    const { status, stderr } = spawnSync(process.execPath, ['bin/run.cjs'], { cwd: clone.path, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({
      status: 78,
      stderr: 'error: khepri is not built: dist/cli.js is missing\n  fix: npm run build\n',
    })
  })

  it('keeps compiled code in a folder of its own that nobody else can write to', async () => {
    using home = new TempProject()
    expect(
      await run(['--version'], { cwd: repository, env: { XDG_CACHE_HOME: join(home.path, 'a', 'b') } }),
    ).toMatchObject({ code: 0 })
    expect(statSync(join(home.path, 'a', 'b', 'khepri')).mode & 0o777).toBe(0o700)
  })

  it('starts all the same where no such folder can be made, even below /proc', async () => {
    expect(await run(['--version'], { cwd: repository, env: { XDG_CACHE_HOME: '/proc/nope' } })).toMatchObject({
      code: 0,
      stderr: '',
    })
  })

  it('ends by a signal at once, without a stack trace', async () => {
    using project = new KhepriProject()
    await using live = Live.start(['migrate', '--check', '--wait=60s', '--verbose'], { cwd: project.path })
    live.child.once('spawn', () => live.kill('SIGTERM'))
    expect(await live.ended).toMatchObject({ signal: 'SIGTERM', stderr: '' })
  })
})
