import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'

const iso = String.raw`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z`

const config = (schedules: object): Readonly<Record<string, string>> => ({
  'khepri.config.json': JSON.stringify({ schedules }),
  'jobs/note.mjs': `export default (payload, { log, schedule, scheduledFor, missed }) => {
    console.log(JSON.stringify(payload))
    log(schedule, scheduledFor > 0, missed)
  }`,
})

const nightly = { job: 'note', cron: '30 2 * * *', zone: 'Europe/Oslo', payload: { n: 7 } }

/** Slots come without waiting for them where the schedule was looked after an hour ago. */
const anHourAgo = 'update jobs_schedules set last_slot = last_slot - 3600000'

function setBack(project: KhepriProject): void {
  const db = new Database(`${project.path}/khepri.db`)
  db.exec(anHourAgo)
  db.close()
}

describe('khepri schedule', () => {
  it('needs a second word, suggests one, and helps with all of them', async () => {
    using project = new KhepriProject()
    const words = 'list, run, work, test, trigger, pause, resume, simulate, import'
    expect(await project.khepri(['schedule'])).toMatchObject({
      code: 2,
      stderr: `error: schedule needs a second word: ${words}\n  fix: khepri help schedule\n`,
    })
    expect(await project.khepri(['schedule', 'lst'])).toMatchObject({
      code: 2,
      stderr: 'error: unknown command "schedule lst". Did you mean "schedule list"?\n  fix: khepri help\n',
    })
    const { code, stdout } = await project.khepri(['help', 'schedule'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/\n {2}schedule run +Look after the schedules once: enqueue what is due, and end\n/)
    expect((await project.khepri(['help', 'schedule', 'list'])).stdout).toContain('$ khepri schedule list [FLAGS]')
  })

  it('refuses a configuration whose schedule can never fire, whatever the command', async () => {
    using project = new KhepriProject(config({ never: { job: 'note', cron: '0 0 30 2 *' } }))
    const { code, stderr } = await project.khepri(['dispatch', '--job', 'note'])
    expect(code).toBe(78)
    expect(stderr).toMatch(
      /^error: schedules\.never: the cron expression "0 0 30 2 \*" can never fire: [^\n]+\n {2}fix: edit \S+khepri\.config\.json\n$/,
    )
  })
})

describe('khepri schedule list', () => {
  it('shows when, the state, the last run with its result, and the next five times', async () => {
    using project = await migratedProject(config({ nightly, off: { ...nightly, enabled: false } }))
    const fresh = await project.khepri(['schedule', 'list', '--plain'])
    expect(fresh).toMatchObject({ code: 0, stderr: '' })
    expect(fresh.stdout).toMatch(
      new RegExp(
        String.raw`^nightly\t30 2 \* \* \*\tEurope/Oslo\tnew\t-\t-\t${iso}(, ${iso}){4}\noff\t30 2 \* \* \*\tEurope/Oslo\tdisabled\t-\t-\t-\n$`,
      ),
    )
    const id = (await project.khepri(['schedule', 'trigger', 'nightly', '--quiet'])).stdout.trim()
    await project.khepri(['work', '--stop-when-empty', '--quiet'])
    const [listed] = JSON.parse((await project.khepri(['schedule', 'list', '--json'])).stdout) as object[]
    expect(listed).toMatchObject({ name: 'nightly', job: 'note', lastJob: Number(id), result: 'ended', missed: 0 })
  })

  it('shows schedules that are gone from the configuration as orphans, and says where there are none', async () => {
    using project = await migratedProject(config({ nightly }))
    expect((await project.khepri(['schedule', 'run'])).code).toBe(0)
    project.write('khepri.config.json', '{}')
    expect((await project.khepri(['schedule', 'list', '--plain'])).stdout).toBe('nightly\t-\t-\torphan\t-\t-\t-\n')

    using empty = await migratedProject()
    expect(await empty.khepri(['schedule', 'list'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No schedules. Put some into the configuration: schedules: { … }\n',
    })
  })
})

onBothStores('khepri schedule run', (store) => {
  it('enqueues what is due, once, and no more the next time', async () => {
    await using installation = await Installation.migrated(store)
    const { project, url } = installation
    const schedules = { five: { job: 'note', every: '5m' } }
    project.write('khepri.config.json', JSON.stringify({ ...(url !== null && { database: url }), schedules }))
    expect(await installation.run(['schedule', 'run'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing is due\n',
    })
    await installation.ask(anHourAgo)
    const { code, stdout, stderr } = await installation.run(['schedule', 'run'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(String.raw`^ID +Schedule +Job +Queue +Slot\n1 +five +note +default +${iso}\n$`))
    expect(stderr).toMatch(/^schedule five: nobody looked in time at 1[123] slots up to \S+; made up for by 1 run\n$/)
    expect(await installation.run(['schedule', 'run', '--json'])).toMatchObject({ code: 0, stdout: '[]\n' })
    const [counted] = await installation.ask('select count(*) as count from jobs')
    expect(Number(counted?.count)).toBe(1)
  })
})

describe('khepri schedule run', () => {
  it('tells which schedule cannot fire, with exit 1, and fires the others', async () => {
    using project = await migratedProject(
      config({ broken: { job: 'nowt', every: '5m' }, five: { job: 'note', every: '5m' } }),
    )
    await project.khepri(['schedule', 'run'])
    setBack(project)
    const { code, stdout, stderr } = await project.khepri(['schedule', 'run', '--plain'])
    expect(code).toBe(1)
    expect(stdout).toMatch(new RegExp(String.raw`^1\tfive\tnote\tdefault\t${iso}\n$`))
    expect(stderr).toContain('error: schedule broken cannot fire: unknown job "nowt"\n')
  })
})

describe('schedule work, and work --schedule', () => {
  it('schedule work fires until SIGTERM, exit 0, and runs nothing', async () => {
    using project = await migratedProject(config({ second: { job: 'note', every: '1s', overlap: 'allow' } }))
    await using scheduler = project.start(['schedule', 'work'])
    await scheduler.until(/FIRED second job=2 note queue=default slot=\S+\n/)
    scheduler.kill('SIGTERM')
    const { code, stdout, stderr } = await scheduler.ended
    expect(code).toBe(0)
    expect(stderr).toMatch(/^khepri \S+ looks after 1 schedule {2}sqlite:\.\/khepri\.db {4}Ctrl-C stops\n/)
    expect(stdout.trimEnd().split('\n').length).toBe(project.count())
  })

  it('work --schedule fires and runs, as KHEPRI_WORK_SCHEDULE does', async () => {
    using project = await migratedProject(config({ second: { job: 'note', every: '1s', payload: { n: 7 } } }))
    for (const [args, env] of [
      [['work', '--schedule'], {}],
      [['work'], { KHEPRI_WORK_SCHEDULE: 'true' }],
    ] as const) {
      await using worker = project.start(args, { env })
      await worker.until(/FIRED second job=\d+ note[\s\S]*LOG \d+ note queue=default try=1\/1 text="second true \d+"\n/)
      worker.kill('SIGTERM')
      expect((await worker.ended).code).toBe(0)
    }
  })

  it('work --schedule --stop-when-empty, as from a timer, runs what is due and ends', async () => {
    using project = await migratedProject(config({ five: { job: 'note', every: '5m' } }))
    const args = ['work', '--schedule', '--stop-when-empty']
    expect((await project.khepri(args)).stdout).toMatch(/stopped: 0 done/)
    setBack(project)
    const { code, stdout } = await project.khepri(args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/FIRED five job=1 note [\s\S]*DONE 1 note [\s\S]*stopped: 1 done/)
  })

  it('work hints where nobody looks after the schedules of its configuration, and doctor warns', async () => {
    using project = await migratedProject(config({ nightly }))
    const hint = 'nobody looks after the 1 schedule of this configuration'
    const fix = 'khepri work --schedule, or khepri schedule work, or khepri schedule run once a minute'
    expect((await project.khepri(['work', '--stop-when-empty'])).stderr).toContain(`hint: ${hint}: ${fix}\n`)
    expect((await project.khepri(['doctor'])).stderr).toContain(`warning: ${hint}\n  fix: ${fix}\n`)

    await project.khepri(['schedule', 'run'])
    expect((await project.khepri(['work', '--stop-when-empty'])).stderr).toBe('')
    const { stdout, stderr } = await project.khepri(['doctor'])
    expect(stdout).toMatch(/\nschedules +ok +1 schedule, and it can fire\n/)
    expect(stderr).not.toContain('nobody looks')
  })

  it('doctor finds the schedule whose job nobody knows', async () => {
    using project = await migratedProject(config({ broken: { job: 'noet', every: '5m' } }))
    const { code, stderr } = await project.khepri(['doctor'])
    expect(code).toBe(1)
    expect(stderr).toContain('error: unknown job "noet". Did you mean "note"?\n')
  })

  it('schedules in memory are refused in production', async () => {
    using project = new KhepriProject({
      'khepri.config.json': JSON.stringify({ database: 'memory:', schedules: { nightly } }),
    })
    expect(await project.khepri(['schedule', 'work'], { env: { NODE_ENV: 'production' } })).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/^error: schedules\.nightly is in memory, and this is production: /),
    })
  })
})

describe('one schedule', () => {
  it('is triggered, paused, resumed and tested by its name', async () => {
    using project = await migratedProject(config({ nightly }))
    expect(await project.khepri(['schedule', 'trigger', 'nightly'])).toMatchObject({
      code: 0,
      stdout: '1\n',
      stderr: 'Triggered nightly: note on default. How it goes: khepri show 1\n',
    })
    expect(await project.khepri(['schedule', 'pause', 'nightly'])).toMatchObject({
      code: 0,
      stdout: 'Paused schedule nightly\n',
      stderr: 'Go on: khepri schedule resume nightly\n',
    })
    expect((await project.khepri(['schedule', 'list', '--plain'])).stdout).toMatch(/\tpaused\t/)
    expect(await project.khepri(['schedule', 'resume', 'nightly'])).toMatchObject({
      code: 0,
      stdout: 'Resumed schedule nightly\n',
    })
    expect(await project.khepri(['schedule', 'resume', 'nightly', '--json'])).toMatchObject({
      code: 0,
      stdout: '{"schedule":"nightly","resumed":false}\n',
    })
    expect(await project.khepri(['schedule', 'test', 'nightly'])).toMatchObject({
      code: 0,
      stdout: '{"n":7}\n',
      stderr: expect.stringMatching(/^nightly true 0\nRan note in \S+\n$/),
    })
  })

  it.each(['trigger', 'pause', 'resume', 'test', 'simulate'])('%s of another name is exit 3', async (word) => {
    using project = await migratedProject(config({ nightly }))
    expect(await project.khepri(['schedule', word, 'nightyl'])).toMatchObject({
      code: 3,
      stderr: 'error: no schedule "nightyl". Did you mean "nightly"?\n  fix: khepri schedule list\n',
    })
  })
})

describe('khepri schedule simulate', () => {
  it('shows every firing with gaps, doubles and overlaps marked, without a database', async () => {
    using project = new KhepriProject(config({ nightly }))
    const args = ['schedule', 'simulate', 'nightly', '--takes=25h']
    const spring = [...args, '--timezone=Europe/Oslo', '--from=2026-03-28', '--to=2026-03-30']
    expect(await project.khepri(spring)).toMatchObject({
      code: 0,
      stdout: [
        'At                             Local                          Zone         Schedule  Marks',
        '2026-03-28T02:30:00.000+01:00  2026-03-28T02:30:00.000+01:00  Europe/Oslo  nightly   -',
        '2026-03-29T03:00:00.000+02:00  2026-03-29T03:00:00.000+02:00  Europe/Oslo  nightly   gap, overlap',
        '',
      ].join('\n'),
    })
    const autumn = [...args, '--from=2026-10-25T00:00Z', '--to=2026-10-26T00:00Z', '--json']
    expect(JSON.parse((await project.khepri(autumn)).stdout)).toEqual([
      {
        ...{ at: '2026-10-25T00:30:00.000Z', local: '2026-10-25T02:30:00.000+02:00', zone: 'Europe/Oslo' },
        ...{ schedule: 'nightly', gap: false, doubled: true, overlap: false },
      },
    ])
  })

  it('tells what another zone would do, never minds that of the process, and refuses an end before the beginning', async () => {
    using project = new KhepriProject(config({ nightly }))
    const elsewhere = ['schedule', 'simulate', '--zone=Asia/Tokyo', '--plain']
    const span = ['--from=2026-06-01T00:00Z', '--to=2026-06-02T00:00Z']
    expect((await project.khepri([...elsewhere, ...span])).stdout).toBe(
      '2026-06-01T17:30:00.000Z\t2026-06-02T02:30:00.000+09:00\tAsia/Tokyo\tnightly\t-\n',
    )
    const atHome = ['schedule', 'simulate', '--json', ...span]
    const env = { TZ: 'Asia/Tokyo' }
    expect((await project.khepri(atHome, { env })).stdout).toBe((await project.khepri(atHome)).stdout)
    const back = ['--from=2026-06-01T00:00Z', '--to=2026-05-01T00:00Z']
    expect(await project.khepri([...elsewhere, ...back])).toMatchObject({
      code: 2,
      stderr: 'error: --to must be later than --from\n',
    })
  })
})

describe('khepri schedule import', () => {
  it('prints what a configuration takes, and names the lines that it cannot take, exit 1', async () => {
    using project = await migratedProject({ 'my.crontab': '# Nightly\n30 2 * * * echo night\n@reboot echo up\n' })
    const { code, stdout, stderr } = await project.khepri(['schedule', 'import', 'my.crontab', '--zone=Europe/Oslo'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: line 3: [^\n]*nothing fires when a machine starts[^\n]*\nRead 1 entry\n$/)

    project.write('khepri.config.json', stdout)
    const [echo] = JSON.parse((await project.khepri(['schedule', 'list', '--json'])).stdout) as object[]
    expect(echo).toMatchObject({ name: 'echo', when: '30 2 * * *', zone: 'Europe/Oslo', description: 'Nightly' })
    expect((await project.khepri(['schedule', 'test', 'echo'])).code).toBe(0)
  })

  it('reads stdin for -, and says where a file is missing', async () => {
    using project = new KhepriProject()
    const read = await project.khepri(['schedule', 'import', '-', '--json'], { stdin: '* * * * * true\n' })
    expect(read.code).toBe(0)
    expect(JSON.parse(read.stdout)).toMatchObject({ schedules: { true: { cron: '* * * * *' } }, refused: [] })
    expect(await project.khepri(['schedule', 'import', 'nowhere'])).toMatchObject({
      code: 66,
      stderr: 'error: cannot read nowhere: ENOENT\n',
    })
  })
})

describe('completion', () => {
  it('offers the second word, and the names of schedules', async () => {
    using project = new KhepriProject(config({ nightly }))
    const offered = async (...words: readonly string[]): Promise<readonly string[]> => {
      const { stdout } = await project.khepri(['completion', 'bash', '--reply', '--within=60s', '--', ...words])
      return stdout.split('\n').slice(0, -1)
    }
    expect(await offered('sched')).toEqual(['schedule'])
    expect(await offered('schedule', 're')).toEqual(['resume'])
    expect(await offered('schedule', 'pause', '')).toEqual(['nightly'])
  })
})
