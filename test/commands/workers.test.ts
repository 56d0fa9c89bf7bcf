import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { version } from '../../src/core/package.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'

describe('khepri workers', () => {
  it('where there are none says how to start one', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['workers'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No workers. Start one: khepri work\n',
    })
    expect((await project.khepri(['workers', '--json'])).stdout).toBe('[]\n')
  })
})

interface Listed {
  readonly name: string
  readonly state: string
}

async function listed(installation: Installation): Promise<readonly Listed[]> {
  const workers = JSON.parse(await installation.must('workers', '--json')) as readonly Listed[]
  return workers.map(({ name, state }) => ({ name, state }))
}

/** Resolves once the workers are these, in this order. */
async function untilListed(installation: Installation, wanted: readonly Listed[]): Promise<void> {
  while (JSON.stringify(await listed(installation)) !== JSON.stringify(wanted));
}

onBothStores('khepri workers', (store) => {
  it.concurrent('lists name, host, pid, version, queues, running jobs, state and last beat', async () => {
    await using installation = await Installation.migrated(store)
    await using worker = await installation.worker('--queue=high,default', '--concurrency=4', '--name=web1')
    await installation.dispatch('hold')
    await installation.ledger.untilStarted(1)
    const { pid } = worker.child
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
    const escaped = (text: string): string => text.replaceAll('.', '\\.')
    const columns = ['web1', escaped(hostname()), pid, escaped(version()), 'high,default', '1/4', 'working', time, '-']
    expect(await installation.must('workers')).toMatch(
      new RegExp(`^Name +Host +Pid +Version +Queues +Running +State +Last beat +Busy\n${columns.join(' +')}\n$`),
    )
    expect(await installation.must('workers', '--plain')).toMatch(new RegExp(`^${columns.join('\t')}\n$`))
    expect(JSON.parse(await installation.must('workers', '--json'))).toEqual([
      {
        ...{ name: 'web1', host: hostname(), pid, version: version(), queues: 'high,default' },
        ...{ running: 1, concurrency: 4, state: 'working', retryAfterMs: 2_000, busy: [] },
        ...{ startedAt: expect.stringMatching(time), beatAt: expect.stringMatching(time) },
      },
    ])
    worker.kill('SIGTERM')
    await untilListed(installation, [{ name: 'web1', state: 'draining' }])
    installation.open()
    expect(await worker.ended).toMatchObject({ code: 0 })
    expect(await listed(installation)).toEqual([])
  })

  it.concurrent('calls a killed worker silent until another one declares it dead, and lists it last', async () => {
    await using installation = await Installation.migrated(store)
    await using killed = await installation.worker('--name=first')
    killed.kill('SIGKILL')
    await killed.ended
    await untilListed(installation, [{ name: 'first', state: 'silent' }])
    await using other = await installation.worker('--name=second')
    await untilListed(installation, [
      { name: 'second', state: 'working' },
      { name: 'first', state: 'dead' },
    ])
    other.kill('SIGTERM')
    await other.ended
  })
})
