import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'

const why = async (installation: Installation, id: number): Promise<string> =>
  (JSON.parse(await installation.must('show', `${id}`, '--json')) as { why: string }).why

onBothStores('khepri show', (store) => {
  it.concurrent('tells everything about a job that waits for its next try', async () => {
    await using installation = await Installation.migrated(store)
    const payload = '{"b":12345678901234567890,"a":1.0}'
    const id = await installation.dispatch('fail', '--payload', payload, '--tries=3', '--backoff=1h', '--unique=k')
    await installation.must('work', '--once')
    const { code, stdout, stderr } = await installation.run(['show', `${id}`])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const line of [
      /^id: +1$/m,
      /^job: +fail$/m,
      /^state: +scheduled$/m,
      /^why: +next retry in 59m \S+, at \S+Z \(try 2\/3\)$/m,
      /^queue: +default$/m,
      /^unique: +k$/m,
      /^dispatched: \S+Z$/m,
      /^due: +\S+Z$/m,
      /^failures: +1$/m,
      /^payload: +\{"b":12345678901234567890,"a":1\.0\}$/m,
      /^envelope: +\{"v":1,/m,
      /^attempt 1 {3}\S+Z, \S+, on /m,
      /^ {2}Error: not mended yet$/m,
      /^ +at /m,
    ])
      expect(stdout).toMatch(line)
  })

  it.concurrent('says what a job waits for; it runs once that is done, and dispatch refuses what there never was', async () => {
    await using installation = await Installation.migrated(store)
    const parent = await installation.dispatch('fail')
    const child = await installation.dispatch('note', `--after=${parent}`)
    expect(await why(installation, child)).toBe(`waits for job ${parent} (ready)`)
    await installation.must('work', '--stop-when-empty')
    expect(await why(installation, child)).toBe(`waits for job ${parent} (failed); khepri retry ${parent} leads on`)
    expect(await installation.must('list', '--state=scheduled', '--plain')).toContain('waits for other jobs')

    expectRefusal(await installation.run(['dispatch', '--job=note', '--after=99']), {
      code: 3,
      says: 'after names job 99, and no job has had that id yet\n  fix: khepri list shows the jobs that there are\n',
    })
    installation.mend()
    await installation.must('retry', `${parent}`)
    await installation.must('work', '--stop-when-empty')
    expect((await installation.run(['show', `${child}`])).code).toBe(3)
  })

  it.concurrent('--json gives payload and envelope byte for byte, and the attempts', async () => {
    await using installation = await Installation.migrated(store)
    const payload = '{"b":12345678901234567890,"a":1.0,"a":{"__proto__":1}}'
    await installation.dispatch('fail', '--payload', payload)
    await installation.must('work', '--once')
    const stdout = await installation.must('show', '1', '--json')
    expect(stdout).toContain(`"payload":${payload},"envelope":{"v":1,`)
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ id: 1, job: 'fail', state: 'failed', reason: 'tries', error: 'not mended yet' },
      why: 'failed: its tries are spent; khepri retry 1 puts it back',
      attempts: [{ attempt: 1, message: 'not mended yet' }],
    })
  })

  it.concurrent('says why a job is not running', async () => {
    await using installation = await Installation.migrated(store)
    const later = await installation.dispatch('note', '--delay=2h')
    expect(await why(installation, later)).toMatch(/^not due for 1h 59m, at \S+Z$/)
    const ready = await installation.dispatch('note')
    expect(await why(installation, ready)).toBe('no live worker serves its queue default')

    await using worker = await installation.worker('--queue=high,default', '--name=web1')
    const held = await installation.dispatch('hold', '--queue=high')
    await installation.ledger.untilStarted(1)
    expect(await why(installation, held)).toMatch(/^running on worker web1 for \S+, lease until \S+Z$/)
    const next = await installation.dispatch('note')
    const last = await installation.dispatch('note', '--priority=7')
    expect(await why(installation, next)).toBe('waiting for a free slot on web1')
    expect(await why(installation, last)).toBe('waiting behind 1 job on default of a better priority or a longer wait')
    await installation.dispatch('note', '--queue=high')
    expect(await why(installation, next)).toBe('waiting behind 1 ready job on the better queue high')

    await installation.ask("insert into jobs_queues (name, paused_at, reason) values ('default', 0, 'deploy')")
    expect(await why(installation, next)).toBe('its queue default is paused since 1970-01-01T00:00:00.000Z: deploy')
    worker.kill('SIGKILL')
  })

  it.concurrent('of a cancelled job says so; of a done one that it is done, or deleted where nothing keeps it', async () => {
    await using installation = await Installation.migrated(store)
    const cancelled = await installation.dispatch('note')
    await installation.must('cancel', `${cancelled}`)
    expect(await why(installation, cancelled)).toBe('it was cancelled')
    const done = await installation.dispatch('note')
    await installation.run(['work', '--once'], { env: { KHEPRI_KEEP_DONE: '1h' } })
    expect(await why(installation, done)).toBe('it is done')
    const gone = await installation.dispatch('note')
    await installation.must('work', '--once')
    expectRefusal(await installation.run(['show', `${gone}`]), {
      code: 3,
      says: `job ${gone} is done or was deleted, or never was\n  fix: keepDone in the configuration keeps done jobs\n`,
    })
  })
})

