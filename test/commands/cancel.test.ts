import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { failJobs } from '../support/failures.ts'
import { type KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'

const noTerminal = terminalSkipReason()

/** A project with jobs that nobody holds: 1 and 2 are ready, on "mail" and on "images"; 3 is due in an hour, on "mail". */
async function waiting(): Promise<KhepriProject> {
  const project = await migratedProject({
    'jobs.ndjson': [
      { job: 'send-welcome', queue: 'mail' },
      { job: 'resize-image', queue: 'images' },
      { job: 'send-welcome', queue: 'mail', delay: '1h' },
    ]
      .map((job) => `${JSON.stringify(job)}\n`)
      .join(''),
  })
  expect(await project.khepri(['dispatch', 'jobs.ndjson', '--allow-unknown'])).toMatchObject({ code: 0 })
  return project
}

/** A project in which job 1 has failed, and nothing else was ever dispatched. */
async function failed(): Promise<KhepriProject> {
  const project = await migratedProject()
  await failJobs(`sqlite:${join(project.path, 'khepri.db')}`, [{}])
  return project
}

describe('khepri cancel', () => {
  it('cancels what waits at once, names it, and it never runs', async () => {
    using project = await waiting()
    expect(await project.khepri(['cancel', '1', '3'])).toEqual({
      code: 0,
      signal: null,
      stdout: 'Cancelled 2 jobs: 1 (send-welcome on mail), 3 (send-welcome on mail)\n',
      stderr: '',
    })
    expect(project.count()).toBe(1)
  })

  it('cancels the others where an id is unknown, says what is not there, and exits 1', async () => {
    using project = await waiting()
    expect(await project.khepri(['cancel', '99', '2', '98'])).toEqual({
      code: 1,
      signal: null,
      stdout: 'Cancelled 1 job: 2 (resize-image on images)\n',
      stderr:
        'error: jobs 99, 98 are done or were deleted, or never were\n  fix: keepDone in the configuration keeps done jobs\n',
    })
    expect(project.count()).toBe(2)
  })

  it('is 3 where the only id is unknown', async () => {
    using project = await waiting()
    expectRefusal(await project.khepri(['cancel', '99']), {
      code: 3,
      says: 'job 99 is done or was deleted, or never was\n  fix: keepDone in the configuration keeps done jobs\n',
    })
    const { code, stdout, stderr } = await project.khepri(['cancel', '99', '--json'])
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toEqual({ cancelled: [], marked: [], missing: [{ id: 99, state: null }] })
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'NOT_FOUND', exit: 3 })
  })

  it('of a failed job says that it has failed, and leaves it', async () => {
    using project = await failed()
    expectRefusal(await project.khepri(['cancel', '1']), {
      code: 3,
      says: 'job 1 has failed already\n  fix: khepri flush deletes failed jobs\n',
    })
    expect((await project.khepri(['failed', '--plain'])).stdout).toMatch(/^1\t/)
  })

  it('of a done job that is kept says that it is done', async () => {
    using project = await migratedProject({ 'jobs/note.mjs': 'export default () => {}' })
    project.write('khepri.config.json', '{"keepDone":"1d"}')
    await project.khepri(['dispatch', '--job=note'])
    await project.khepri(['work', '--stop-when-empty'])
    expectRefusal(await project.khepri(['cancel', '1']), { code: 3, says: 'job 1 is done\n' })
  })

  it('twice is 0 the second time, and says that it was cancelled already', async () => {
    using project = await waiting()
    await project.khepri(['cancel', '1'])
    expect(await project.khepri(['cancel', '1'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Cancelled already: 1\n',
    })
    expect(JSON.parse((await project.khepri(['cancel', '1', '--json'])).stdout)).toEqual({
      cancelled: [],
      marked: [],
      missing: [{ id: 1, state: 'cancelled' }],
    })
  })

  it('an id that is named twice is one job', async () => {
    using project = await waiting()
    expect(await project.khepri(['cancel', '1', '1', '99', '99'])).toMatchObject({
      code: 1,
      stdout: 'Cancelled 1 job: 1 (send-welcome on mail)\n',
      stderr: expect.stringMatching(/^error: job 99 is done/),
    })
  })

  it.each([
    [['--queue=mail'], [1, 3]],
    [['--job=resize-image'], [2]],
    [['--state=scheduled'], [3]],
    [['--state=ready', '--queue=mail'], [1]],
    [['--state=running'], []],
    [
      ['--all', '--yes'],
      [1, 2, 3],
    ],
    [['1', '3', '--state=ready'], [1]],
  ])('%j cancels %j and asks nobody in a pipe', async (words, cancelled) => {
    using project = await waiting()
    const { stdout } = await project.khepri(['cancel', ...words, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ cancelled, marked: [] })
    expect(project.count()).toBe(3 - cancelled.length)
  })

  it('of a named job that does not match the filter says so', async () => {
    using project = await waiting()
    expect(await project.khepri(['cancel', '1', '3', '--state=ready'])).toMatchObject({
      code: 1,
      stdout: 'Cancelled 1 job: 1 (send-welcome on mail)\n',
      stderr: 'error: job 3 does not match the filter\n',
    })
  })

  it('with nothing selected is wrong usage', async () => {
    using project = await waiting()
    const refusal = {
      code: 2,
      says: 'nothing selected\n  fix: name ids or a filter such as --queue, or say --all\n',
    }
    for (const more of [[], ['--yes'], ['--wait'], ['--dry-run']])
      expectRefusal(await project.khepri(['cancel', ...more]), refusal)
    expectRefusal(await project.khepri(['cancel', '1', '--all']), {
      code: 2,
      says: 'ids and --all exclude each other\n',
    })
    expect(project.count()).toBe(3)
  })

  it('--all in a pipe without --yes is 2 and cancels nothing', async () => {
    using project = await waiting()
    expectRefusal(await project.khepri(['cancel', '--all']), {
      code: 2,
      says: 'cancel --all needs --yes where nobody can be asked\n  fix: say --yes; --dry-run counts the jobs\n',
    })
    expectJsonRefusal(await project.khepri(['cancel', '--all', '--json']), { code: 'USAGE', exit: 2 })
    expect(project.count()).toBe(3)
  })

  it('--dry-run names them and changes nothing', async () => {
    using project = await waiting()
    expect(await project.khepri(['cancel', '--all', '--dry-run'])).toMatchObject({
      code: 0,
      stdout: 'Would cancel 3 jobs: 1 (send-welcome on mail), 2 (resize-image on images), 3 (send-welcome on mail)\n',
      stderr: '',
    })
    expect(await project.khepri(['cancel', '1', '99', '--dry-run', '--json'])).toMatchObject({
      code: 1,
      stdout: '{"wouldCancel":[1],"missing":[{"id":99,"state":null}]}\n',
    })
    expect(project.count()).toBe(3)
  })

  it('of a mistyped queue or job says what was meant', async () => {
    using project = await waiting()
    project.write('jobs/send-welcome.mjs', 'export default () => {}')
    expect(await project.khepri(['cancel', '--queue=mial'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing to cancel on queue "mial". Did you mean "mail"?\n',
    })
    expect(await project.khepri(['cancel', '--job=send-welcom'])).toMatchObject({
      code: 0,
      stderr: 'Nothing to cancel named "send-welcom". Did you mean "send-welcome"?\n',
    })
    expect(await project.khepri(['cancel', '--state=runing'])).toMatchObject({
      code: 2,
      stderr:
        'error: --state must be one of scheduled, ready, running, got "runing". Did you mean "running"?\n  fix: khepri cancel --help\n',
    })
  })

  it('of 2,500 jobs is done in chunks and counted', async () => {
    using project = await migratedProject()
    const stdin = '{"job":"note"}\n'.repeat(2_500)
    await project.khepri(['dispatch', '-', '--allow-unknown', '--quiet'], { stdin })
    expect(await project.khepri(['cancel', '--job=note', '--quiet'])).toMatchObject({
      code: 0,
      stdout: 'Cancelled 2,500 jobs\n',
      stderr: '',
    })
    expect(project.count()).toBe(0)
  })

  it('--wait ends at once where no worker holds any of them', async () => {
    using project = await waiting()
    expect(await project.khepri(['cancel', '1', '--wait', '--json'])).toMatchObject({
      code: 0,
      stdout: '{"cancelled":[1],"marked":[],"missing":[],"ended":[]}\n',
      stderr: '',
    })
  })

  describe.skipIf(noTerminal !== null)('at a terminal', () => {
    it('shows what a filter selects and asks; no is no', async () => {
      using project = await waiting()
      const { code, stdout } = await atTerminal(['cancel', '--queue=mail'], { cwd: project.path, stdin: 'n\n' })
      expect(stdout).toContain('Cancel 2 jobs: 1 (send-welcome on mail), 3 (send-welcome on mail)? [y/N]')
      expect(stdout).toContain('Nothing cancelled')
      expect({ code, left: project.count() }).toEqual({ code: 0, left: 3 })
    })

    it('cancels after y, --all too', async () => {
      using project = await waiting()
      const { stdout } = await atTerminal(['cancel', '--all'], { cwd: project.path, stdin: 'y\n', columns: 200 })
      expect(stdout).toContain('Cancelled 3 jobs')
      expect(project.count()).toBe(0)
    })

    it('does not ask about ids, nor with --yes', async () => {
      using project = await waiting()
      for (const words of [['1'], ['--all', '--yes']]) {
        const { stdout } = await atTerminal(['cancel', ...words], { cwd: project.path })
        expect(stdout).not.toContain('[y/N]')
      }
      expect(project.count()).toBe(0)
    })
  })
})
