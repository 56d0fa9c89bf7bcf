import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, vi } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'
import { khepri } from '../support/live.ts'
import { command, postgresSkipReason, startPostgres } from '../support/postgres.ts'
import { canBeWithoutRights, expectRefusal, letAllIn, withoutRights } from '../support/refusals.ts'
import { TempProject } from '../support/temp-project.ts'

/** Many processes in a row, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

onBothStores('a schema', (store) => {
  const commands = [['work', '--once'], ['dispatch', '--job', 'note'], ['failed']]

  it.concurrent('that is behind is 78, names what is missing, and is left as it is', async () => {
    await using installation = await Installation.migrated(store)
    await installation.ask("delete from jobs_migrations where name = '0002_workers'")
    for (const args of commands)
      expectRefusal(await installation.run(args), {
        code: 78,
        says: /^the schema of \S+ is behind: 0002_workers not applied\n {2}fix: khepri migrate\n$/,
      })
    expect(await installation.ask('select id from jobs')).toEqual([])
  })

  it.concurrent('that is ahead is 78, names what is unknown, and is not migrated', async () => {
    await using installation = await Installation.migrated(store)
    await installation.ask("insert into jobs_migrations (name, applied_at) values ('0099_future', 0)")
    for (const args of [...commands, ['migrate']])
      expectRefusal(await installation.run(args), {
        code: 78,
        says: /^the schema of \S+ is newer than this khepri: it does not know 0099_future\n/,
      })
    expect(await installation.ask('select id from jobs')).toEqual([])
  })

  it.concurrent('in whose way another application has a table is 73, and nothing is made', async () => {
    await using installation = await Installation.empty(store)
    await installation.ask('create table failed_jobs (other integer)')
    expectRefusal(await installation.run(['migrate']), {
      code: 73,
      says: /^"failed_jobs" exists in \S+ and does not belong to khepri\n {2}fix: /,
    })
    await expect(installation.ask('select 1 from jobs')).rejects.toThrow(/no such table|does not exist/)
  })
})

describe('a locked SQLite file', () => {
  it.concurrent('is waited for: a dispatch that meets the lock is in when the lock is gone', async () => {
    await using installation = await Installation.migrated('sqlite')
    const lock = lockOf(installation)
    await using waiting = installation.start(['dispatch', '--job', 'note'])
    // Readers are not kept waiting; and by the time this one has ended the dispatch has met the lock.
    expect(await installation.failed()).toEqual([])
    lock.release()
    expect(await waiting.ended).toMatchObject({ code: 0, stdout: '1\n' })
  })

  it.concurrent.each([
    ['dispatch', '--job', 'note'],
    ['retry', '--all', '--quiet'],
    ['work', '--once'],
  ])('that stays locked for 10 s ends %s with 75, and nothing is written', async (...args) => {
    await using installation = await Installation.migrated('sqlite')
    await installation.dispatch('fail')
    await installation.must('work', '--once')
    const lock = lockOf(installation)
    expectRefusal(await installation.run(args), {
      code: 75,
      says: 'sqlite:./khepri.db was locked by other processes whenever khepri looked, for 10',
    })
    lock.release()
    expect(
      await installation.ask(
        'select (select count(*) from jobs) as live, (select count(*) from failed_jobs) as failed',
      ),
    ).toEqual([{ live: 0, failed: 1 }])
  })

  it.concurrent('does not end a worker, which hears SIGTERM meanwhile, and says one line when it is lost and one when it is back', async () => {
    await using installation = await Installation.migrated('sqlite')
    await using worker = await installation.worker()
    const id = await installation.dispatch('hold', '--tries=1')
    await worker.until(/text=begun/)
    const lock = lockOf(installation)
    await worker.until(/store lost: /, 'stderr')
    worker.kill('SIGTERM')
    await worker.until(/waiting for 1 job/, 'stderr')
    installation.open()
    await installation.ledger.untilEnded(1)
    lock.release()
    const { code, stdout, stderr } = await worker.ended
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(
        /^\S+Z store lost: sqlite:\.\/khepri\.db was locked by other processes whenever khepri looked, for 10\S*; trying again until it is back$/,
      ),
      'stopping: waiting for 1 job (Ctrl-C again to abandon them)',
      expect.stringMatching(/^\S+Z store back after /),
      '',
    ])
    expect(stdout).toMatch(new RegExp(`DONE ${id} `))
    expect(code).toBe(0)
    expect(installation.ledger.starts).toHaveLength(1)
  })
})

/** Holds the write lock of an SQLite file, as a backup or a forgotten shell would. */
function lockOf({ project }: Installation): { release(): void } {
  const db = new Database(join(project.path, 'khepri.db'))
  db.exec('begin immediate')
  return {
    release() {
      db.exec('rollback')
      db.close()
    },
  }
}

