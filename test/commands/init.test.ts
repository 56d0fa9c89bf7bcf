import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../support/cli.ts'
import { KhepriProject } from '../support/khepri-project.ts'
import { TempProject } from '../support/temp-project.ts'

const next = `Next:  khepri migrate && khepri dispatch --job send-welcome --payload '{"userId":7}' && khepri work\n`

describe('khepri init', () => {
  it('writes a configuration and a sample job, and names the next three commands', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['init'])).toEqual({
      code: 0,
      signal: null,
      stdout: 'created  khepri.config.ts         sqlite:./khepri.db\ncreated  jobs/send-welcome.ts     a sample job\n',
      stderr: next,
    })
    expect(readFileSync(join(project.path, 'jobs/send-welcome.ts'), 'utf8')).toBe(`import { defineJob } from 'khepri'
export default defineJob<{ userId: number }>({
  tries: 3, backoff: ['10s', '1m'], timeout: '30s',
  async handle(payload, { signal, log }) { log(\`greeting user \${payload.userId}\`) },
})
`)
  })

  it.each([[[]], [['--js']]])(
    'what init %j writes runs, by the three commands it names, in a folder that was empty',
    async (flags) => {
      using folder = new TempProject()
      const khepri = (...args: readonly string[]) => run(args, { cwd: folder.path })
      expect(await khepri('init', ...flags)).toMatchObject({ code: 0 })
      expect(await khepri('migrate')).toMatchObject({ code: 0 })
      expect(await khepri('dispatch', '--job', 'send-welcome', '--payload', '{"userId":7}')).toMatchObject({
        code: 0,
        stdout: '1\n',
      })
      const { code, stdout } = await khepri('work', '--once')
      expect(code).toBe(0)
      expect(stdout).toContain('greeting user 7')
      expect(stdout).toMatch(/ DONE 1 send-welcome /)
    },
  )

  it('writes .mjs with --js', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['init', '--js', '--json'])).toMatchObject({
      code: 0,
      stdout: '{"created":["khepri.config.mjs","jobs/send-welcome.mjs"]}\n',
    })
    expect(readFileSync(join(project.path, 'jobs/send-welcome.mjs'), 'utf8')).toContain('export default defineJob({')
  })

  it('writes the database that it is told', async () => {
    using project = new KhepriProject()
    await project.khepri(['init', '--database=postgres://app@db1/app'])
    expect(readFileSync(join(project.path, 'khepri.config.ts'), 'utf8')).toContain("database: 'postgres://app@db1/app'")
  })

  it('does not write a password into a file', async () => {
    using project = new KhepriProject()
    const { stdout, stderr } = await project.khepri(['init', '--database=postgres://app:s3cret@db1/app'])
    const config = readFileSync(join(project.path, 'khepri.config.ts'), 'utf8')
    expect(config).toContain('database: process.env.KHEPRI_DATABASE_URL,')
    expect(config + stdout + stderr).not.toContain('s3cret')
    expect(stderr).toContain('set KHEPRI_DATABASE_URL before the next commands\n')
  })

  it('does not write a database that no command could use', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['init', '--database=mysql://x'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--database: no store for "mysql:"'),
    })
    expect(readdirSync(project.path)).toEqual(['package.json'])
  })

  it('in a package of CommonJS does not leave the reader to find out that imports of the jobs fail', async () => {
    using project = new KhepriProject({ 'package.json': '{"type":"commonjs"}' })
    const { stderr } = await project.khepri(['init'])
    expect(stderr).toContain('run npm pkg set type=module\n')
  })

  it('in a folder that has been removed is refused with 78, and is no bug', async () => {
    using project = new KhepriProject({ 'gone/keep': '' })
    const { code, stderr } = await project.khepri(['init'], { shell: 'cd gone && rm -r ../gone && exec "$@"' })
    expect(stderr).toBe('error: the working directory does not exist any more\n  fix: change to a folder that exists\n')
    expect(code).toBe(78)
  })

  it('over a file that is there writes nothing at all, 73', async () => {
    using project = new KhepriProject({ 'jobs/send-welcome.ts': 'mine' })
    expect(await project.khepri(['init'])).toMatchObject({
      code: 73,
      stdout: '',
      stderr: 'error: jobs/send-welcome.ts exists already\n  fix: khepri init --force writes over it\n',
    })
    expect(readdirSync(project.path).sort()).toEqual(['jobs', 'package.json'])
    expect(readFileSync(join(project.path, 'jobs/send-welcome.ts'), 'utf8')).toBe('mine')
  })

  it('writes over it with --force', async () => {
    using project = new KhepriProject({ 'jobs/send-welcome.ts': 'mine' })
    expect(await project.khepri(['init', '--force'])).toMatchObject({ code: 0 })
    expect(readFileSync(join(project.path, 'jobs/send-welcome.ts'), 'utf8')).toContain('defineJob')
  })

  it('beside another configuration refuses even with --force, for only one would count', async () => {
    using project = new KhepriProject({ 'khepri.config.json': '{}' })
    expect(await project.khepri(['init', '--force'])).toMatchObject({
      code: 73,
      stderr:
        'error: khepri.config.json is there already\n  fix: remove khepri.config.json first: of two configurations nobody knows which one counts, so --force does not help\n',
    })
    expect(readdirSync(project.path).sort()).toEqual(['khepri.config.json', 'package.json'])
  })

  it('where a folder has the name of a file says so, without a stack trace', async () => {
    using project = new KhepriProject()
    mkdirSync(join(project.path, 'khepri.config.ts'))
    expect(await project.khepri(['init', '--force'])).toMatchObject({
      code: 74,
      stderr: 'error: cannot write khepri.config.ts: EISDIR\n',
    })
  })
})
