import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { freshDatabase, postgresSkipReason } from '../support/postgres.ts'

const jobs = {
  'jobs/note.mjs': 'export default ({ text }, { log }) => log(text)',
  'jobs/fail.mjs': `export default () => { throw new Error('no such file: in/7.png') }`,
  'jobs/again.mjs': `import { defineJob } from 'khepri'
    export default defineJob({ tries: 2, backoff: { kind: 'none' }, handle() { throw new Error('not yet') } })`,
  'jobs/wait.mjs': `export default (_, { log, signal }) => new Promise((resolve, reject) => {
    log('begun')
    setTimeout(() => log('still here'), 1_200)
    setTimeout(resolve, 1_500)
    signal.addEventListener('abort', () => reject(signal.reason))
  })`,
  'jobs/deaf.mjs': `export default (_, { log }) => new Promise(() => { log('begun'); setInterval(() => {}, 1_000) })`,
  'jobs/patient.mjs': `export default (_, { log, signal }) => new Promise((resolve, reject) => {
    log('begun')
    setTimeout(() => log('still here'), 1_200)
    const alive = setInterval(() => {}, 1_000)
    signal.addEventListener('abort', () => { clearInterval(alive); reject(signal.reason) })
  })`,
  'jobs/stray.mjs': `export default () => new Promise((resolve) => { setTimeout(() => { throw new Error('thrown by a timer') }, 5); setTimeout(resolve, 200) })`,
}

const project = (files: Readonly<Record<string, string>> = {}): Promise<KhepriProject> =>
  migratedProject({ ...jobs, ...files })

async function dispatch(made: KhepriProject, job: string, ...more: readonly string[]): Promise<void> {
  const { code, stderr } = await made.khepri(['dispatch', '--job', job, ...more])
  expect(stderr).not.toMatch(/error/)
  expect(code).toBe(0)
}

const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
/** The whole of a stdout in a pipe: a time before each of these. */
const lines = (...patterns: readonly string[]): RegExp =>
  new RegExp(`^${patterns.map((pattern) => `${time} ${pattern}\n`).join('')}$`)

