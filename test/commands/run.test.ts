import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'

/** Every row of every table: what a run must not change. */
async function rows(installation: Installation): Promise<unknown> {
  const tables = ['jobs', 'failed_jobs', 'jobs_ended', 'jobs_attempts', 'jobs_workers']
  return Promise.all(tables.map((table) => installation.ask(`select * from ${table} order by id`)))
}

onBothStores('khepri run --id', (store) => {
  it.concurrent('runs a failed job again with its exact payload, on the try it failed on, and changes nothing', async () => {
    await using installation = await Installation.migrated(store)
    const id = await installation.dispatch(
      'fail',
      '--payload',
      '{"b":12345678901234567890}',
      '--tries=2',
      '--backoff=none',
    )
    await installation.must('work', '--stop-when-empty')
    const before = await rows(installation)
    const again = await installation.run(['run', '--id', `${id}`])
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toMatch(
      /^error: fail failed after \S+: Error: not mended yet\nA worker would fail it for good \(this was try 2\/2\)\n$/,
    )
    installation.mend()
    expect(await installation.run(['run', '--id', `${id}`])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^Ran fail in \S+\n$/),
    })
    expect(await rows(installation)).toEqual(before)
    const { starts } = installation.ledger
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2, 2, 2])
    expect(starts.at(-1)).toMatchObject({ id, payload: '{"b":12345678901234567890}' })
  })

  it.concurrent('of a job that waits is its next try, and leaves it where it is', async () => {
    await using installation = await Installation.migrated(store)
    const id = await installation.dispatch('note', '--delay=1h')
    const before = await rows(installation)
    await installation.must('run', '--id', `${id}`)
    expect(installation.ledger.ends).toMatchObject([{ id, attempt: 1 }])
    expect(await rows(installation)).toEqual(before)
  })
})

const jobs = {
  'jobs/greet.mjs': `export default ({ name = 'nobody' }, { log, attempt, tries }) => {
    log('greeting', name)
    console.log(name + ' ' + attempt + '/' + tries)
  }`,
  'jobs/boom.mjs': `import { defineJob } from 'khepri'
    export default defineJob({ tries: 3, backoff: '10s', handle() { throw new TypeError('it broke') } })`,
  'jobs/late.mjs': `export default (_, { signal }) => { setTimeout(() => { throw new Error('from a timer') }); return new Promise(() => {}) }`,
  'jobs/later.mjs': `export default (_, { release }) => release('10m')`,
  'jobs/slow.mjs': `import { setTimeout as wait } from 'node:timers/promises'
    import { defineJob } from 'khepri'
    export default defineJob({ timeout: '50ms', handle: (_, { signal }) => wait(60_000, undefined, { signal }) })`,
  'jobs/hold.mjs': `import { setTimeout as wait } from 'node:timers/promises'
    export default (_, { signal }) => { console.log('begun'); return wait(60_000, undefined, { signal }) }`,
  'jobs/strict.mjs': `import { defineJob } from 'khepri'
    const validate = (value) => value.n > 0 ? { value } : { issues: [{ message: 'n must be above 0' }] }
    export default defineJob({ schema: { '~standard': { version: 1, vendor: 'test', validate } }, handle() {} })`,
}

