import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'

const note = { 'jobs/note.mjs': 'export default () => {}' }
const declared = { ...note, 'khepri.config.json': '{"queues":{"high":{},"default":{}}}' }

describe('a dispatch', () => {
  it('to a queue that nobody declared does not pass without a warning', async () => {
    using project = await migratedProject(declared)
    expect(await project.khepri(['dispatch', '--job=note', '--queue=hihg'])).toMatchObject({
      code: 0,
      stdout: '1\n',
      stderr:
        'warning: no declared queue "hihg". Did you mean "high"?\n' +
        'Dispatched note on hihg. Run it: khepri work --queue=hihg\n',
    })
  })

  it('to a queue that `khepri work` does not serve by itself does not recommend it bare', async () => {
    using project = await migratedProject(note)
    const jobs = '{"job":"note"}\n{"job":"note","queue":"my mail"}\n'
    writeFileSync(join(project.path, 'two.ndjson'), jobs)
    const { stderr } = await project.khepri(['dispatch', 'two.ndjson'])
    expect(stderr).toBe("Dispatched 2 jobs. Run them: khepri work --queue='default,my mail'\n")
  })

  it('of a job name where a file is expected does not leave the reader guessing', async () => {
    using project = await migratedProject(note)
    expect(await project.khepri(['dispatch', 'note', '--payload={}'])).toMatchObject({ code: 2 })
    expect(await project.khepri(['dispatch', 'note'])).toMatchObject({
      code: 66,
      stderr: 'error: cannot read note: no such file. Did you mean --job note?\n',
    })
  })

  it.each([
    [['lines.ndjson'], ''],
    [['-'], '{"job":"note"}\n{"job":"note"}\n{"job":7}\n'],
  ])('%j that is refused at its third line does not hide that the first two are not in', async (words, stdin) => {
    using project = await migratedProject(note)
    writeFileSync(join(project.path, 'lines.ndjson'), '{"job":"note"}\n{"job":"note"}\n{"job":7}\n')
    const { code, stderr } = await project.khepri(['dispatch', ...words], { stdin })
    expect(code).toBe(65)
    expect(stderr).toMatch(/:3: job must be a name, got 7\nnothing was dispatched\n$/)
    expect(project.count()).toBe(0)
  })

  it('whose first chunk is in does not say that nothing is', async () => {
    using project = await migratedProject(note)
    const stdin = '{"job":"note"}\n{"job":"note"}\n{"job":7}\n'
    const { code, stderr } = await project.khepri(['dispatch', '-', '--chunk=1'], { stdin })
    expect(code).toBe(65)
    expect(stderr).toContain('2 jobs are in, up to stdin:2')
    expect(stderr).not.toContain('nothing was dispatched')
    expect(project.count()).toBe(2)
  })

  it.skipIf(terminalSkipReason() !== null)('that is typed does not sit there without a word', async () => {
    using project = await migratedProject(note)
    const { stdout } = await atTerminal(['dispatch', '-'], { cwd: project.path, stdin: '{"job":"note"}\n\u0004' })
    expect(stdout).toContain('reading from the terminal, Ctrl-D ends')
    expect(stdout).toContain('Dispatched 1 job')
  })
})

describe('khepri work', () => {
  it('does not wait without a word for a queue or a job that nobody knows', async () => {
    using project = await migratedProject(declared)
    const { code, stderr } = await project.khepri(['work', '--queue=hihg', '--job=nota', '--stop-when-empty'])
    expect(code).toBe(0)
    expect(stderr).toContain('warning: no declared queue "hihg". Did you mean "high"?\n')
    expect(stderr).toContain('warning: no registered job "nota". Did you mean "note"?\n')
  })

  it('--exit-code does not pass for a good run where a module cannot be loaded', async () => {
    using project = await migratedProject({
      'bad.mjs': 'export default () => { return',
      'note.mjs': note['jobs/note.mjs'],
      'khepri.config.json': '{"jobs":{"note":"./note.mjs","bad":{"module":"./bad.mjs","tries":2}}}',
    })
    const jobs = '{"job":"bad"}\n{"job":"note"}\n'
    // The definition carries its terms, so that a dispatch need not load the module.
    expect((await project.khepri(['dispatch', '-'], { stdin: jobs })).code).toBe(0)
    expect((await project.khepri(['work', '--stop-when-empty', '--exit-code'])).code).toBe(78)
    expect((await project.khepri(['work', '--stop-when-empty', '--except-job=bad', '--exit-code'])).code).toBe(0)
  })

  it('does not ignore a misspelled variable without a word', async () => {
    using project = await migratedProject(note)
    const env = { KHEPRI_WORK_CONCURENCY: '4', KHEPRI_JOB_ID: '7' }
    const { code, stderr } = await project.khepri(['work', '--stop-when-empty'], { env })
    expect(code).toBe(0)
    expect(stderr).toBe(
      'warning: KHEPRI_WORK_CONCURENCY is not read by khepri. Did you mean "KHEPRI_WORK_CONCURRENCY"?\n',
    )
  })
})

describe('a database file that is not there', () => {
  it('does not look like one that was not migrated, where no configuration names it', async () => {
    using project = new KhepriProject(note)
    expect(await project.khepri(['status'])).toMatchObject({
      code: 78,
      stderr:
        `error: no database at ${join(project.path, 'khepri.db')}; no configuration was found from ${project.path} upward\n` +
        '  fix: run it in the folder of your project, or name it with --config or --database; for a new database: khepri migrate\n',
    })
  })

  it('is not looked for elsewhere than the configuration says', async () => {
    using project = new KhepriProject({ 'app/khepri.config.json': '{}', 'app/package.json': '{}' })
    const { stderr } = await project.khepri(['failed', '-C', 'app/khepri.config.json', '--database=sqlite:khepri.db'])
    expect(stderr).toContain(`error: no database at ${join(project.path, 'khepri.db')}; the configuration is `)
  })
})