describe('khepri work', () => {
  it('without a schema says so, names the fix and exits 78', async () => {
    using made = new KhepriProject({ ...jobs, 'khepri.config.json': '{}' })
    const { code, stdout, stderr } = await made.khepri(['work'])
    expect(stderr).toBe('error: the schema of sqlite:./khepri.db is missing\n  fix: khepri migrate\n')
    expect(stdout).toBe('')
    expect(code).toBe(78)
  })

  it('in a pipe writes one line an attempt: time, verb, id, job, then key=value', async () => {
    using made = await project()
    await dispatch(made, 'note', '--set', 'text=hello')
    await dispatch(made, 'again')
    const { code, stdout, stderr } = await made.khepri(['work', '--stop-when-empty'])
    expect(stdout).toMatch(
      lines(
        String.raw`khepri \S+  worker \S+-\d+  queues default  concurrency 1  sqlite:\./khepri\.db    Ctrl-C stops gently`,
        'LOG 1 note queue=default try=1/1 text=hello',
        String.raw`DONE 1 note queue=default try=1/1 ms=\d+`,
        String.raw`RETRY 2 again queue=default try=1/2 ms=\d+ in=0ms error="not yet"`,
        String.raw`FAILED 2 again queue=default try=2/2 ms=\d+ reason=tries error="not yet"`,
        String.raw`stopped: 1 done, 1 retried, 1 failed in \S+`,
      ),
    )
    expect(stderr).toBe('')
    expect(code).toBe(0)
  })

  it('serves --queue=high,default in strict order, whatever was dispatched first', async () => {
    using made = await project()
    await dispatch(made, 'note', '--set', 'text=second')
    await dispatch(made, 'note', '--set', 'text=first', '--queue', 'high')
    const { stdout } = await made.khepri(['work', '--queue=high,default', '--stop-when-empty'])
    expect([...stdout.matchAll(/text=(\w+)/g)].map(([, text]) => text)).toEqual(['first', 'second'])
  })

  it(`serves every queue of the store with --queue='*'`, async () => {
    using made = await project()
    await dispatch(made, 'note', '--set', 'text=found', '--queue', 'nobody-declared-it')
    const { stdout } = await made.khepri(['work', '--queue=*', '--stop-when-empty'])
    expect(stdout).toMatch(/ DONE 1 note queue=nobody-declared-it /)
  })

  it('runs only what --job names and leaves alone what --except-job names', async () => {
    using made = await project()
    await dispatch(made, 'note', '--set', 'text=a')
    await dispatch(made, 'again')
    const except = await made.khepri(['work', '--except-job=note', '--stop-when-empty'])
    expect(except.stdout).toMatch(/stopped: 0 done, 1 retried, 1 failed/)
    const only = await made.khepri(['work', '--job=note', '--stop-when-empty'])
    expect(only.stdout).toMatch(/stopped: 1 done, 0 retried, 0 failed/)
  })

  it('stops after --max-jobs=2 of 3', async () => {
    using made = await project()
    for (const text of ['a', 'b', 'c']) await dispatch(made, 'note', '--set', `text=${text}`)
    const { code, stdout } = await made.khepri(['work', '--max-jobs=2'])
    expect(stdout).toMatch(/stopped: 2 done/)
    expect(code).toBe(0)
  })

  it('stops after --max-time though there is nothing to do', async () => {
    using made = await project()
    expect(await made.khepri(['work', '--max-time=50ms'])).toMatchObject({ code: 0 })
  })

  it('migrates first with --migrate, and says so on stderr', async () => {
    using made = new KhepriProject(jobs)
    const { code, stderr } = await made.khepri(['work', '--migrate', '--stop-when-empty'])
    expect(stderr).toBe('applied 6 migrations\n')
    expect(code).toBe(0)
  })

  it('charges what a timer of a job throws to that job, and lives', async () => {
    using made = await project()
    await dispatch(made, 'stray')
    await dispatch(made, 'note', '--set', 'text=after')
    const { code, stdout, stderr } = await made.khepri(['work', '--stop-when-empty'])
    expect(stdout).toMatch(/ FAILED 1 stray .*error="thrown by a timer"\n/)
    expect(stdout).toMatch(/ DONE 2 note /)
    expect(stderr).toBe('')
    expect(code).toBe(0)
  })

  it('works on Postgres with the same lines', async ({ skip }) => {
    const missing = postgresSkipReason()
    if (missing !== null) return skip(missing)
    const database = await freshDatabase()
    using made = new KhepriProject(jobs)
    const env = { KHEPRI_DATABASE_URL: database.url }
    await made.khepri(['migrate'], { env })
    await made.khepri(['dispatch', '--job', 'note', '--set', 'text=hello'], { env })
    const { code, stdout } = await made.khepri(['work', '--stop-when-empty'], { env })
    expect(stdout).toMatch(
      / LOG 1 note queue=default try=1\/1 text=hello\n.* DONE 1 note queue=default try=1\/1 ms=\d+\n/,
    )
    expect(code).toBe(0)
    await database.drop()
  })
})

describe('exit codes', () => {
  it.each([
    [['--once'], 'note', 0],
    [['--once'], 'fail', 0],
    [['--once'], null, 0],
    [['--once', '--exit-code'], 'note', 0],
    [['--once', '--exit-code'], 'fail', 1],
    [['--once', '--exit-code'], null, 3],
    [['--stop-when-empty', '--exit-code'], 'fail', 1],
    [['--stop-when-empty', '--exit-code'], null, 0],
  ] as const)('work %j with the job %s exits %d', async (flags, job, code) => {
    using made = await project()
    if (job !== null) await dispatch(made, job)
    expect((await made.khepri(['work', ...flags])).code).toBe(code)
  })

  it.each([
    ['--queue=', '--queue needs at least one name, got ""'],
    ['--queue=,', '--queue has an empty name in ","'],
    ['--sleep=abc', '--sleep must be a duration'],
    ['--concurrency=0', '--concurrency must be a whole number of at least 1, got "0"'],
    ['--concurency=4', 'unknown flag --concurency. Did you mean --concurrency?'],
    ['--nope', 'unknown flag --nope'],
  ])('work %s is wrong usage and exits 2', async (flag, message) => {
    using made = new KhepriProject({ ...jobs, 'khepri.config.json': '{}' })
    const { code, stdout, stderr } = await made.khepri(['work', flag])
    expect(stderr).toContain(`error: ${message}`)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })
})

