import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { expectRefusal } from '../support/refusals.ts'
import { repository } from '../support/temp-project.ts'

const hasZsh = spawnSync('zsh', ['--version']).status === 0
const hasFish = spawnSync('fish', ['--version']).status === 0

/** As much time as a busy machine may need: what is asked here is what comes, not when. */
const patient = ['--reply', '--within=60s', '--']

const jobs = { 'jobs/note.mjs': 'export default () => {}', 'jobs/nap.mjs': 'export default () => {}' }

/** What is offered for the last of these words, in the form of a shell. */
async function offered(project: KhepriProject, shell: string, ...words: readonly string[]): Promise<readonly string[]> {
  const { code, stdout, stderr } = await project.khepri(['completion', shell, ...patient, ...words])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.split('\n').slice(0, -1)
}

describe('khepri completion', () => {
  it('offers commands, flags of a command, and the words that a flag knows', async () => {
    using project = new KhepriProject(jobs)
    expect(await offered(project, 'bash', 're')).toEqual(['retry', 'resume', 'restart'])
    expect(await offered(project, 'bash', 'work', '--s')).toEqual(['--stop-when-empty', '--sleep', '--schedule'])
    expect(await offered(project, 'bash', 'work', '--unknown', '')).toEqual(['fail', 'wait'])
    expect(await offered(project, 'bash', '--color', 'never', 'dis')).toEqual(['dispatch'])
    expect(await offered(project, 'bash', 'completion', '')).toEqual(['bash', 'zsh', 'fish'])
    expect(await offered(project, 'bash', 'wrok', '')).toEqual([])
  })

  it('offers names of jobs and queues of the configuration, without a database', async () => {
    using project = new KhepriProject({ ...jobs, 'khepri.config.json': '{"queues":{"high":{},"mail":{}}}' })
    expect(await offered(project, 'bash', 'run', 'n')).toEqual(['nap', 'note'])
    expect(await offered(project, 'bash', 'pause', 'high', '')).toEqual(['default', 'mail'])
  })

  it('completes the last name of a list, and bash keeps the word as it has split it', async () => {
    using project = new KhepriProject({ 'khepri.config.json': '{"queues":{"high":{},"mail":{}}}' })
    expect(await offered(project, 'bash', 'work', '--queue', '=', 'high,m')).toEqual(['high,mail'])
    expect(await offered(project, 'fish', 'work', '--queue=high,m')).toEqual(['--queue=high,mail\tqueue'])
    expect(await offered(project, 'zsh', 'work', '-q', 'm')).toEqual(['mail:queue'])
  })

  it('reads the installation that the line itself names', async () => {
    using project = new KhepriProject({ 'other/khepri.config.json': '{"queue":"elsewhere"}' })
    expect(await offered(project, 'bash', '--config=other/khepri.config.json', 'pause', 'e')).toEqual(['elsewhere'])
    expect(await offered(project, 'bash', '-C', 'other/khepri.config.json', 'pause', 'e')).toEqual(['elsewhere'])
  })

  it('offers nothing, and says nothing, where the configuration is broken or there is no database', async () => {
    using project = new KhepriProject({ 'khepri.config.json': '{"tires":1}' })
    expect(await offered(project, 'bash', 'run', '')).toEqual([])
    expect(await offered(project, 'bash', 'show', '')).toEqual([])
  })

  it('a name with a blank, a colon or an escape code is one line and one word', async () => {
    using project = await migratedProject()
    await project.khepri(['dispatch', '--allow-unknown', '--job=x', '--queue=two words: $HOME'])
    expect(await offered(project, 'bash', 'pause', 't')).toEqual(['two\\ words:\\ \\$HOME'])
    expect(await offered(project, 'zsh', 'pause', 't')).toEqual(['two words\\: $HOME:queue'])
  })

  it('ends without an answer when 300 ms are over, whatever it is waiting for', async () => {
    using project = new KhepriProject({ 'khepri.config.mjs': 'for (;;);' })
    const blocked = await project.khepri(['completion', 'bash', '--reply', '--', 'run', ''])
    expect(blocked.stdout).toBe('')
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as { port: number }
    const url = `--database=postgres://app@127.0.0.1:${port}/app`
    const waiting = project.khepri(['completion', 'bash', '--reply', '--', url, 'show', ''])
    expect((await waiting).stdout).toBe('')
    silent.close()
  })

  it('bash completes with what it prints', async () => {
    using project = new KhepriProject({ ...jobs, 'khepri.config.json': '{"queues":{"high":{},"mail":{}}}' })
    const patiently = `shift; exec '${process.execPath}' '${join(repository, 'bin/run.cjs')}' completion --within=60s "$@"`
    chmodSync(project.write('bin/khepri', `#!/bin/sh\n${patiently}\n`), 0o755)
    project.write('script', (await project.khepri(['completion', 'bash'])).stdout)
    const typed = 'COMP_WORDS=(khepri work --queue = high,m); COMP_CWORD=4; _khepri; echo $COMPREPLY'
    const { stdout, stderr } = spawnSync('bash', ['-c', `. ./script; ${typed}`], {
      cwd: project.path,
      encoding: 'utf8',
      env: { ...process.env, PATH: `${join(project.path, 'bin')}${delimiter}${process.env['PATH']}` },
    })
    expect({ stdout, stderr }).toEqual({ stdout: 'high,mail\n', stderr: '' })
  })

  it.skipIf(!hasZsh)('zsh reads what it prints', async () => {
    using project = new KhepriProject()
    project.write('script', (await project.khepri(['completion', 'zsh'])).stdout)
    expect(spawnSync('zsh', ['-n', 'script'], { cwd: project.path, encoding: 'utf8' }).stderr).toBe('')
  })

  it.skipIf(!hasFish)('fish reads what it prints', async () => {
    using project = new KhepriProject()
    project.write('script', (await project.khepri(['completion', 'fish'])).stdout)
    expect(spawnSync('fish', ['-n', 'script'], { cwd: project.path, encoding: 'utf8' }).stderr).toBe('')
  })

  it.each<[string[], RegExp]>([
    [['completion'], /^missing argument/i],
    [['completion', 'csh'], /csh/],
  ])('%j is wrong usage', async (words, says) => {
    using project = new KhepriProject()
    expectRefusal(await project.khepri(words), { code: 2, says })
  })
})

onBothStores('khepri completion', (store) => {
  it('offers ids that fit the command, the newest first, with what they are', async () => {
    await using installation = await Installation.migrated(store)
    const failed = await installation.dispatch('fail')
    await installation.must('work', '--once')
    const [first, second] = [await installation.dispatch('note'), await installation.dispatch('note')]
    const ids = async (...words: readonly string[]): Promise<string> =>
      installation.must('completion', 'fish', ...patient, ...words)
    expect(await ids('retry', '')).toBe(`${failed}\tfail on default, failed\n`)
    expect(await ids('cancel', '')).toBe(`${second}\tnote on default, ready\n${first}\tnote on default, ready\n`)
    expect(await ids('cancel', String(second), '')).toBe(`${first}\tnote on default, ready\n`)
    expect((await ids('show', '')).split('\n')).toHaveLength(4)
  })
})