describe('khepri show', () => {
  it('--envelope prints what dispatch accepts: the job that it makes has the same envelope', async () => {
    using project = await migratedProject({ 'jobs/note.mjs': 'export default () => {}' })
    await project.khepri(['dispatch', '--job=note', '--payload', '{"x": 1.50}', '--tries=4', '--backoff=5s'])
    const { stdout } = await project.khepri(['show', '1', '--envelope'])
    expect(stdout).toMatch(/^\{"v":1,.*"payload":\{"x": 1\.50\}\}\n$/)
    project.write('job.json', stdout)
    expect(await project.khepri(['dispatch', 'job.json', '--quiet'])).toMatchObject({ code: 0, stdout: '2\n' })
    const copy = await project.khepri(['show', '2', '--envelope'])
    const withoutTime = (text: string): string => text.replace(/"dispatchedAt":\d+/, '')
    expect(withoutTime(copy.stdout)).toBe(withoutTime(stdout))
  })

  it('--envelope of a row that holds no JSON is 65, and show shows it all the same', async () => {
    await using installation = await Installation.migrated('sqlite')
    await installation.dispatch('note')
    await installation.ask(`update jobs set envelope = '{"job": oops'`)
    expectRefusal(await installation.run(['show', '1', '--envelope']), {
      code: 65,
      says: 'the envelope of job 1 is not valid JSON\n  fix: khepri show 1 shows it all the same\n',
    })
    expect(await installation.must('show', '1')).toMatch(/^envelope: +\{"job": oops$/m)
  })

  it('--json of an unknown id is one line of JSON and 3', async () => {
    using project = await migratedProject()
    expectJsonRefusal(await project.khepri(['show', '99', '--json']), { code: 'NOT_FOUND', exit: 3 })
  })

  it.each<[string[], string | RegExp]>([
    [[], /id/i],
    [['four'], '"four" is not a job id; ids are whole numbers\n'],
    [['1', '2'], 'unexpected argument "2"\n'],
  ])('%j is wrong usage', async (words, says) => {
    using project = await migratedProject()
    expectRefusal(await project.khepri(['show', ...words]), { code: 2, says })
  })

  it.skipIf(terminalSkipReason() !== null)('shows moments with their ages at a terminal', async () => {
    using project = await migratedProject()
    await project.khepri(['dispatch', '--job=note', '--allow-unknown', '--delay=1h'])
    const { stdout } = await atTerminal(['show', '1', '--color=never'], { cwd: project.path })
    expect(stdout).toMatch(/^due: +\S+Z \(in 59m\)$/m)
  })
})
