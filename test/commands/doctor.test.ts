import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { tableNames } from '../../src/core/store/names.ts'
import { checkPostgres } from '../../src/core/store/postgres/checkup.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { KhepriProject, migratedProject } from '../support/khepri-project.ts'
import { PgBouncer, pgbouncerSkipReason } from '../support/pgbouncer.ts'
import { command, freePort, freshDatabase, postgresSkipReason } from '../support/postgres.ts'

const good = { 'jobs/note.mjs': 'export default () => {}' }

/** What `khepri doctor --json` found, by the name of its check. */
function byCheck(stdout: string): Record<string, { state: string; found: string; fix: string | null; code: string }> {
  const findings = JSON.parse(stdout) as { check: string; state: string; found: string; fix: string; code: string }[]
  return Object.fromEntries(findings.map(({ check, ...finding }) => [check, finding]))
}

onBothStores('khepri doctor', (store) => {
  it.concurrent('finds nothing wrong with an installation that works, says what it looked at, and exits 0', async () => {
    await using installation = await Installation.migrated(store)
    const { code, stdout, stderr } = await installation.run(['doctor', '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const found = byCheck(stdout)
    const own = store === 'sqlite' ? ['file system', 'journal'] : ['version', 'clock', 'pooler']
    expect(Object.keys(found).sort()).toEqual(
      ['node', 'signals', 'config', 'jobs', 'database', 'writable', 'schema', ...own].sort(),
    )
    expect(Object.values(found).filter(({ state }) => state !== 'ok')).toEqual([])
  })

  it.concurrent('a database without tables is a fault, with the command that mends it', async () => {
    await using installation = await Installation.empty(store)
    const { code, stderr } = await installation.run(['doctor'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: the schema of \S+ is missing\n {2}fix: khepri migrate\n$/)
  })
})

describe('khepri doctor', () => {
  it('lists its checks on stdout, and on stderr each fault with its fix', async () => {
    using project = await migratedProject({ ...good, 'jobs/broken.mjs': 'export default () => {' })
    const { code, stdout, stderr } = await project.khepri(['doctor'])
    expect(stdout).toMatch(/^Check +State +Found\nnode +ok +\d+\.\S+, \S+ \S+\n/)
    expect(stdout).toMatch(/\njob broken +fault +cannot import \.\/jobs\/broken\.mjs:1: [^\n]+\n/)
    expect(stdout).toMatch(/\nschema +ok +at 0005_parents\n$/)
    expect(stderr).toMatch(/^error: cannot import \.\/jobs\/broken\.mjs:1: [^\n]+\n {2}fix: [^\n]+\n$/)
    expect(code).toBe(1)
  })

  it('a configuration that cannot be read is a fault, and what depends on it is not asked', async () => {
    using project = new KhepriProject({ 'khepri.config.json': '{"tires":3}' })
    const { code, stdout, stderr } = await project.khepri(['doctor', '--json'])
    expect(byCheck(stdout)).toMatchObject({ config: { state: 'fault', code: 'CONFIG_INVALID' } })
    expect(Object.keys(byCheck(stdout))).toEqual(['node', 'signals', 'config'])
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'CONFIG_INVALID', exit: 1 } })
    expect(code).toBe(1)
  })

  it('an SQLite file that has left the write-ahead log is a fault', async () => {
    using project = await migratedProject(good)
    const db = new Database(join(project.path, 'khepri.db'))
    db.pragma('journal_mode = delete')
    db.close()
    const { code, stderr } = await project.khepri(['doctor'])
    expect(stderr).toBe(
      'error: sqlite:./khepri.db is in journal mode "delete"; khepri needs "wal"\n  fix: khepri migrate sets it\n',
    )
    expect(code).toBe(1)
    await project.khepri(['migrate'])
    expect(await project.khepri(['doctor'])).toMatchObject({ code: 0, stderr: '' })
  })

  it('leaves nothing behind in the database', async () => {
    using project = await migratedProject(good)
    const tables = (): unknown[] => {
      const db = new Database(join(project.path, 'khepri.db'), { readonly: true })
      try {
        return db.prepare('select name from sqlite_master').pluck().all()
      } finally {
        db.close()
      }
    }
    const before = tables()
    await project.khepri(['doctor'])
    expect(tables()).toEqual(before)
  })

  it('warns of npm as the parent, and exits 0 all the same', async () => {
    using project = await migratedProject(good)
    const { code, stderr } = await project.khepri(['doctor'], { env: { npm_command: 'run-script' } })
    expect(stderr).toMatch(/^warning: started by npm, [^\n]+\n {2}fix: [^\n]+\n$/)
    expect(code).toBe(0)
  })

  it('--report adds versions and settings, and shows no password', async () => {
    using project = new KhepriProject(good)
    const url = `postgres://app:s3cret@127.0.0.1:${await freePort()}/app`
    const text = await project.khepri(['doctor', '--report', '--database', url])
    expect(text.stdout).toMatch(/^khepri: +\S+\nnode: +\S+\nsystem: [^\n]+\nsettings: [^\n]+"retryAfterMs":90000/)
    expect(text.stdout).toMatch(
      /\ndatabase +fault +cannot reach postgres:\/\/app:\*\*\*@127\.0\.0\.1:\d+\/app: connection refused\n/,
    )
    const { stdout, code } = await project.khepri(['doctor', '--report', '--json', '--database', url])
    expect(JSON.parse(stdout)).toMatchObject({ khepri: expect.any(String), settings: { tries: 1 } })
    expect(`${text.stdout}${text.stderr}${stdout}`).not.toContain('s3cret')
    expect(code).toBe(1)
  })
})