describe('KHEPRI_WORK_<FLAG>', () => {
  it('sets a flag that the command line does not', async () => {
    using made = await project()
    const { stdout, code } = await made.khepri(['work'], {
      env: { KHEPRI_WORK_STOP_WHEN_EMPTY: 'true', KHEPRI_WORK_CONCURRENCY: '3', KHEPRI_WORK_QUEUE: 'a,b' },
    })
    expect(stdout).toMatch(/ queues a,b {2}concurrency 3 /)
    expect(code).toBe(0)
  })

  it('gives way to the command line', async () => {
    using made = await project()
    const { stdout } = await made.khepri(['work', '--stop-when-empty', '-c', '2'], {
      env: { KHEPRI_WORK_CONCURRENCY: '3' },
    })
    expect(stdout).toMatch(/ concurrency 2 /)
  })

  it.each([
    ['KHEPRI_WORK_SLEEP', 'abc', 'KHEPRI_WORK_SLEEP: --sleep must be a duration'],
    ['KHEPRI_WORK_ONCE', 'perhaps', 'KHEPRI_WORK_ONCE must be true or false, got "perhaps"'],
    ['KHEPRI_WORK_UNKNOWN', 'perhaps', 'KHEPRI_WORK_UNKNOWN: "perhaps" is no value for --unknown'],
  ])('%s=%s is refused with 2 and its name', async (name, value, message) => {
    using made = await project()
    const { code, stderr } = await made.khepri(['work'], { env: { [name]: value } })
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  })
})

describe('--json', () => {
  it('leaves nothing but NDJSON on stdout, whatever modules print', async () => {
    const chatty = `console.log('printed while it was loaded')\nexport default () => console.log('printed by the handler')`
    using made = await project({ 'jobs/chatty.mjs': chatty })
    await dispatch(made, 'chatty')
    const { code, stdout, stderr } = await made.khepri(['work', '--stop-when-empty', '--json'])
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(events.map(({ event }) => event)).toEqual([
      'worker.started',
      'job.started',
      'job.done',
      'worker.draining',
      'worker.stopped',
    ])
    expect(Object.keys(events[2] ?? {})).toEqual([
      'time',
      'level',
      'event',
      'id',
      'job',
      'queue',
      'attempt',
      'tries',
      'ms',
      'waitMs',
      'worker',
    ])
    expect(stderr).toContain('printed while it was loaded\nprinted by the handler\n')
    expect(code).toBe(0)
  })

  it('tells an error that ends the worker as one line of JSON on stderr', async () => {
    using made = new KhepriProject({ ...jobs, 'khepri.config.json': '{}' })
    const { code, stdout, stderr } = await made.khepri(['work', '--json'])
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'SCHEMA_MISSING',
        message: 'the schema of sqlite:./khepri.db is missing',
        fix: 'khepri migrate',
        exit: 78,
      },
    })
    expect(stdout).toBe('')
    expect(code).toBe(78)
  })
})

describe('--log', () => {
  it.each([
    ['results', ['khepri', 'DONE', 'FAILED', 'stopped:']],
    ['problems', ['FAILED']],
    ['none', []],
  ])('%s writes the lines %j', async (log, verbs) => {
    using made = await project()
    await dispatch(made, 'note', '--set', 'text=a')
    await dispatch(made, 'fail')
    const { stdout } = await made.khepri(['work', '--stop-when-empty', '--log', log])
    expect([...stdout.matchAll(new RegExp(`^${time} (\\S+)`, 'gm'))].map(([, verb]) => verb)).toEqual(verbs)
  })
})