describe.skipIf(!canBeWithoutRights)('rights that are missing are 77, and nothing is written:', () => {
  const commands = [['dispatch', '--job', 'note'], ['work', '--once'], ['failed']]

  it.concurrent.each(commands)('a read-only SQLite file for %s', async (...args) => {
    await using installation = await Installation.migrated('sqlite')
    letAllIn(installation.project)
    chmodSync(join(installation.project.path, 'khepri.db'), 0o444)
    const ended = await installation.run(args, { shell: withoutRights })
    expectRefusal(ended, {
      code: 77,
      says: 'sqlite:./khepri.db cannot be read and written by this user\n  fix: check the rights of ',
    })
    expect(await installation.ask('select id from jobs')).toEqual([])
  })

  it.concurrent.each(commands)('a read-only folder for %s', async (...args) => {
    await using installation = await Installation.migrated('sqlite')
    chmodSync(join(installation.project.path, 'khepri.db'), 0o666)
    chmodSync(installation.project.path, 0o555)
    const ended = await installation.run(args, { shell: withoutRights })
    expectRefusal(ended, { code: 77, says: 'sqlite:./khepri.db cannot be written (SQLITE_' })
    expect(await installation.ask('select id from jobs')).toEqual([])
  })

  it.concurrent('a read-only folder for migrate', async () => {
    await using installation = await Installation.empty('sqlite')
    chmodSync(installation.project.path, 0o555)
    const ended = await installation.run(['migrate'], { shell: withoutRights })
    expectRefusal(ended, {
      code: 77,
      says: 'the folder of sqlite:./khepri.db cannot be read and written by this user\n',
    })
  })
})

/** Runs "$@" with the database on a disk of 400 KiB that only this process sees, and copies it back at the end. */
const onSmallDisk = `
  mkdir -p small && mount -t tmpfs -o size=400k tmpfs small && cp khepri.db small || exit 99
  "$@"; code=$?
  cp small/khepri.db* back/; exit $code`
