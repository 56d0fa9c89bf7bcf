import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { atTerminal, terminalShell, terminalSkipReason } from '../support/cli.ts'
import { failJobs } from '../support/failures.ts'
import { type KhepriProject, migratedProject } from '../support/khepri-project.ts'

const noTerminal = terminalSkipReason()

const databaseOf = (project: KhepriProject): string => `sqlite:${join(project.path, 'khepri.db')}`

/** Job 1 failed eight days ago on "old", jobs 2 and 3 just now on "new". */
async function failures(): Promise<KhepriProject> {
  const project = await migratedProject()
  await failJobs(databaseOf(project), [{ queue: 'old' }], 8 * 86_400_000)
  await failJobs(databaseOf(project), [{ queue: 'new' }, { queue: 'new' }])
  return project
}

async function failedIds(project: KhepriProject): Promise<readonly number[]> {
  const { stdout } = await project.khepri(['failed', '--json'])
  return (JSON.parse(stdout) as { id: number }[]).map(({ id }) => id).sort((a, b) => a - b)
}

describe('khepri flush', () => {
  it('in a pipe without ids, filter, --all or --yes does not delete everything', async () => {
    using project = await failures()
    expect(await project.khepri(['flush'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'error: nothing selected\n  fix: name ids or a filter such as --queue, or say --all\n',
    })
    expect(await failedIds(project)).toEqual([1, 2, 3])
  })

  it('of ids and "all" at once is refused', async () => {
    using project = await failures()
    expect((await project.khepri(['flush', '2', 'all'])).code).toBe(2)
    expect(await failedIds(project)).toEqual([1, 2, 3])
  })

  it.each(['all', '--all', '--yes'])('%s in a pipe deletes all without asking', async (word) => {
    using project = await failures()
    expect(await project.khepri(['flush', word])).toMatchObject({
      code: 0,
      stdout: 'Deleted 3 jobs: 1 (boom on old), 2 (boom on new), 3 (boom on new)\n',
      stderr: '',
    })
    expect(await failedIds(project)).toEqual([])
    expect(await project.khepri(['flush', word])).toMatchObject({ code: 0, stdout: '', stderr: 'Nothing to delete\n' })
  })

  it.each([
    [['2'], [1, 3]],
    [['--queue=new'], [1]],
    [['--older-than=7d'], [2, 3]],
    [
      ['--older-than=7d', '--until=2000-01-01T00:00Z'],
      [1, 2, 3],
    ],
    [
      ['2', '3', '--older-than=7d'],
      [1, 2, 3],
    ],
  ])('flush %j leaves %j', async (words, left) => {
    using project = await failures()
    await project.khepri(['flush', ...words])
    expect(await failedIds(project)).toEqual(left)
  })

  it('says the count with --json, and which ids were not there', async () => {
    using project = await failures()
    const { code, stdout, stderr } = await project.khepri(['flush', '2', '99', '--json'])
    expect({ code, stdout, error: JSON.parse(stderr).error.message }).toEqual({
      code: 1,
      stdout: '{"deleted":1,"missing":[99]}\n',
      error: 'no failed job 99',
    })
  })

  it('of an unknown id alone is 3', async () => {
    using project = await failures()
    expect(await project.khepri(['flush', '99'])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: 'error: no failed job 99\n',
    })
  })

  describe.skipIf(noTerminal !== null)('at a terminal', () => {
    it('shows the count and asks; no is no', async () => {
      using project = await failures()
      const { code, stdout } = await atTerminal(['flush', '--queue=new'], { cwd: project.path, stdin: 'n\n' })
      expect({ code, asked: stdout.includes('Delete 2 jobs: 2 (boom on new), 3 (boom on new)? [y/N]') }).toEqual({
        code: 0,
        asked: true,
      })
      expect(stdout).toContain('Nothing deleted')
      expect(await failedIds(project)).toEqual([1, 2, 3])
    })

    it('deletes after y, and without asking with --yes', async () => {
      using project = await failures()
      expect((await atTerminal(['flush', '--queue=new'], { cwd: project.path, stdin: 'y\n' })).stdout).toContain(
        'Deleted 2 jobs',
      )
      const { stdout } = await atTerminal(['flush', '--yes'], { cwd: project.path })
      expect(stdout).not.toContain('[y/N]')
      expect(await failedIds(project)).toEqual([])
    })

    it('Ctrl-C at the question does not pass for a good end', async () => {
      using project = await failures()
      const shell = `mkfifo answer && exec 3<>answer && ${terminalShell(80)} <&3`
      await using asking = project.start(['flush', '--queue=new'], { shell })
      await asking.until(/\[y\/N\]/)
      writeFileSync(join(project.path, 'answer'), '\u0003')
      expect((await asking.ended).code).toBe(130)
      expect(await failedIds(project)).toEqual([1, 2, 3])
    })

    it('deletes only what had failed when it asked', async () => {
      using project = await failures()
      // A pipe that stays open, so that the answer can come late.
      const shell = `mkfifo answer && exec 3<>answer && ${terminalShell(80)} <&3`
      await using asking = project.start(['flush', '--queue=new'], { shell })
      await asking.until(/\[y\/N\]/)
      await failJobs(databaseOf(project), [{ queue: 'new' }])
      writeFileSync(join(project.path, 'answer'), 'y\n')
      expect((await asking.ended).stdout).toContain('Deleted 2 jobs')
      expect(await failedIds(project)).toEqual([1, 4])
    })
  })
})