describe.skipIf(postgresSkipReason() !== null)('khepri doctor, of Postgres', () => {
  it('a database that takes no writes is a fault', async () => {
    await using installation = await Installation.migrated('postgres')
    const name = new URL(installation.url as string).pathname.slice(1)
    await command(installation.url as string, `alter database ${name} set default_transaction_read_only = on`)
    const { stderr, code } = await installation.run(['doctor'])
    expect(stderr).toMatch(
      /^error: \S+ is read-only: nothing can be written\n {2}fix: set default_transaction_read_only to off\n$/,
    )
    expect(code).toBe(1)
  })

  it('warns of clocks that are a minute apart, and says which is ahead', async () => {
    const { url, drop } = await freshDatabase()
    try {
      const options = {
        ...{ names: tableNames('jobs', 'failed_jobs'), schema: undefined, label: 'db', clock: undefined },
        ...{ random: Math.random, prepare: true, deadlineMs: 10_000 },
      }
      const behind = await checkPostgres(url, options, () => Date.now() - 60_000)
      expect(behind.find(({ check }) => check === 'clock')).toMatchObject({
        state: 'warning',
        text: expect.stringMatching(/^the database is (?:1m|60s|59\.9\d?s|1m \d+\w*) ahead of this host$/),
      })
      expect((await checkPostgres(url, options)).find(({ check }) => check === 'clock')).toMatchObject({ state: 'ok' })
    } finally {
      await drop()
    }
  })

  it.skipIf(pgbouncerSkipReason() !== null)('warns of a pooler while prepare is true', async () => {
    await using installation = await Installation.migrated('postgres')
    await using pooler = await PgBouncer.start(installation.url as string)
    const pooled = ['doctor', '--json', '--database', pooler.url]
    const found = byCheck((await installation.run(pooled)).stdout)
    expect(found['pooler']).toMatchObject({ state: 'warning', fix: expect.stringContaining('prepare: false') })
    const without = await installation.run(pooled, { env: { KHEPRI_PREPARE: 'false' } })
    expect(byCheck(without.stdout)['pooler']).toMatchObject({ state: 'ok', found: 'one, and prepare is false' })
  })
})
