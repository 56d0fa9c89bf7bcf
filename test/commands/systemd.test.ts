import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { expectRefusal } from '../support/refusals.ts'

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0

const jobs = { 'jobs/note.mjs': 'export default () => {}' }

/** Everything that systemd-analyze says about a unit of a project. */
function complaints(project: KhepriProject, file: string, ...flags: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync('systemd-analyze', [...flags, 'verify', join(project.path, file)], {
    encoding: 'utf8',
    env: { ...process.env, XDG_RUNTIME_DIR: project.path },
  })
  return `${stdout}${stderr}${status === 0 ? '' : `[${status}]`}`
}

describe('khepri systemd', () => {
  it('prints a unit that starts this khepri in the folder of the configuration, and restarts it', async () => {
    using project = new KhepriProject({
      ...jobs,
      'khepri.config.json': '{"timeout":"10m"}',
      'sub/.keep': '',
    })
    const { code, stdout, stderr } = await project.khepri(['systemd', '--', '--queue=high,default', '-c', '4'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^\[Unit\]\nDescription=khepri worker\n/)
    for (const line of [
      'Type=notify',
      'NotifyAccess=all',
      `WorkingDirectory=${project.path}`,
      'KillMode=mixed',
      'Restart=always',
      'RestartPreventExitStatus=2 77 78',
      // The timeout of 10 minutes, 5 s of grace and half a minute.
      'TimeoutStopSec=635s',
      'WatchdogSec=5min',
      'WantedBy=multi-user.target',
    ])
      expect(stdout.split('\n')).toContain(line)
    expect(stdout).toMatch(
      new RegExp(
        `^ExecStart=\\S+ \\S+/bin/run\\.cjs work --config=${project.path}/khepri\\.config\\.json --queue=high,default -c 4$`,
        'm',
      ),
    )
  })

  it.skipIf(!hasAnalyze)('systemd-analyze has not a word to say about any unit that it prints', async () => {
    using project = new KhepriProject({ ...jobs, 'a "50%" $HOME.config.json': '{}' })
    const print = async (file: string, ...words: readonly string[]): Promise<void> => {
      project.write(file, (await project.khepri(['systemd', ...words])).stdout)
    }
    await print('khepri.service', '--', '--stop-when-empty')
    await print('khepri.timer', '--timer')
    await print('khepri@.service', '--template')
    await print('strange.service', '--config', 'a "50%" $HOME.config.json', '--', '--queue=one two')
    await print('mine.service', '--user')
    for (const file of ['khepri.service', 'khepri.timer', 'khepri@.service', 'strange.service'])
      expect(complaints(project, file), file).toBe('')
    expect(complaints(project, 'mine.service', '--user')).toBe('')
  })

  it('with a bound the unit is one for a timer: it is not enabled by itself, and ends in peace', async () => {
    using project = new KhepriProject(jobs)
    const { stdout } = await project.khepri(['systemd', '--', '--stop-when-empty'])
    expect(stdout).toContain('\nRestart=on-failure\n')
    expect(stdout).not.toContain('[Install]')
    expect((await project.khepri(['systemd', '--timer'])).stdout).toMatch(/\[Timer\]\n[^[]*OnUnitInactiveSec=1min\n/)
  })

  it("a user's unit names no user and no target of the system", async () => {
    using project = new KhepriProject(jobs)
    const { stdout } = await project.khepri(['systemd', '--user'])
    expect(stdout).not.toMatch(/^(?:User=|After=network)/m)
    expect(stdout).toMatch(/\[Install\]\nWantedBy=default\.target\n$/)
  })

  it.each<[string[], string]>([
    [['--', '--concurency=4'], 'unknown flag --concurency. Did you mean --concurrency?\n'],
    [['--', 'mail'], 'unexpected argument "mail"\n'],
    [['--template', '--', '--queue=mail'], '--template takes the queue from the name of the instance\n'],
  ])('%j is wrong usage', async (words, says) => {
    using project = new KhepriProject(jobs)
    expectRefusal(await project.khepri(['systemd', ...words]), { code: 2, says })
  })
})

describe('khepri work under systemd', () => {
  /** Stands in for systemd-notify and writes down what it is told, with the socket that it would tell it to. */
  const notify = '#!/bin/sh\necho "$NOTIFY_SOCKET: $*" >> notices\n'

  it('says READY, its counts and STOPPING through systemd-notify, and its jobs do not see the socket', async () => {
    using project = await migratedProject({
      'bin/systemd-notify': notify,
      'jobs/socket.mjs': "export default (_, { log }) => log('socket ' + (process.env.NOTIFY_SOCKET ?? 'none'))",
    })
    chmodSync(join(project.path, 'bin/systemd-notify'), 0o755)
    await project.khepri(['dispatch', '--job=socket'])
    const { code, stdout } = await project.khepri(['work', '--stop-when-empty'], {
      env: { PATH: `${join(project.path, 'bin')}${delimiter}${process.env['PATH']}`, NOTIFY_SOCKET: '/run/notify' },
    })
    expect(code).toBe(0)
    expect(stdout).toContain('socket none')
    const notices = readFileSync(join(project.path, 'notices'), 'utf8')
    expect(notices).toMatch(
      /^\/run\/notify: READY=1 STATUS=\d running, \d done, 0 retried, 0 failed\n(?:.*\n)*\/run\/notify: STOPPING=1 (?:STATUS=draining: 0 running, 1 done, 0 retried, 0 failed )EXTEND_TIMEOUT_USEC=30000000\n$/,
    )
  })

  it('works all the same where systemd-notify is missing, and says so once', async () => {
    using project = await migratedProject(jobs)
    const { code, stderr } = await project.khepri(['work', '--stop-when-empty'], {
      env: { PATH: project.path, NOTIFY_SOCKET: '/run/notify' },
    })
    expect(code).toBe(0)
    expect(stderr.match(/^warning: systemd is not told how this worker is: .*ENOENT$/gm)).toHaveLength(1)
  })
})
