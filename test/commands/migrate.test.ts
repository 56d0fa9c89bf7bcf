import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { onBothStores } from '../support/installation.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { freshDatabase } from '../support/postgres.ts'

describe('khepri migrate', () => {
  it('applies 6 migrations, and a second time has nothing to do', async () => {
    using project = new KhepriProject()
    const first = await project.khepri(['migrate'])
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toMatch(/^applied {2}0000_jobs \.\. 0005_parents {5}6 migrations, \d+(\.\d+)?m?s\n$/)
    expect(await project.khepri(['migrate'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Nothing to do: sqlite:./khepri.db is at 0005\n',
    })
  })

  it('names what it applied with --json, also when that is nothing', async () => {
    using project = new KhepriProject()
    const [first, second] = [await project.khepri(['migrate', '--json']), await project.khepri(['migrate', '--json'])]
    expect(JSON.parse(first.stdout)).toMatchObject({
      database: 'sqlite:./khepri.db',
      applied: ['0000_jobs', '0001_attempts', '0002_workers', '0003_marks', '0004_schedules', '0005_parents'],
    })
    expect(JSON.parse(second.stdout)).toMatchObject({ applied: [] })
  })

  it('--status, --dry-run and --sql say what is pending and make no file', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['migrate', '--status'])).toMatchObject({
      code: 0,
      stdout:
        'Migration       State\n0000_jobs       pending\n0001_attempts   pending\n0002_workers    pending\n0003_marks      pending\n0004_schedules  pending\n0005_parents    pending\n',
    })
    expect(await project.khepri(['migrate', '--dry-run'])).toMatchObject({
      code: 0,
      stdout: 'would apply  0000_jobs .. 0005_parents     6 migrations\n',
    })
    await project.khepri(['migrate', '--sql'])
    expect(await project.khepri(['failed'])).toMatchObject({ code: 78 })
  })

  it('--sql prints SQL that makes the same tables', async () => {
    using project = new KhepriProject()
    const { stdout } = await project.khepri(['migrate', '--sql'])
    using other = await migratedProject()
    const tables = (db: Database.Database): unknown =>
      db.prepare("select name, sql from sqlite_schema where name not like '%migrations%' order by name").all()
    const [byHand, byKhepri] = [new Database(':memory:'), new Database(join(other.path, 'khepri.db'))]
    byHand.exec(stdout)
    expect(tables(byHand)).toEqual(tables(byKhepri))
    byKhepri.close()
  })

  it('--check is 78 before and 0 after', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['migrate', '--check'])).toMatchObject({
      code: 78,
      stdout: '',
      stderr: 'error: the schema of sqlite:./khepri.db is missing\n  fix: khepri migrate\n',
    })
    await project.khepri(['migrate'])
    expect(await project.khepri(['migrate', '--check'])).toMatchObject({ code: 0, stdout: '' })
  })

  it('--check --wait ends as soon as somebody else has migrated', async () => {
    using project = new KhepriProject()
    await using waiting = project.start(['migrate', '--check', '--wait', '10m'])
    await project.khepri(['migrate'])
    expect(await waiting.ended).toMatchObject({ code: 0, stderr: 'The schema of sqlite:./khepri.db is current\n' })
  })

  it('--check --wait gives up with 78 when the time is over', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['migrate', '--check', '--wait', '1ms'])).toMatchObject({ code: 78 })
  })

  it('--check is 78 where a newer khepri has migrated', async () => {
    using project = await migratedProject()
    const db = new Database(join(project.path, 'khepri.db'))
    db.exec("insert into jobs_migrations (name, applied_at) values ('0009_later', 1)")
    db.close()
    expect(await project.khepri(['migrate', '--check'])).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('0009_later'),
    })
    expect(await project.khepri(['migrate'])).toMatchObject({ code: 78, stderr: expect.stringContaining('0009_later') })
  })

  it('refuses a table of somebody else, 73, and changes nothing', async () => {
    using project = new KhepriProject()
    const db = new Database(join(project.path, 'khepri.db'))
    db.exec('create table jobs (mine)')
    expect(await project.khepri(['migrate'])).toMatchObject({
      code: 73,
      stderr: expect.stringMatching(/^error: "jobs" exists in sqlite:\.\/khepri\.db/),
    })
    expect(db.prepare('select name from sqlite_schema').pluck().all()).toEqual(['jobs'])
    db.close()
  })

  it('run twenty at once applies once, and nineteen find nothing to do', async () => {
    using project = new KhepriProject()
    const ends = await Promise.all(Array.from({ length: 20 }, () => project.khepri(['migrate'])))
    expect(ends.map(({ code }) => code)).toEqual(Array(20).fill(0))
    const applied = ends.flatMap(({ stdout }) => /(\d) migrations?/.exec(stdout)?.[1] ?? [])
    expect(applied.reduce((sum, each) => sum + Number(each), 0)).toBe(6)
  })

  it.each([
    [['--status', '--sql'], '--status and --sql exclude each other'],
    [['--wait=1s'], '--wait needs --check'],
  ])('refuses %j', async (flags, message) => {
    using project = new KhepriProject()
    expect(await project.khepri(['migrate', ...flags])).toMatchObject({ code: 2, stderr: `error: ${message}\n` })
  })
})

onBothStores('khepri migrate', (store) => {
  it('brings an empty database up to date, once', async () => {
    using project = new KhepriProject()
    const database = store === 'postgres' ? await freshDatabase() : { url: 'sqlite:./khepri.db', drop: async () => {} }
    try {
      const flag = `--database=${database.url}`
      expect(await project.khepri(['migrate', '--check', flag])).toMatchObject({ code: 78 })
      expect(await project.khepri(['migrate', flag])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('0000_jobs .. 0005_parents     6 migrations'),
      })
      expect(await project.khepri(['migrate', flag])).toMatchObject({
        code: 0,
        stdout: '',
        stderr: expect.stringMatching(/^Nothing to do: .* is at 0005\n$/),
      })
      expect(await project.khepri(['migrate', '--check', flag])).toMatchObject({ code: 0 })
    } finally {
      await database.drop()
    }
  })
})
