import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Failure, failJobs } from '../support/failures.ts'
import { onBothStores } from '../support/installation.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { freshDatabase } from '../support/postgres.ts'

const fileOf = (project: KhepriProject): string => `sqlite:${join(project.path, 'khepri.db')}`

const image: Failure = { queue: 'high', job: 'resize-image', error: 'no such file' }
const mail: Failure = { queue: 'mail', job: 'send-welcome', error: 'SMTP said 550' }

/** A project in which these jobs have failed; their ids are 1, 2, 3, … */
async function failures(...jobs: readonly Failure[]): Promise<KhepriProject> {
  const project = await migratedProject()
  await failJobs(fileOf(project), jobs)
  return project
}

async function failedIds(project: KhepriProject): Promise<readonly number[]> {
  const { stdout } = await project.khepri(['failed', '--json'])
  return (JSON.parse(stdout) as { id: number }[]).map(({ id }) => id).sort((a, b) => a - b)
}

describe('khepri retry', () => {
  it('puts back what is there, names what is not, and exits 1', async () => {
    using project = await failures(mail, mail, mail, image)
    expect(await project.khepri(['retry', '4', '99'])).toEqual({
      code: 1,
      signal: null,
      stdout: 'Retried 1 job: 4 (resize-image on high)\n',
      stderr: 'error: no failed job 99\n',
    })
    expect(await failedIds(project)).toEqual([1, 2, 3])
    expect(project.count()).toBe(1)
  })

  it('is 3 where the only id is not there, also as JSON', async () => {
    using project = await failures(mail)
    expect(await project.khepri(['retry', '99'])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: 'error: no failed job 99\n',
    })
    const json = await project.khepri(['retry', '99', '--json'])
    expect({ code: json.code, stdout: JSON.parse(json.stdout), stderr: JSON.parse(json.stderr) }).toEqual({
      code: 3,
      stdout: { retried: 0, missing: [99], blocked: [] },
      stderr: { error: { code: 'NOT_FOUND', message: 'no failed job 99', fix: null, exit: 3 } },
    })
  })

  it.each([[['all']], [['--all']]])('retry %j puts all back', async (words) => {
    using project = await failures(mail, image)
    expect(await project.khepri(['retry', ...words])).toMatchObject({
      code: 0,
      stdout: 'Retried 2 jobs: 1 (send-welcome on mail), 2 (resize-image on high)\n',
    })
    expect(await project.khepri(['retry', ...words])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing to retry\n',
    })
  })

  it('takes a filter as a selection', async () => {
    using project = await failures(mail, image, mail)
    expect(await project.khepri(['retry', '--queue=mail', '--error=smtp', '--json'])).toMatchObject({
      code: 0,
      stdout: '{"retried":2,"missing":[],"blocked":[]}\n',
    })
    expect(await failedIds(project)).toEqual([2])
  })

  it('of a mistyped queue says what was meant', async () => {
    using project = await failures(image)
    expect(await project.khepri(['retry', '--queue=hgih'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing to retry on queue "hgih". Did you mean "high"?\n',
    })
  })

  it('with nothing selected is wrong usage, and changes nothing', async () => {
    using project = await failures(mail)
    expect(await project.khepri(['retry'])).toMatchObject({
      code: 2,
      stderr: 'error: nothing selected\n  fix: name ids or a filter such as --queue, or say --all\n',
    })
    expect(await project.khepri(['retry', '1', '--all'])).toMatchObject({ code: 2 })
    expect(await failedIds(project)).toEqual([1])
  })

  it('--dry-run names them and changes nothing', async () => {
    using project = await failures(mail, image)
    expect(await project.khepri(['retry', '--all', '--dry-run'])).toMatchObject({
      code: 0,
      stdout: 'Would retry 2 jobs: 1 (send-welcome on mail), 2 (resize-image on high)\n',
    })
    expect(await failedIds(project)).toEqual([1, 2])
  })

  it('--delay leaves them scheduled', async () => {
    using project = await failures({ job: 'note' })
    await project.khepri(['retry', '1', '--delay=1h'])
    const { stdout } = await project.khepri(['work', '--stop-when-empty', '--json'])
    expect(stdout).not.toContain('"event":"job.')
    expect(project.count()).toBe(1)
  })

  it('leaves one failed whose unique key a live job has, says so, and exits 1', async () => {
    using project = await failures({ ...mail, unique: 'user-7' }, image)
    await project.khepri(['dispatch', '--job=send-welcome', '--unique=user-7', '--allow-unknown'])
    expect(await project.khepri(['retry', '--all'])).toMatchObject({
      code: 1,
      stdout: 'Retried 1 job: 2 (resize-image on high)\n',
      stderr: 'error: job 1 stays failed: live job 3 has its unique key\n  fix: retry it when that job has ended\n',
    })
    expect(await failedIds(project)).toEqual([1])
  })

  it('of 2,500 jobs is done in chunks, counted, and none is lost', async () => {
    using project = await failures(...Array.from({ length: 2_500 }, () => mail))
    expect(await project.khepri(['retry', '--all', '--quiet'])).toMatchObject({
      code: 0,
      stdout: 'Retried 2,500 jobs\n',
      stderr: '',
    })
    expect(project.count()).toBe(2_500)
    expect(await failedIds(project)).toEqual([])
  })
})

onBothStores('failed, retry and flush', (store) => {
  it('show, put back and delete what has failed', async () => {
    using project = new KhepriProject()
    const database = store === 'postgres' ? await freshDatabase() : { url: fileOf(project), drop: async () => {} }
    try {
      const khepri = (...words: readonly string[]) => project.khepri([...words, `--database=${database.url}`])
      await khepri('migrate')
      await failJobs(database.url, [mail, image, image])
      expect(await khepri('failed', '--plain', '--queue=mail')).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^1\tmail\tsend-welcome\t\S+Z\tSMTP said 550\n$/),
      })
      expect(await khepri('failed', '1')).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^payload: +\{"error":"SMTP said 550"\}$/m),
      })
      expect(await khepri('retry', '1', '99')).toMatchObject({
        code: 1,
        stdout: 'Retried 1 job: 1 (send-welcome on mail)\n',
        stderr: 'error: no failed job 99\n',
      })
      expect(await khepri('flush', '--queue=high')).toMatchObject({
        code: 0,
        stdout: 'Deleted 2 jobs: 2 (resize-image on high), 3 (resize-image on high)\n',
      })
      expect(await khepri('failed')).toMatchObject({ code: 0, stdout: '', stderr: 'No failed jobs\n' })
    } finally {
      await database.drop()
    }
  })
})

it('20,000 ids that are not there are one question, and do not keep anybody waiting: the first ten are named', async () => {
  using project = await failures(mail)
  const ids = Array.from({ length: 20_000 }, (_, index) => String(index + 2))
  expect(await project.khepri(['retry', ...ids, '--dry-run'])).toMatchObject({
    code: 3,
    stderr: 'error: no failed job 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 19,990 others\n',
  })
  expect(await project.khepri(['retry', '1', ...ids])).toMatchObject({
    code: 1,
    stdout: 'Retried 1 job: 1 (send-welcome on mail)\n',
  })
})
