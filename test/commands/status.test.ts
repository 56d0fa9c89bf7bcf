import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'
import { khepri } from '../support/live.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'
import { TempProject } from '../support/temp-project.ts'

/** 2 ready, 1 scheduled and 1 failed job on "default"; 1 ready job on "mail", which is paused. */
async function busy(store: Parameters<typeof Installation.migrated>[0]): Promise<Installation> {
  const installation = await Installation.migrated(store)
  await installation.dispatch('fail')
  await installation.must('work', '--once')
  const jobs = [{ job: 'note' }, { job: 'note' }, { job: 'note', delay: '1h' }, { job: 'note', queue: 'mail' }]
  await installation.dispatchAll(jobs)
  await installation.ask("insert into jobs_queues (name, paused_at) values ('mail', 0)")
  return installation
}

/** As many minutes ago as make a job old enough to be named. */
const minutesAgo = (minutes: number): number => Date.now() - minutes * 60_000

onBothStores('khepri status', (store) => {
  it.concurrent('shows the database, its schema, the workers, and each queue by state', async () => {
    await using installation = await busy(store)
    const { code, stdout, stderr } = await installation.run(['status'])
    const database = store === 'sqlite' ? String.raw`sqlite:\./khepri\.db` : String.raw`postgres://\S+:\d+/\S+`
    expect(stdout).toMatch(
      new RegExp(
        [
          `^database:   ${database}`,
          'migrations: 0005_parents',
          'workers:    none',
          '',
          'Queue    Ready  Running  Scheduled  Failed  Oldest wait +Paused',
          String.raw`default  2      0        1          1       \d\S* +-`,
          String.raw`mail     1      0        0          0       \d\S* +paused\n$`,
        ].join('\n'),
      ),
    )
    expect(stderr).toBe('Jobs are ready and no worker is there. Start one: khepri work\n')
    expect(code).toBe(0)
  })

  it.concurrent('names what has run for more than 5 minutes, with its worker, and so does khepri workers', async () => {
    await using installation = await Installation.migrated(store)
    await using worker = await installation.worker('--concurrency=2', '--name=web1')
    const [old, young] = [await installation.dispatch('hold'), await installation.dispatch('hold')]
    await installation.ledger.untilStarted(2)
    await installation.ask('update jobs set started_at = ? where id = ?', [minutesAgo(12), old])
    await installation.ask('update jobs set started_at = ? where id = ?', [minutesAgo(4), young])

    expect(await installation.must('status')).toMatch(
      new RegExp(String.raw`\n\nBusy  Job   Queue    For +Worker\n${old} +hold  default  12m\S* ?\S* +web1\n$`),
    )
    expect(await installation.must('workers', '--plain')).toMatch(new RegExp(`\t${old} for 12m[^\t]*\n$`))
    const document = JSON.parse(await installation.must('status', '--json'))
    expect(document.busy).toEqual([{ id: old, job: 'hold', queue: 'default', ms: expect.any(Number), worker: 'web1' }])
    expect(document.busy[0].ms).toBeGreaterThanOrEqual(12 * 60_000)
    expect(document.queues).toEqual([
      { queue: 'default', ready: 0, running: 2, scheduled: 0, failed: 0, oldestWaitMs: null, paused: false },
    ])
    expect(document.workers).toMatchObject([{ name: 'web1', running: 2, concurrency: 2, state: 'working' }])
    worker.kill('SIGKILL')
  })

  it.concurrent('--check exits 1 and names each limit that is exceeded, and 0 where all hold', async () => {
    await using installation = await busy(store)
    const over = await installation.run(['status', '--check', '--max-ready=2', '--max-wait=1h', '--max-failed=0'])
    expect(over.code).toBe(1)
    expect(over.stdout).toMatch(/^database: /)
    expect(over.stderr).toMatch(
      /^error: --max-ready allows 2: 3 jobs are ready \(2 on default\)\n {2}fix: .*\nerror: --max-failed allows 0: 1 job has failed \(1 on default\)\n/,
    )
    expect(over.stderr).not.toContain('--max-wait')
    expect(await installation.run(['status', '--check', '--max-ready=3', '--max-failed=1'])).toMatchObject({ code: 0 })
  })
})

describe('khepri status', () => {
  it('of a fresh database shows no queue', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['status'])).toEqual({
      code: 0,
      signal: null,
      stdout: 'database:   sqlite:./khepri.db\nmigrations: 0005_parents\nworkers:    none\n',
      stderr: '',
    })
    expect(JSON.parse((await project.khepri(['status', '--json'])).stdout)).toEqual({
      database: 'sqlite:./khepri.db',
      schema: '0005_parents',
      queues: [],
      workers: [],
      busy: [],
    })
  })

  it('--plain writes one record a line, its kind first', async () => {
    using project = await migratedProject()
    await project.khepri(['dispatch', '--job=note', '--allow-unknown', '--delay=1h'])
    expect((await project.khepri(['status', '--plain'])).stdout).toBe(
      'database\tsqlite:./khepri.db\nmigrations\t0005_parents\nworkers\tnone\nqueue\tdefault\t0\t0\t1\t0\t-\t-\n',
    )
  })

  it('--check --json adds the limits that are exceeded to the document, and one line of JSON each to stderr', async () => {
    using project = await migratedProject()
    await project.khepri(['dispatch', '--job=note', '--allow-unknown'])
    const { code, stdout, stderr } = await project.khepri(['status', '--check', '--max-ready=0', '--json'])
    expect({ code, over: JSON.parse(stdout).over }).toEqual({
      code: 1,
      over: [{ limit: 'max-ready', allowed: 0, found: 1, queue: 'default', most: 1 }],
    })
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'OVER_LIMIT', exit: 1 } })
    const within = await project.khepri(['status', '--check', '--max-ready=1', '--json'])
    expect({ code: within.code, over: JSON.parse(within.stdout).over, stderr: within.stderr }).toEqual({
      code: 0,
      over: [],
      stderr: '',
    })
  })

  it.each<[string[], string]>([
    [['--check'], '--check needs a limit\n  fix: say --max-ready, --max-wait or --max-failed\n'],
    [['--max-ready=5'], '--max-ready needs --check\n'],
    [['--check', '--max-ready=-1'], '--max-ready must be a whole number of at least 0, got "-1"\n'],
    [['--check', '--max-wait=soon'], '--max-wait must be a duration such as '],
  ])('%j is wrong usage', async (words, says) => {
    using project = await migratedProject()
    expectRefusal(await project.khepri(['status', ...words]), { code: 2, says })
  })

  it('without tables is 78, and makes no file', async () => {
    using project = new TempProject({ 'khepri.config.json': '{}' })
    expectRefusal(await khepri(['status'], { cwd: project.path }), {
      code: 78,
      says: 'the schema of sqlite:./khepri.db is missing\n  fix: khepri migrate\n',
    })
    expectJsonRefusal(await khepri(['workers', '--json'], { cwd: project.path }), { code: 'SCHEMA_MISSING', exit: 78 })
  })

  it.skipIf(terminalSkipReason() !== null)('fits a terminal of 80 columns', async () => {
    using project = await migratedProject()
    await project.khepri(['dispatch', '--job=note', '--allow-unknown', `--queue=${'long'.repeat(30)}`])
    const { stdout } = await atTerminal(['status', '--color=never'], { cwd: project.path, columns: 80 })
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(stdout).toMatch(/^Queue +Ready/m)
  })
})
