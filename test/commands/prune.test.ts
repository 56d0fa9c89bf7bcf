import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'
import { khepri } from '../support/live.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'
import { TempProject } from '../support/temp-project.ts'

const day = 86_400_000

/** Two jobs of each ending, of which the first is 10 days old: 1 and 2 failed, 3 and 4 are done, 5 and 6 cancelled. */
async function ended(store: Parameters<typeof Installation.migrated>[0]): Promise<Installation> {
  const installation = await Installation.migrated(store)
  const jobs = ['fail', 'fail', 'note', 'note'].map((job) => ({ job }))
  await installation.dispatchAll(jobs)
  await installation.run(['work', '--stop-when-empty'], { env: { KHEPRI_KEEP_DONE: '30d' } })
  await installation.dispatchAll([{ job: 'note' }, { job: 'note' }])
  await installation.must('cancel', '5', '6')
  await installation.ask('update failed_jobs set failed_at = failed_at - ? where id = 1', [10 * day])
  await installation.ask('update jobs_ended set ended_at = ended_at - ? where id in (3, 5)', [10 * day])
  return installation
}

async function left(installation: Installation): Promise<readonly number[]> {
  const jobs = JSON.parse(await installation.must('list', '--json')) as readonly { readonly id: number }[]
  return jobs.map(({ id }) => id).toReversed()
}

onBothStores('khepri prune', (store) => {
  it.concurrent('deletes what is older than the configuration keeps it; what it does not mention stays', async () => {
    await using installation = await ended(store)
    expect(await installation.run(['prune'])).toMatchObject({
      code: 0,
      stdout: 'Pruned 1 job: 1 cancelled\n',
      stderr: '',
    })
    expect(await left(installation)).toEqual([1, 2, 3, 4, 6])
    const env = { KHEPRI_KEEP_DONE: '9d', KHEPRI_KEEP_FAILED: '9d' }
    expect(await installation.run(['prune'], { env })).toMatchObject({ stdout: 'Pruned 2 jobs: 1 done, 1 failed\n' })
    expect(await left(installation)).toEqual([2, 4, 6])
    const attempted = await installation.ask('select distinct job_id from jobs_attempts')
    expect(attempted.map((row) => Number(row.job_id))).toEqual([2])
  })

  it.concurrent('takes flags before the configuration, counts with --dry-run, and finds nothing the second time', async () => {
    await using installation = await ended(store)
    const flags = ['--keep-done=0s', '--keep-failed=9d', '--keep-cancelled=11d']
    expect(await installation.must('prune', '--dry-run', ...flags)).toBe('Would prune 3 jobs: 2 done, 1 failed\n')
    expect(await left(installation)).toEqual([1, 2, 3, 4, 5, 6])
    expect(JSON.parse(await installation.must('prune', '--json', ...flags))).toEqual({
      pruned: { done: 2, failed: 1, cancelled: 0 },
    })
    expect(await left(installation)).toEqual([2, 5, 6])
    expect(await installation.run(['prune', ...flags])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing to prune\n',
    })
  })

  it.concurrent('deletes 3,000 jobs in batches', async () => {
    await using installation = await Installation.migrated(store)
    await installation.dispatchAll(Array.from({ length: 3_000 }, () => ({ job: 'note' })))
    await installation.must('cancel', '--all', '--yes')
    expect(await installation.must('prune', '--keep-cancelled=0s')).toBe('Pruned 3,000 jobs: 3,000 cancelled\n')
    expect(await left(installation)).toEqual([])
  })
})

describe('khepri prune', () => {
  it.each<[string[], string]>([
    [['--keep-done=soon'], '--keep-done must be a duration such as '],
    [['7'], 'unexpected argument "7"\n'],
  ])('%j is wrong usage', async (words, says) => {
    using project = await migratedProject()
    expectRefusal(await project.khepri(['prune', ...words]), { code: 2, says })
  })

  it('without tables is 78, as one line of JSON with --json', async () => {
    using project = new TempProject({ 'package.json': '{}' })
    expectJsonRefusal(await khepri(['prune', '--json'], { cwd: project.path }), { code: 'SCHEMA_MISSING', exit: 78 })
  })

  it.skipIf(terminalSkipReason() !== null)('says the same at a terminal', async () => {
    using project = await migratedProject()
    const { stdout } = await atTerminal(['prune', '--color=never'], { cwd: project.path })
    expect(stdout).toBe('Nothing to prune\n')
  })
})
