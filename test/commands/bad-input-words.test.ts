import { describe, expect, it, vi } from 'vitest'
import { commandTable } from '../../src/cli/command-table.ts'
import { type Ended, khepri, type StartOptions } from '../support/live.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'
import { TempProject } from '../support/temp-project.ts'

/** Many processes, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

async function refused(args: readonly string[], options: Partial<StartOptions> = {}): Promise<Ended> {
  using project = new TempProject({ 'package.json': '{}', 'jobs/note.mjs': 'export default () => {}' })
  return await khepri(args, { cwd: project.path, ...options })
}

const commands = [...commandTable.keys()]

describe('every command refuses with 2', () => {
  it.concurrent.each(commands)('%s --no-such-flag', async (command) => {
    expectRefusal(await refused([command, '--no-such-flag']), {
      code: 2,
      says: `unknown flag --no-such-flag\n  fix: khepri ${command} --help lists the flags\n`,
    })
  })
})

describe('a value is refused with 2 by', () => {
  it.concurrent.each<[args: string[], says: string]>([
    [['work', '--queue='], '--queue needs at least one name, got ""\n'],
    [['work', '--queue=,'], '--queue has an empty name in ","\n'],
    [['work', '--queue=a,,b'], '--queue has an empty name in "a,,b"\n'],
    [['work', '--queue=a\nb'], '--queue must be free of control characters and valid Unicode, got "a\\nb"\n'],
    [['work', `--queue=${'q'.repeat(500)}`], '--queue must have at most 255 characters, got 500\n'],
    [['work', '--sleep=abc'], '--sleep must be a duration such as '],
    [['work', '--sleep=-1'], '--sleep must be a duration such as '],
    [['work', '--sleep=1e99'], '--sleep must be '],
    [['work', '--sleep=0'], '--sleep must be longer than 0, got "0"\n'],
    [['work', '--timeout=0s'], '--timeout must be longer than 0, got "0s"\n'],
    [['work', '--retry-after=0'], '--retry-after must be at least 1s, got "0"\n'],
    [['work', '--retry-after=5ms'], '--retry-after must be at least 1s, got "5ms"\n'],
    [['work', '--max-time=NaN'], '--max-time must be a duration such as '],
    [['work', '--concurrency=0'], '--concurrency must be a whole number of at least 1, got "0"\n'],
    [['work', '--concurrency=1.5'], '--concurrency must be a whole number of at least 1, got "1.5"\n'],
    [['work', '--max-jobs=-1'], '--max-jobs must be a whole number of at least 1, got "-1"\n'],
    [['work', '--unknown=perhaps'], '--unknown must be one of fail, wait, got "perhaps"'],
    [['work', '--backoff=soon'], '--backoff must be '],
    [['work', '--pool=*:2'], '--pool: "*" means every queue and cannot be combined with names or a limit\n'],
    [['work', 'extra'], 'unexpected argument "extra"\n'],
    [['dispatch'], 'nothing to dispatch\n'],
    [['dispatch', '--job='], '--job must be a name, got ""\n'],
    [['dispatch', '--job', 'note', '--queue='], '--queue must be a name, got ""\n'],
    [['dispatch', '--job', 'note', '--queue=,'], '--queue must be one name without a comma, got ","\n'],
    [['dispatch', '--job', 'note', '--tries=NaN'], '--tries must be a whole number of at least 1, got "NaN"\n'],
    [['dispatch', '--job', 'note', '--timeout=0'], '--timeout must be longer than 0'],
    [['dispatch', '--job', 'note', '--set', 'a'], '--set must be key=text or key:=json, got "a"\n'],
    [['dispatch', '--job', 'note', '--at', 'tomorrow'], '--at must be a time such as '],
    [['dispatch', '--job', 'note', '--at=2030-01-01T00:00:00Z', '--delay=5'], '--delay and --at exclude each other\n'],
    [['dispatch', 'a.json', '--job', 'note', '--payload', '1'], '--payload and FILE exclude each other'],
    [['dispatch', '-', '-'], 'stdin can be read only once\n'],
    [['failed', '--queue='], '--queue must be a name, got ""\n'],
    [['failed', '--since=yesterdayish'], '--since must be a duration such as 2h or a time such as '],
    [['failed', '0'], '"0" is not a job id; ids are whole numbers\n'],
    [['retry'], 'nothing selected\n'],
    [['retry', '1.5'], '"1.5" is not a job id; ids are whole numbers\n'],
    [['retry', '99999999999999999999'], '"99999999999999999999" is not a job id; ids are whole numbers\n'],
    [['flush', '--older-than=abc'], '--older-than must be a duration such as '],
    [['wrok'], 'unknown command "wrok". Did you mean "work"?\n  fix: khepri help\n'],
    [['../../evil'], 'unknown command "../../evil"\n'],
    [['constructor'], 'unknown command "constructor"\n'],
    [['--nope'], 'unknown flag --nope\n'],
    [['work', '--constructor'], 'unknown flag --constructor\n'],
    [['failed', '--__proto__'], 'unknown flag --__proto__\n'],
    [['jobs', '--database='], '--database needs a value, got ""\n'],
    [['work', '--concurency=4'], 'unknown flag --concurency. Did you mean --concurrency?\n'],
    [['failed', '--timezone=Mars/Olympus'], '--timezone '],
  ])('%j', async (args, says) => {
    expectRefusal(await refused(args), { code: 2, says })
  })
})

describe('with --json a refusal is one line of JSON on stderr, and its exit code the same:', () => {
  it.concurrent.each<[args: string[], code: string, exit: number]>([
    [['wrok', '--json'], 'USAGE', 2],
    [['retry', 'nope', '--json'], 'USAGE', 2],
    [['work', '--json', '--concurency=4'], 'USAGE', 2],
    [['failed', '--json', '--plain'], 'USAGE', 2],
    [['dispatch', '--json', '--job', 'note', '--payload', '{'], 'JSON_INVALID', 65],
    [['dispatch', '--json', '--job', 'lost'], 'JOB_UNKNOWN', 65],
    [['dispatch', '--json', 'lost.json'], 'INPUT_MISSING', 66],
    [['work', '--json', '--config', 'lost.json'], 'CONFIG_MISSING', 78],
    [['failed', '--json'], 'SCHEMA_MISSING', 78],
    [['migrate', '--json', '--database', 'sqlite:./lost/folder.db'], 'STORE_UNREACHABLE', 69],
    [['failed', '--json', '--database', 'postgres://u:S3cr3t@127.0.0.1:1/d'], 'STORE_UNREACHABLE', 69],
  ])('%j is %s', async (args, code, exit) => {
    const ended = await refused(args)
    expectJsonRefusal(ended, { code, exit })
    expect(ended.stderr).not.toContain('S3cr3t')
  })
})

it('a closed stdin and no terminal never lead to a question', async () => {
  using project = new TempProject({ 'package.json': '{}' })
  expect(await khepri(['migrate'], { cwd: project.path })).toMatchObject({ code: 0 })
  expect(await khepri(['flush', '--older-than=1d'], { cwd: project.path })).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'Nothing to delete\n',
  })
})
