import { expect, it } from 'vitest'
import { terminalShell, terminalSkipReason } from '../support/cli.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { expectRefusal } from '../support/refusals.ts'

onBothStores('khepri watch', (store) => {
  it.concurrent('in a pipe writes snapshots, and each failure as it comes, until it is told to stop', async () => {
    await using installation = await Installation.migrated(store)
    await installation.dispatch('note', '--delay=1h')
    await using watching = installation.start(['watch', '--every=100ms'])
    const time = String.raw`\d{4}-\S+Z`
    await watching.until(
      new RegExp(
        `^${time} WORKERS none\n${time} QUEUE default ready=0 running=0 scheduled=1 failed=0 waitMs=0 paused=false\n`,
      ),
    )
    const id = await installation.dispatch('fail')
    await installation.must('work', '--once')
    await watching.until(
      new RegExp(
        `\n${time} FAILED ${id} fail queue=default not mended yet\n${time} WORKERS .*\n${time} QUEUE default .* failed=1 `,
      ),
    )
    watching.kill('SIGTERM')
    const { code, stdout, stderr } = await watching.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.match(/ FAILED /g)).toHaveLength(1)
  })
})

it('--json is one record a line, and top is another name for it', async () => {
  await using installation = await Installation.migrated('sqlite')
  await using worker = await installation.worker('--name=web1')
  await installation.dispatch('hold')
  await installation.ledger.untilStarted(1)
  await using watching = installation.start(['top', '--json', '--every=100ms'])
  const [line] = await watching.until(/^.+\n/)
  expect(JSON.parse(line)).toMatchObject({
    event: 'snapshot',
    queues: [{ queue: 'default', running: 1, oldestWaitMs: null }],
    workers: [{ name: 'web1', state: 'working' }],
    running: [{ job: 'hold', worker: 'web1' }],
  })
  worker.kill('SIGKILL')
})

it('a reader that leaves ends it quietly', async () => {
  using project = await migratedProject()
  const watching = project.start(['watch', '--every=50ms'], { shell: '"$@" | head -1' })
  expect(await watching.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/WORKERS none\n$/), stderr: '' })
})

it.skipIf(terminalSkipReason() !== null)(
  'at a terminal draws a screen, pauses a queue by key, and gives the terminal back',
  async () => {
    using project = await migratedProject()
    await project.khepri(['dispatch', '--job=note', '--allow-unknown'])
    await using watching = project.start(['watch', '--every=100ms', '--color=never'], {
      shell: `{ until grep -q "q quit" screen; do :; done; printf p; until grep -q "(paused)" screen; do :; done; printf q; } | ${terminalShell(80)} | tee screen`,
    })
    const { code, stdout } = await watching.ended
    expect(code).toBe(0)
    expect(stdout.startsWith('\u001b[?1049h\u001b[?25l')).toBe(true)
    expect(stdout.endsWith('\u001b[?25h\u001b[?1049l')).toBe(true)
    expect(stdout).toContain('paused default')
    const status = JSON.parse((await project.khepri(['status', '--json'])).stdout)
    expect(status.queues).toMatchObject([{ queue: 'default', paused: true, pauseReason: 'paused from khepri watch' }])
  },
)

it('without tables is 78', async () => {
  using project = new KhepriProject({ 'khepri.config.json': '{}' })
  expectRefusal(await project.khepri(['watch']), { code: 78, says: 'the schema of sqlite:./khepri.db is missing\n' })
})
