import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'
import { expectRefusal } from '../support/refusals.ts'

interface Listed {
  readonly id: number
  readonly state: string
  readonly worker: string | null
  readonly error: string | null
}

const listed = async (installation: Installation, ...flags: readonly string[]): Promise<readonly Listed[]> =>
  JSON.parse(await installation.must('list', '--json', ...flags)) as readonly Listed[]

/** Job 1 has failed, 2 was cancelled, 3 is scheduled on "mail", 4 is ready. */
async function oneOfEach(store: Parameters<typeof Installation.migrated>[0]): Promise<Installation> {
  const installation = await Installation.migrated(store)
  await installation.dispatch('fail')
  await installation.must('work', '--once')
  await installation.must('cancel', `${await installation.dispatch('note')}`)
  await installation.dispatch('note', '--queue=mail', '--delay=1h')
  await installation.dispatch('note')
  return installation
}

onBothStores('khepri list', (store) => {
  it.concurrent('lists jobs of every state, the newest first, aligned, with ISO times in a pipe', async () => {
    await using installation = await oneOfEach(store)
    const { code, stdout, stderr } = await installation.run(['list'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]{12}Z/g, '2026-11-30T14:02:58.114Z')).toBe(
      `ID  State      Queue    Job   When                      Detail
4   ready      default  note  2026-11-30T14:02:58.114Z  -
3   scheduled  mail     note  2026-11-30T14:02:58.114Z  -
2   cancelled  default  note  2026-11-30T14:02:58.114Z  -
1   failed     default  fail  2026-11-30T14:02:58.114Z  not mended yet
`,
    )
  })

  it.concurrent('selects by state, queue and job, and by all of them', async () => {
    await using installation = await oneOfEach(store)
    const ids = async (...flags: readonly string[]) => (await listed(installation, ...flags)).map(({ id }) => id)
    expect(await ids('--state=failed')).toEqual([1])
    expect(await ids('--queue=mail')).toEqual([3])
    expect(await ids('--job=note', '--limit=2')).toEqual([4, 3])
    expect(await ids('--job=note', '--state=cancelled', '--queue=default')).toEqual([2])
    expect(await ids('--state=done')).toEqual([])
  })

  it.concurrent('names the worker of a running job, and --json gives every fact', async () => {
    await using installation = await Installation.migrated(store)
    await using worker = await installation.worker('--name=web1')
    await installation.dispatch('hold', '--unique=k', '--priority=-2')
    await installation.ledger.untilStarted(1)
    expect(await installation.must('list', '--plain')).toMatch(/^1\trunning\tdefault\thold\t\S+Z\ton web1\n$/)
    const moment = expect.stringMatching(/Z$/)
    expect(await listed(installation)).toEqual([
      {
        ...{ id: 1, job: 'hold', state: 'running', queue: 'default', priority: -2, failures: 0, crashes: 0 },
        ...{ suspect: false, unique: 'k', dispatchedAt: moment, availableAt: moment, startedAt: moment },
        ...{ cancelledAt: null, endedAt: null, worker: 'web1', reason: null, errorType: null, error: null },
      },
    ])
    worker.kill('SIGKILL')
  })

  it.concurrent('streams 20,000 jobs, and a reader that leaves after the first line ends it quietly', async () => {
    await using installation = await Installation.migrated(store)
    await installation.dispatchAll(Array.from({ length: 20_000 }, () => ({ job: 'note' })))
    const lines = (await installation.must('list', '--plain')).trimEnd().split('\n')
    expect(lines.map((line) => Number(line.split('\t')[0]))).toEqual(
      Array.from({ length: 20_000 }, (_, n) => 20_000 - n),
    )
    expect(await installation.run(['list'], { shell: '"$@" | head -1' })).toMatchObject({
      code: 0,
      stdout: 'ID     State  Queue    Job   When                      Detail\n',
      stderr: '',
    })
  })
})

describe('khepri list', () => {
  it('of nothing says so on stderr, and of a mistyped queue what was meant', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['list'])).toMatchObject({ code: 0, stdout: '', stderr: 'No jobs\n' })
    expect(await project.khepri(['list', '--json'])).toMatchObject({ code: 0, stdout: '[]\n' })
    await project.khepri(['dispatch', '--job=note', '--allow-unknown', '--queue=high'])
    expect(await project.khepri(['list', '--state=running', '--queue=hgih'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No running jobs on queue "hgih". Did you mean "high"?\n',
    })
  })

  it.each<[string[], string]>([
    [['--state=finished'], '--state must be one of scheduled, ready, running, failed, done, cancelled, got "finished"'],
    [['--limit=0'], '--limit must be a whole number of at least 1, got "0"\n'],
    [['7'], 'unexpected argument "7"\n'],
  ])('%j is wrong usage', async (words, says) => {
    using project = await migratedProject()
    expectRefusal(await project.khepri(['list', ...words]), { code: 2, says })
  })

  it.skipIf(terminalSkipReason() !== null)(
    'shows 20 and their ages at a terminal, and says that there are more',
    async () => {
      using project = await migratedProject({ 'jobs.ndjson': '{"job":"note"}\n'.repeat(25) })
      await project.khepri(['dispatch', 'jobs.ndjson', '--allow-unknown', '--delay=1h'])
      const { stdout } = await atTerminal(['list', '--color=never'], { cwd: project.path, columns: 80 })
      expect(stdout.match(/^\d+ +scheduled +default +note +in 59m +-$/gm)).toHaveLength(20)
      expect(stdout).toMatch(/More than 20: --limit 100 shows more, khepri status counts them\n$/)
    },
  )

  it('shows nothing of a name or an error that a terminal would obey, and keeps it on one line', async () => {
    using project = await migratedProject({
      'jobs/boom.mjs': `export default () => { throw new Error('red \\u001b[31m and\\nnext 🙂' + 'x'.repeat(10_000)) }`,
    })
    await project.khepri(['dispatch', '--job=boom'])
    await project.khepri(['work', '--once'])
    const { stdout } = await project.khepri(['list'])
    expect(stdout.split('\n')).toHaveLength(3)
    expect(stdout).not.toContain('\u001b')
    expect(stdout).toContain('🙂')
  })

  it('without tables is 78', async () => {
    using project = await migratedProject()
    const database = `sqlite:${join(project.path, 'other.db')}`
    expect(await project.khepri(['list', '--database', database])).toMatchObject({ code: 78, stdout: '' })
  })
})