describe('signals', () => {
  it('SIGTERM to an idle worker that sleeps for 60 s ends it with 0', async () => {
    using made = await project()
    await using worker = made.start(['work', '--sleep=60'])
    await worker.until(/Ctrl-C stops gently/)
    worker.kill('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0, stderr: '' })
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s lets the running job end, says what it waits for, and exits 0',
    async (signal) => {
      using made = await project()
      await dispatch(made, 'wait')
      await dispatch(made, 'note', '--set', 'text=never')
      await using worker = made.start(['work'])
      await worker.until(/text=begun/)
      worker.kill(signal)
      const { code, stdout, stderr } = await worker.ended
      expect(stderr).toBe('stopping: waiting for 1 job (Ctrl-C again to abandon them)\n')
      expect(stdout).toMatch(/ DONE 1 wait .*\n.* stopped: 1 done, 0 retried, 0 failed in \S+\n$/)
      expect(code).toBe(0)
    },
  )

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('a second %s aborts the job, gives it back without a try, and exits %d', async (signal, code) => {
    using made = await project()
    await dispatch(made, 'patient')
    await using worker = made.start(['work'])
    await worker.until(/text=begun/)
    worker.kill(signal)
    await worker.until(/text="still here"/)
    worker.kill(signal)
    const ended = await worker.ended
    expect(ended.stdout).toMatch(/ RELEASED 1 patient queue=default try=1\/1 ms=\d+ why=interrupted\n/)
    expect(ended.code).toBe(code)
    await using next = made.start(['work'])
    await next.until(/ LOG 1 patient queue=default try=1\/1 text=begun\n/)
  })

  it('a passed --drain-timeout gives the job back and exits 75, though the job ignores its signal', async () => {
    using made = await project()
    await dispatch(made, 'deaf')
    await using worker = made.start(['work', '--drain-timeout=10ms'])
    await worker.until(/text=begun/)
    worker.kill('SIGTERM')
    const { code, stderr } = await worker.ended
    expect(stderr).toContain('error: 1 job did not end in time and was given back\n')
    expect(stderr).toContain('fix: another worker runs it at once; a longer --drain-timeout lets it end here\n')
    expect(code).toBe(75)
  })

  it('an error that belongs to no job is reported, drains and exits 70', async () => {
    using made = await project()
    made.write('khepri.config.mjs', `setTimeout(() => { throw new Error('nobody knows') }, 500)\nexport default {}`)
    const { code, stderr } = await made.khepri(['work'])
    expect(stderr).toMatch(/^error: khepri\.config\.mjs: nobody caught an error: nobody knows\n {2}fix: /)
    expect(code).toBe(70)
  })

  it('a worker whose stdout nobody reads any more drains and exits 74', async () => {
    using made = await project()
    await using worker = made.start(['work'])
    await worker.until(/Ctrl-C stops gently/)
    worker.child.stdout?.destroy()
    await dispatch(made, 'note', '--set', 'text=unheard')
    expect((await worker.ended).code).toBe(74)
  })

  it('a worker started by npm drains when npm is gone', async () => {
    using made = await project()
    await using npm = made.start(['work'], { env: { npm_lifecycle_event: 'work' }, shell: '"$@"; true' })
    await npm.until(/Ctrl-C stops gently/)
    npm.kill('SIGKILL')
    expect((await npm.ended).stdout).toMatch(/stopped: 0 done/)
  })
})

describe('the journal', () => {
  it('gets a priority in front and no time', async () => {
    using made = await project()
    await dispatch(made, 'fail')
    const file = openSync(join(made.path, 'journal'), 'w')
    const { dev, ino } = fstatSync(file, { bigint: true })
    await made.khepri(['work', '--stop-when-empty'], { stdout: file, env: { JOURNAL_STREAM: `${dev}:${ino}` } })
    closeSync(file)
    const [banner, failed] = readFileSync(join(made.path, 'journal'), 'utf8').split('\n')
    expect(banner).toMatch(/^<6>khepri /)
    expect(failed).toMatch(
      /^<3>FAILED 1 fail queue=default try=1\/1 ms=\d+ reason=tries error="no such file: in\/7\.png"$/,
    )
  })
})
