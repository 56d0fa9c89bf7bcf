import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { failJobs } from '../support/failures.ts'
import { type KhepriProject, migratedProject } from '../support/khepri-project.ts'

const fileOf = (project: KhepriProject): string => `sqlite:${join(project.path, 'khepri.db')}`

/** A project in which these jobs have failed; their ids are 1, 2, 3, … */
async function failures(): Promise<KhepriProject> {
  const project = await migratedProject()
  await failJobs(fileOf(project), [{ queue: 'mail', job: 'send-welcome', error: 'SMTP said 550' }], 3 * 86_400_000)
  await failJobs(
    fileOf(project),
    [{ queue: 'high', job: 'resize-image', error: 'exit 1: in/7.png: no such file' }],
    3_600_000,
  )
  await failJobs(fileOf(project), [{ queue: 'high', job: 'resize-image', error: 'exit 1: in/8.png: no such file' }])
  return project
}

const idsIn = (stdout: string): readonly number[] => (JSON.parse(stdout) as { id: number }[]).map(({ id }) => id)

describe('khepri failed ID', () => {
  it('shows the frames of the job and not those of khepri, unless asked with --verbose', async () => {
    const thrower = `export default () => { inner() }\nfunction inner() { throw new Error('it broke') }`
    using project = await migratedProject({ 'jobs/thrower.mjs': thrower })
    await project.khepri(['dispatch', '--job=thrower'])
    await project.khepri(['work', '--stop-when-empty'])
    const { stdout } = await project.khepri(['failed', '1'])
    expect(stdout).toMatch(/Error: it broke\n +at inner \(.*thrower\.mjs:2/)
    expect(stdout).not.toContain('/dist/')
    expect((await project.khepri(['failed', '1', '--verbose'])).stdout).toContain('/dist/')
  })
})

describe('khepri failed', () => {
  it('lists them newest first, aligned, with ISO times in a pipe', async () => {
    using project = await failures()
    const { code, stdout, stderr } = await project.khepri(['failed'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(
      stdout.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]{12}Z/g, '2026-11-30T14:02:58.114Z'),
    ).toBe(`ID  Queue  Job           Failed at                 Error
3   high   resize-image  2026-11-30T14:02:58.114Z  exit 1: in/8.png: no such file
2   high   resize-image  2026-11-30T14:02:58.114Z  exit 1: in/7.png: no such file
1   mail   send-welcome  2026-11-30T14:02:58.114Z  SMTP said 550
`)
  })

  it.each([
    [['--queue=high'], [3, 2]],
    [['--job=send-welcome'], [1]],
    [['--error=in/7'], [2]],
    [['--error=smtp SAID'], [1]],
    [['--since=1d'], [3, 2]],
    [['--until=30m'], [2, 1]],
    [['--since=2d', '--until=30m', '--queue=high'], [2]],
    [
      ['--since=2000-01-01T00:00Z', '--limit=2'],
      [3, 2],
    ],
    [['--queue=none'], []],
  ])('%j selects %j', async (flags, ids) => {
    using project = await failures()
    const { code, stdout } = await project.khepri(['failed', '--json', ...flags])
    expect({ code, ids: idsIn(stdout) }).toEqual({ code: 0, ids })
  })

  it('shows times in --timezone', async () => {
    using project = await failures()
    const { stdout } = await project.khepri(['failed', '--timezone=Asia/Kathmandu', '--plain'])
    expect(stdout.match(/\+05:45/g)).toHaveLength(3)
  })

  it('counts by error, job and queue, most first', async () => {
    using project = await failures()
    const { stdout } = await project.khepri(['failed', '--by=queue'])
    expect(stdout).toMatch(/^Count {2}Latest +Queue\n2 +\S+Z {2}high\n1 +\S+Z {2}mail\n$/)
    const byError = await project.khepri(['failed', '--by=error', '--json'])
    expect(JSON.parse(byError.stdout)).toHaveLength(3)
  })

  it('with an ID shows everything about it', async () => {
    using project = await failures()
    const { code, stdout } = await project.khepri(['failed', '2'])
    expect(code).toBe(0)
    for (const line of [
      /^id: +2$/m,
      /^job: +resize-image$/m,
      /^queue: +high$/m,
      /^failed: +\S+Z, its tries are spent$/m,
      /^error: +Error: exit 1: in\/7\.png: no such file$/m,
      /^payload: +\{"error":"exit 1: in\/7\.png: no such file"\}$/m,
      /^envelope: +\{"v":1,/m,
      /^attempt 1 {3}\S+Z, \d+ms, on /m,
      /^ +at /m,
    ])
      expect(stdout).toMatch(line)
  })

  it('with an ID and --json gives payload and envelope byte for byte', async () => {
    using project = await migratedProject({ 'jobs/boom.mjs': 'export default () => { throw new Error("it broke") }' })
    const payload = '{"b":12345678901234567890,"a":1.0,"a":{"__proto__":1}}'
    await project.khepri(['dispatch', '--job=boom', '--payload', payload])
    await project.khepri(['work', '--once'])
    const { stdout } = await project.khepri(['failed', '1', '--json'])
    expect(stdout).toContain(`"payload":${payload},"envelope":{"v":1,`)
    expect(JSON.parse(stdout)).toMatchObject({
      id: 1,
      job: 'boom',
      reason: 'tries',
      attempts: [{ attempt: 1, message: 'it broke' }],
    })
  })

  it('of an id that has not failed is 3', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['failed', '99'])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: 'error: no failed job 99\n',
    })
  })

  it('takes no id from stdin, and leaves what is there to whoever comes next', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['failed'], { shell: `printf '7\n' | { "$@"; cat; }` })).toMatchObject({
      code: 0,
      stdout: '7\n',
      stderr: 'No failed jobs\n',
    })
  })

  it('with an ID and a filter is wrong usage', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['failed', '1', '--queue=mail'])).toMatchObject({ code: 2 })
  })

  it('without any says so on stderr, and of a mistyped queue what was meant', async () => {
    using project = await failures()
    expect(await project.khepri(['failed', '--queue=hgih'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No failed jobs on queue "hgih". Did you mean "high"?\n',
    })
    using none = await migratedProject()
    expect(await none.khepri(['failed'])).toMatchObject({ code: 0, stdout: '', stderr: 'No failed jobs\n' })
    expect(await none.khepri(['failed', '--json'])).toMatchObject({ code: 0, stdout: '[]\n' })
  })
})
