import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { KhepriProject } from '../support/khepri-project.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'

describe('khepri make job', () => {
  it('writes a job that runs', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['make', 'job', 'send-invoice'])).toMatchObject({
      code: 0,
      stdout: 'created  jobs/send-invoice.ts     a job\n',
      stderr: "Next:  khepri run send-invoice --payload '{}'\n",
    })
    const { code, stderr } = await project.khepri(['run', 'send-invoice', '--payload', '{"n":1}'])
    expect(stderr).toMatch(/^running with \{ n: 1 \}\nRan send-invoice in /)
    expect(code).toBe(0)
  })

  it('writes JavaScript with --js and where the configuration is JavaScript', async () => {
    using project = new KhepriProject({ 'khepri.config.mjs': `export default { jobs: './work' }` })
    expect(await project.khepri(['make', 'job', 'a'])).toMatchObject({ stdout: 'created  work/a.mjs     a job\n' })
    using plain = new KhepriProject()
    expect(await plain.khepri(['make', 'job', 'a', '--js', '--json'])).toMatchObject({
      code: 0,
      stdout: '{"created":"jobs/a.mjs","job":"a"}\n',
    })
    expect(await plain.khepri(['run', 'a'])).toMatchObject({ code: 0 })
  })

  it('writes an executable with --exec', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['make', 'job', 'resize', '--exec'])).toMatchObject({
      code: 0,
      stdout: 'created  jobs/resize     an executable job\n',
    })
    const path = join(project.path, 'jobs/resize')
    expect(statSync(path).mode & 0o777).toBe(0o755)
    expect(readFileSync(path, 'utf8')).toMatch(/^#!\/bin\/sh\n/)
  })

  it('writes from a folder inside the project into the folder of the configuration, and says where to register it otherwise', async () => {
    using project = new KhepriProject({
      'khepri.config.json': '{"jobs":{"a":"./lib/a.mjs"}}',
      'lib/a.mjs': 'export default () => {}',
    })
    expect(await project.khepri(['make', 'job', 'b'], { shell: 'cd lib && exec "$@"' })).toMatchObject({
      code: 0,
      stdout: 'created  ../jobs/b.ts     a job\n',
      stderr: "Next:  add 'b' to jobs in the configuration: './jobs/b.ts'\n",
    })
  })

  it('never writes over a file, unless --force says so', async () => {
    using project = new KhepriProject({ 'jobs/a.ts': 'mine' })
    expectRefusal(await project.khepri(['make', 'job', 'a']), {
      code: 73,
      says: 'jobs/a.ts exists already\n  fix: khepri make job a --force writes over it\n',
    })
    expect(readFileSync(join(project.path, 'jobs/a.ts'), 'utf8')).toBe('mine')
    expectJsonRefusal(await project.khepri(['make', 'job', 'a', '--json']), { code: 'FILE_EXISTS', exit: 73 })
    expect(await project.khepri(['make', 'job', 'a', '--force'])).toMatchObject({ code: 0 })
    expect(readFileSync(join(project.path, 'jobs/a.ts'), 'utf8')).toMatch(/^import \{ defineJob \} from 'khepri'\n/)
  })

  it.each<[string[], string | RegExp]>([
    [[], /kind/i],
    [['job'], /name/i],
    [['queue', 'a'], /job/],
    [['job', '_a'], 'NAME must be a file name that does not begin with . or _, got "_a"\n'],
    [['job', '../a'], 'NAME must be a file name that does not begin with . or _, got "../a"\n'],
    [['job', 'a', '--exec', '--js'], '--exec and --js exclude each other\n'],
  ])('%j is wrong usage', async (words, says) => {
    using project = new KhepriProject()
    expectRefusal(await project.khepri(['make', ...words]), { code: 2, says })
  })

  it.skipIf(terminalSkipReason() !== null)('says the same at a terminal', async () => {
    using project = new KhepriProject()
    const { stdout } = await atTerminal(['make', 'job', 'a', '--color=never'], { cwd: project.path })
    expect(stdout).toBe("created  jobs/a.ts     a job\nNext:  khepri run a --payload '{}'\n")
  })
})
