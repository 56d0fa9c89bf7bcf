import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'

onBothStores('khepri restart', (store) => {
  it.concurrent('lets every worker end what it runs, take nothing new, and exit 0', async () => {
    await using installation = await Installation.migrated(store)
    await using one = await installation.worker('--name=web1')
    await using two = await installation.worker('--name=web2')
    const ids = [await installation.dispatch('hold'), await installation.dispatch('hold')]
    await installation.ledger.untilStarted(2)
    expect(await installation.run(['restart'])).toMatchObject({
      code: 0,
      stdout: 'Asked 2 workers to restart: web1, web2\n',
      stderr: '',
    })
    for (const worker of [one, two]) await worker.until(/stopping as khepri restart asks: waiting for 1 job/, 'stderr')
    const next = await installation.dispatch('note')
    installation.open()
    for (const worker of [one, two]) expect(await worker.ended).toMatchObject({ code: 0, signal: null })
    expect([...installation.ledger.ended].toSorted()).toEqual(ids)

    await installation.must('work', '--once')
    expect(installation.ledger.ended.has(next)).toBe(true)
  })

  it.concurrent('--wait waits until they have stopped, and a worker that starts later goes on', async () => {
    await using installation = await Installation.migrated(store)
    await using old = await installation.worker('--name=old')
    await installation.dispatch('hold')
    await installation.ledger.untilStarted(1)
    await using restart = installation.start(['restart', '--wait'])
    await restart.until(/^Asked 1 worker to restart: old\n/)
    await using young = await installation.worker('--name=young')
    installation.open()
    expect(await restart.ended).toMatchObject({
      code: 0,
      stdout: 'Asked 1 worker to restart: old\nold has stopped\n',
      stderr: '',
    })
    expect(await old.ended).toMatchObject({ code: 0 })
    const id = await installation.dispatch('note')
    await young.until(new RegExp(`DONE ${id} `))
    young.kill('SIGTERM')
    expect(await young.ended).toMatchObject({ code: 0 })
  })

  it.concurrent('--wait does not wait for a worker that was killed: its lease tells', async () => {
    await using installation = await Installation.migrated(store)
    await using worker = await installation.worker('--name=web1')
    worker.kill('SIGKILL')
    await worker.ended
    expect(JSON.parse(await installation.must('restart', '--wait', '--json'))).toEqual({
      asked: ['web1'],
      stopped: [{ worker: 'web1', as: 'dead' }],
    })
  })
})

describe('khepri restart', () => {
  it('where there is no worker says how to start one', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['restart'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No workers. Start one: khepri work\n',
    })
    expect(await project.khepri(['restart', '--wait', '--json'])).toMatchObject({
      code: 0,
      stdout: '{"asked":[],"stopped":[]}\n',
    })
  })

  it('takes no words, and without tables is 78', async () => {
    using project = await migratedProject()
    expectRefusal(await project.khepri(['restart', 'web1']), { code: 2, says: 'unexpected argument "web1"\n' })
    const other = ['restart', '--database=sqlite:./other.db', '--json']
    expectJsonRefusal(await project.khepri(other), { code: 'SCHEMA_MISSING', exit: 78 })
  })

  it.skipIf(terminalSkipReason() !== null)('says the same at a terminal', async () => {
    using project = await migratedProject()
    const { stdout } = await atTerminal(['restart', '--color=never'], { cwd: project.path })
    expect(stdout).toBe('No workers. Start one: khepri work\n')
  })
})