const unshare = process.getuid?.() === 0 ? ['--mount'] : ['--mount', '--map-root-user']
const canMount = spawnSync('unshare', [...unshare, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0

describe('a full disk', () => {
  it.skipIf(!canMount)(
    'ends a dispatch of 1,000 jobs with 74, and leaves none of them and what was there before',
    async () => {
      await using installation = await Installation.migrated('sqlite')
      const { project } = installation
      await installation.dispatch('note', '--payload="before"')
      mkdirSync(join(project.path, 'back'))
      project.write('disk.sh', onSmallDisk)
      project.write('jobs.ndjson', `{"job":"note","payload":"${'x'.repeat(1_000)}"}\n`.repeat(1_000))
      const shell = `unshare ${unshare.join(' ')} sh disk.sh "$@"`
      const ended = await installation.run(['dispatch', 'jobs.ndjson', '--database', 'sqlite:./small/khepri.db'], {
        shell,
      })
      expectRefusal(ended, {
        code: 74,
        says: 'sqlite:./small/khepri.db is full (SQLITE_FULL)\n  fix: make room on its disk',
      })

      const db = new Database(join(project.path, 'back', 'khepri.db'))
      expect(db.prepare('select id, envelope from jobs').all()).toEqual([
        { id: 1, envelope: expect.stringContaining('"payload":"before"') },
      ])
      expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
      db.close()
    },
  )
})

describe('a path that is no database', () => {
  const args = [['work'], ['migrate'], ['dispatch', '--job', 'note']]
  const project = (): TempProject =>
    new TempProject({ 'package.json': '{}', 'jobs/note.mjs': 'export default () => {}' })

  it.concurrent.each(args)('because it is another file is 78 for %s, and the file stays as it is', async (...words) => {
    using made = project()
    const file = join(made.path, 'khepri.db')
    writeFileSync(file, 'Dear diary, this is not a database.')
    const ended = await khepri(words, { cwd: made.path })
    expectRefusal(ended, { code: 78, says: 'sqlite:./khepri.db is not an SQLite database (SQLITE_NOTADB)\n' })
    expect(readFileSync(file, 'utf8')).toBe('Dear diary, this is not a database.')
  })

  it.concurrent.each(args)('because it is a folder is 69 for %s', async (...words) => {
    using made = project()
    mkdirSync(join(made.path, 'khepri.db'))
    expectRefusal(await khepri(words, { cwd: made.path }), { code: 69, says: 'sqlite:./khepri.db is a folder\n' })
  })

  it.concurrent('because its folder is missing is 69 for migrate', async () => {
    using made = project()
    const ended = await khepri(['migrate', '--database', 'sqlite:./lost/q.db'], { cwd: made.path })
    expectRefusal(ended, { code: 69, says: 'the folder of sqlite:./lost/q.db does not exist\n  fix: mkdir -p ' })
  })
})

describe('a Postgres that is not there', () => {
  it.concurrent.each([['work'], ['migrate'], ['failed'], ['retry', '--all'], ['dispatch', '--job', 'note']])(
    'is 69 for %s, which names it without its password',
    async (...args) => {
      using project = new TempProject({ 'package.json': '{}', 'jobs/note.mjs': 'export default () => {}' })
      const port = await closedPort()
      const env = { KHEPRI_DATABASE_URL: `postgres://app:s3cret@127.0.0.1:${port}/app` }
      const { code, stdout, stderr } = await khepri(args, { cwd: project.path, env })
      expect(stderr).toBe(
        `error: cannot reach postgres://app:***@127.0.0.1:${port}/app: connection refused\n` +
          '  fix: is the server up and the URL right? khepri doctor tests name, port, login and rights\n',
      )
      expect({ code, stdout }).toEqual({ code: 69, stdout: '' })
    },
  )
})

describe.skipIf(postgresSkipReason() !== null)('a Postgres that refuses', () => {
  it('a login, a database, a right or a write is told by its own exit code and sentence', async () => {
    await using installation = await Installation.migrated('postgres')
    const { url } = installation
    const as = (changes: Partial<Pick<URL, 'username' | 'password' | 'pathname'>>): string =>
      Object.assign(new URL(url ?? ''), changes).href
    const role = `poor_${new URL(url ?? '').pathname.slice(-8)}`
    await command(url ?? '', `create role ${role} login`)
    const dispatch = (database: string) => installation.run(['dispatch', '--job', 'note', '--database', database])

    expectRefusal(await dispatch(as({ username: 'locked', password: 'S3cr3t' })), {
      code: 77,
      says: /^\S+ refused the login: wrong user or password\n {2}fix: /,
    })
    expectRefusal(await dispatch(as({ pathname: '/lost' })), {
      code: 69,
      says: /^cannot reach \S+\/lost: the server has no database of that name\n/,
    })
    expectRefusal(await dispatch(as({ username: role })), {
      code: 77,
      says: /^\S+ does not allow khepri to .*: permission denied for /,
    })
    const readOnly = `${as({})}?options=-c%20default_transaction_read_only%3Don`
    expectRefusal(await dispatch(readOnly), { code: 77, says: /^\S+ is read-only\n/ })
    expect(await installation.ask('select id from jobs')).toEqual([])
    await command(url ?? '', `drop role ${role}`)
  })
})

describe.skipIf(postgresSkipReason() !== null)('a Postgres that goes away under a worker', () => {
  it('and comes back costs two lines: the job that ended meanwhile is done, and the next one is run', async () => {
    const server = await startPostgres()
    try {
      await using installation = await Installation.migratedAt(server.url)
      await using worker = await installation.worker()
      const held = await installation.dispatch('hold', '--tries=1')
      await worker.until(/text=begun/)
      await server.stop('immediate')
      await worker.until(/store lost: /, 'stderr')
      installation.open()
      await installation.ledger.untilEnded(1)
      await server.restart()
      await worker.until(/store back after /, 'stderr')
      await worker.until(new RegExp(`DONE ${held} `))
      const next = await installation.dispatch('note')
      await worker.until(new RegExp(`DONE ${next} `))
      worker.kill('SIGTERM')
      const { code, stderr } = await worker.ended
      expect(stderr).toMatch(
        /^\S+Z store lost: (?:cannot reach \S+:|\S+ broke off) [^\n]+; trying again until it is back\n\S+Z store back after \S+\n$/,
      )
      expect(code).toBe(0)
      expect(installation.ledger.starts.map(({ id }) => id)).toEqual([held, next])
    } finally {
      await server.remove()
    }
  })

  it('for good lets SIGTERM end an idle worker with 0, and one with an unwritten result with 75 and the id of its job', async () => {
    const server = await startPostgres()
    try {
      await using installation = await Installation.migratedAt(server.url)
      await using idle = await installation.worker('--queue=other')
      await using busy = await installation.worker()
      const held = await installation.dispatch('hold', '--tries=1')
      await busy.until(/text=begun/)
      await server.stop('fast')
      for (const worker of [idle, busy]) await worker.until(/store lost: /, 'stderr')
      installation.open()
      await installation.ledger.untilEnded(1)
      for (const worker of [idle, busy]) worker.kill('SIGTERM')
      expect(await idle.ended).toMatchObject({ code: 0 })
      const { code, stderr } = await busy.ended
      expect(stderr).toContain(`error: the results of 1 job could not be written: ${held}\n  fix: `)
      expect(code).toBe(75)
    } finally {
      await server.remove()
    }
  })
})

/** A port of this machine where nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