describe('khepri run', () => {
  it('shows what an executable has written, whether or not it fails', async () => {
    using project = new KhepriProject({
      'khepri.config.json':
        '{"jobs":{"ex":{"exec":"/bin/sh","args":["-c","echo out; echo err >&2; exit $0","0"]},"bad":{"exec":"/bin/sh","args":["-c","echo out; exit $0","3"]}}}',
    })
    expect(await project.khepri(['run', 'ex'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^(out\nerr|err\nout)\n$/),
    })
    expect(await project.khepri(['run', 'bad'])).toMatchObject({ code: 1, stdout: 'out\n' })
  })

  it('runs a job by its name, without any store: what it prints is stdout, what it logs stderr', async () => {
    using project = new KhepriProject(jobs)
    const { code, stdout, stderr } = await project.khepri(['run', 'greet', '--set', 'name=Ada'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Ada 1/1\n' })
    expect(stderr).toMatch(/^greeting Ada\nRan greet in \S+\n$/)
    expect(existsSync(join(project.path, 'khepri.db'))).toBe(false)
  })

  it('runs the job of a file, and of stdin what show --envelope prints', async () => {
    using project = await migratedProject({
      ...jobs,
      'job.json': '{"job":"greet","payload":{"name":"Grace"},"tries":7}',
    })
    expect(await project.khepri(['run', 'job.json', '--quiet'])).toEqual({
      ...{ code: 0, signal: null, stdout: 'Grace 1/7\n', stderr: '' },
    })
    await project.khepri(['dispatch', 'job.json'])
    const { stdout: stdin } = await project.khepri(['show', '1', '--envelope'])
    expect(await project.khepri(['run', '-', '--quiet'], { stdin })).toMatchObject({ code: 0, stdout: 'Grace 1/7\n' })
  })

  it('a job that fails is 1, and it is said what a worker would make of it', async () => {
    using project = new KhepriProject(jobs)
    const { code, stdout, stderr } = await project.khepri(['run', 'boom'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^error: boom failed after \S+: TypeError: it broke\nA worker would try it again in 10s \(this was try 1\/3\)\n$/,
    )
    const verbose = await project.khepri(['run', 'boom', '--verbose'])
    expect(verbose.stderr).toMatch(/caused by: TypeError: it broke\n +at .*boom\.mjs/)
  })

  it.each<[string, number, RegExp]>([
    ['late', 1, /^error: late failed after \S+: Error: from a timer\n/],
    ['slow', 1, /^error: slow failed after \S+: AttemptTimeout: timed out after 50ms\n/],
    ['later', 75, /^error: later asked to run later after \S+\n$/],
    ['strict', 65, /^error: the payload of strict is refused by its schema: n must be above 0\n$/],
  ])('%s ends with %d', async (job, status, says) => {
    using project = new KhepriProject(jobs)
    const { code, stderr } = await project.khepri(['run', job])
    expect(stderr).toMatch(says)
    expect(code).toBe(status)
  })

  it.each<[NodeJS.Signals, number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('%s aborts its signal, and the exit code is %d', async (signal, status) => {
    using project = new KhepriProject(jobs)
    await using run = project.start(['run', 'hold'])
    await run.until(/begun/)
    run.kill(signal)
    expect(await run.ended).toMatchObject({
      code: status,
      stderr: expect.stringMatching(/^error: hold was interrupted/),
    })
  })

  it('--json writes one document, whatever the job prints, and the error as one line of JSON', async () => {
    using project = new KhepriProject(jobs)
    expect(JSON.parse((await project.khepri(['run', 'greet', '--json'])).stdout)).toEqual({
      ...{ id: null, job: 'greet', outcome: 'done', attempt: 1, tries: 1, ms: expect.any(Number), error: null },
    })
    const { code, stdout, stderr } = await project.khepri(['run', 'boom', '--json', '--quiet'])
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'failed', error: { type: 'TypeError', message: 'it broke' } })
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'JOB_FAILED', exit: 1 } })
    expect(code).toBe(1)
  })

  it.each<[string[], number, string]>([
    [[], 2, 'nothing to run\n  fix: name a job or a FILE, or say --id ID\n'],
    [['greet', '--id=1'], 2, 'a job and --id exclude each other\n'],
    [['--id=1', '--payload={}'], 2, '--id excludes --payload and --set: the job has its payload\n'],
    [['gret'], 65, 'unknown job "gret". Did you mean "greet"?\n'],
    [['missing.json'], 66, 'cannot read missing.json: no such file\n'],
    [['greet', '--payload={'], 65, '--payload:1:2: '],
    [['--id=99'], 3, 'job 99 is done or was deleted, or never was\n  fix: keepDone '],
    [['two.ndjson'], 65, 'two.ndjson holds more than one job\n  fix: khepri run takes one; '],
  ])('%j is %d', async (words, code, says) => {
    using project = await migratedProject({ ...jobs, 'two.ndjson': '{"job":"greet"}\n{"job":"greet"}\n' })
    expectRefusal(await project.khepri(['run', ...words]), { code, says })
  })

  it('--json of an unknown id is one line of JSON', async () => {
    using project = await migratedProject(jobs)
    expectJsonRefusal(await project.khepri(['run', '--id=99', '--json']), { code: 'NOT_FOUND', exit: 3 })
  })

  it.skipIf(terminalSkipReason() !== null)('shows the same at a terminal', async () => {
    using project = new KhepriProject(jobs)
    const { stdout } = await atTerminal(['run', 'greet', '--color=never'], { cwd: project.path })
    expect(stdout).toMatch(/^greeting nobody\nnobody 1\/1\nRan greet in \S+\n$/)
  })
})
