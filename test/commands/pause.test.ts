import { describe, expect, it } from 'vitest'
import { atTerminal, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { migratedProject } from '../support/khepri-project.ts'
import { expectRefusal } from '../support/refusals.ts'

onBothStores('khepri pause and resume', (store) => {
  it.concurrent('a worker takes nothing from a paused queue, goes on with the others, and takes up where it is resumed', async () => {
    await using installation = await Installation.migrated(store)
    await using worker = await installation.worker('--queue=mail,default')
    expect(await installation.run(['pause', 'mail', '--reason', 'deploy'])).toMatchObject({
      code: 0,
      stdout: 'Paused 1 queue: mail\n',
      stderr: 'What runs may end. Go on: khepri resume mail\n',
    })
    const mail = await installation.dispatch('note', '--queue=mail')
    const other = await installation.dispatch('note')
    await worker.until(new RegExp(`DONE ${other} `))
    expect(installation.ledger.starts.map(({ id }) => id)).toEqual([other])
    expect(await installation.must('status')).toMatch(/^mail .* paused: deploy$/m)

    expect(await installation.must('resume', 'mail')).toBe('Resumed 1 queue: mail\n')
    await worker.until(new RegExp(`DONE ${mail} `))
    worker.kill('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0 })
  })

  it.concurrent('a pause with --for says when it ends, and is over by itself then', async () => {
    await using installation = await Installation.migrated(store)
    const id = await installation.dispatch('note')
    const asked = Date.now()
    const stdout = await installation.must('pause', 'default', '--for=1h')
    const [, end = ''] = /^Paused 1 queue until (\S+Z): default\n$/.exec(stdout) ?? []
    expect(Date.parse(end)).toBeGreaterThanOrEqual(asked + 3_600_000)
    expect(Date.parse(end)).toBeLessThanOrEqual(Date.now() + 3_600_000)
    await installation.must('work', '--stop-when-empty')
    expect(installation.ledger.starts).toEqual([])

    await installation.ask('update jobs_queues set paused_until = ?', [Date.now()])
    await installation.must('work', '--stop-when-empty')
    expect(installation.ledger.starts.map((line) => line.id)).toEqual([id])
  })

  it.concurrent('--all pauses every queue with jobs, with workers or in the configuration, and resume --all ends each', async () => {
    await using installation = await Installation.migrated(store)
    await installation.dispatch('note', '--queue=mail')
    expect(JSON.parse(await installation.must('pause', '--all', '--json'))).toEqual({
      paused: ['default', 'mail'],
      until: null,
      reason: null,
    })
    const { queues } = JSON.parse(await installation.must('status', '--json'))
    expect(queues).toMatchObject([
      { queue: 'default', paused: true, pausedAt: expect.stringMatching(/Z$/), pausedUntil: null, pauseReason: null },
      { queue: 'mail', paused: true },
    ])
    expect(await installation.must('resume', '--all')).toBe('Resumed 2 queues: default, mail\n')
    expect(await installation.run(['resume', '--all'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No queue is paused\n',
    })
  })
})

describe('khepri pause', () => {
  it('of a queue that nobody knows pauses it, and says what was perhaps meant', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['pause', 'defualt'])).toMatchObject({
      code: 0,
      stdout: 'Paused 1 queue: defualt\n',
      stderr:
        'What runs may end. Go on: khepri resume defualt\nNobody knows a queue "defualt". Did you mean "default"?\n',
    })
  })

  it.each<[string[], string]>([
    [['pause'], 'no queue given\n  fix: name queues, or say --all\n'],
    [['pause', 'mail', '--all'], 'queues and --all exclude each other\n'],
    [['pause', 'a,b'], 'a queue must be one name without a comma, got "a,b"\n'],
    [['pause', 'mail', '--for=soon'], '--for must be a duration such as '],
    [['resume'], 'no queue given\n  fix: name queues, or say --all\n'],
    [['resume', 'mail', '--all'], 'queues and --all exclude each other\n'],
  ])('%j is wrong usage', async (words, says) => {
    using project = await migratedProject()
    expectRefusal(await project.khepri(words), { code: 2, says })
  })

  it.skipIf(terminalSkipReason() !== null)('says the same at a terminal', async () => {
    using project = await migratedProject()
    const { stdout } = await atTerminal(['pause', 'default', '--color=never'], { cwd: project.path })
    expect(stdout).toBe('Paused 1 queue: default\nWhat runs may end. Go on: khepri resume default\n')
  })
})

describe('khepri resume', () => {
  it('of a queue that is not paused changes nothing, and 0; of one that nobody knows is 3, or 1 beside another', async () => {
    using project = await migratedProject()
    expect(await project.khepri(['resume', 'default'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Not paused: default\n',
    })
    await project.khepri(['pause', 'mail'])
    expectRefusal(await project.khepri(['resume', 'mial']), {
      code: 3,
      says: 'no paused queue "mial". Did you mean "mail"?\n',
    })
    expect(await project.khepri(['resume', 'mail', 'other'])).toMatchObject({
      code: 1,
      stdout: 'Resumed 1 queue: mail\n',
      stderr: 'error: no paused queue "other"\n',
    })
  })

  it('--json lists what was resumed and what was not paused; an unknown queue is one line of JSON', async () => {
    using project = await migratedProject()
    await project.khepri(['pause', 'mail'])
    expect(JSON.parse((await project.khepri(['resume', 'mail', 'default', '--json'])).stdout)).toEqual({
      resumed: ['mail'],
      notPaused: ['default'],
    })
    const { code, stderr } = await project.khepri(['resume', 'other', '--json'])
    expect({ code, error: JSON.parse(stderr) }).toMatchObject({
      code: 3,
      error: { error: { code: 'NOT_FOUND', exit: 3 } },
    })
  })
})
