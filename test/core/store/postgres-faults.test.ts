import { inspect } from 'node:util'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { KhepriError } from '../../../src/core/errors.ts'
import type { Filter, Round, Store } from '../../../src/core/store/store.ts'
import { aJob, aWish, enqueueAll, jobs } from '../../../src/testing/conformance/builders.ts'
import { ask, command, postgresSkipReason, type Server, startPostgres } from '../../support/postgres.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { migrate, openAdmin, openStore } from './postgres-support.ts'

const anything: Filter = aWish({ queues: 'all', suspects: true })

describe.skipIf(postgresSkipReason())('when Postgres fails', () => {
  let server: Server
  let databases = 0

  beforeAll(async () => {
    server = await startPostgres()
  })

  afterAll(() => server.remove())

  /** A migrated database of the test's own, on the server that faults may hit. */
  async function database(): Promise<string> {
    databases += 1
    await command(server.url, `create database faults_${databases}`)
    const url = server.url.replace(/postgres$/, `faults_${databases}`)
    await migrate(url)
    return url
  }

  function throughPort(url: string, port: number): string {
    return url.replace(`:${server.port}/`, `:${port}/`)
  }

  /** A session of the test's own, with a transaction that holds what `text` locks. */
  async function holding(url: string, text: string): Promise<postgres.ReservedSql> {
    const client = postgres(url, { max: 1, onnotice: () => {} })
    onTestFinished(() => client.end({ timeout: 5 }))
    const session = await client.reserve()
    await session`begin`
    await session.unsafe(text)
    return session
  }

  /** The process number of khepri's session that waits for a lock, as soon as there is one. */
  async function waitingSession(url: string): Promise<number> {
    for (;;) {
      const [row] = await ask(
        url,
        `select pid from pg_stat_activity
         where application_name = 'khepri' and datname = current_database() and wait_event_type = 'Lock'`,
      )
      if (row) return row.pid as number
    }
  }

  async function countJobs(url: string): Promise<number> {
    const [row] = await ask(url, 'select count(*)::int as count from jobs')
    return row?.count as number
  }

  test('a server that does not listen is unreachable, with the masked URL in the message', async () => {
    const url = throughPort(await database(), 1)

    await expect(openStore(url)).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: 'cannot reach postgres://app:***@db1/app: connection refused',
      fix: 'is the server up and the URL right? khepri doctor tests name, port, login and rights',
    })
  })

  test('a database that does not exist is unreachable', async () => {
    await expect(openStore(server.url.replace(/postgres$/, 'nowhere'))).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: 'cannot reach postgres://app:***@db1/app: the server has no database of that name',
    })
  })

  test('of two servers in the URL the second is taken when the first refuses', async () => {
    const url = (await database()).replace('@127.0.0.1:', '@127.0.0.1:1,127.0.0.1:')

    const store = await openStore(url)

    expect(await store.nextDue(anything)).toBeNull()
  })

  test('a URL that is none is refused without being quoted', async () => {
    const error: KhepriError = await openStore('postgres://app:S3cr3t@:x:y/').catch((thrown) => thrown)

    expect(error.code).toBe('CONFIG_INVALID')
    expect(inspect(error)).not.toContain('S3cr3t')
  })

  test('a store whose server crashed and came back works on, without being opened again', async () => {
    const store = await openStore(await database())
    await store.enqueue([aJob()])

    await server.stop('immediate')
    await expect(store.nextDue(anything)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    await expect(store.enqueue([aJob()])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    await server.restart()

    expect(await store.nextDue(anything)).toBe(0)
    expect(await store.enqueue([aJob()])).toEqual([{ id: expect.any(Number), duplicate: false }])
  })

  test('an enqueue whose session is terminated may or may not have happened, and says so', async () => {
    const url = await database()
    const store = await openStore(url)
    const blocker = await holding(url, 'lock table jobs in access exclusive mode')

    const enqueued = store.enqueue([aJob()])
    const outcome = expect(enqueued).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('the jobs may or may not have been queued'),
    })
    await command(url, `select pg_terminate_backend(${await waitingSession(url)})`)

    await outcome
    await blocker`rollback`
  })

  test('a look whose session is terminated is sent again, and nobody notices', async () => {
    const url = await database()
    const store = await openStore(url)
    const blocker = await holding(url, 'lock table jobs in access exclusive mode')

    const due = store.nextDue(anything)
    await command(url, `select pg_terminate_backend(${await waitingSession(url)})`)
    await blocker`rollback`

    expect(await due).toBeNull()
  })

  test('sessions terminated while they are idle cost nothing: the next write connects anew', async () => {
    const url = await database()
    const store = await openStore(url)
    const sessions = `pid from pg_stat_activity where application_name = 'khepri' and datname = current_database()`

    await command(url, `select pg_terminate_backend(pid) from (select ${sessions}) s`)
    while ((await ask(url, `select ${sessions}`)).length > 0);

    expect(await store.enqueue([aJob()])).toHaveLength(1)
  })

  test('a transaction that loses its session before the commit is sent again: 6,000 jobs are in once', async () => {
    const url = await database()
    const store = await openStore(url)
    const blocker = await holding(url, 'lock table jobs in access exclusive mode')

    const outcome = expect(store.enqueue(jobs(6_000))).resolves.toHaveLength(6_000)
    await command(url, `select pg_terminate_backend(${await waitingSession(url)})`)
    await blocker`rollback`

    await outcome
    expect(await countJobs(url)).toBe(6_000)
  })

  test('a lock held past the deadline is STORE_BUSY, and nothing is written when the lock goes', async () => {
    const url = await database()
    const store = await openStore(url, { deadlineMs: 3_000 })
    const blocker = await holding(url, 'lock table jobs in access exclusive mode')

    await expect(store.enqueue([aJob()])).rejects.toMatchObject({
      code: 'STORE_BUSY',
      message: 'postgres://app:***@db1/app did not let khepri enqueue jobs within 3 s: something holds a lock',
    })
    await blocker`rollback`

    expect(await countJobs(url)).toBe(0)
  })

  describe('by falling silent', () => {
    async function silent(): Promise<{ store: Store; proxy: TcpProxy }> {
      const proxy = await TcpProxy.open(server.port)
      onTestFinished(() => proxy.close())
      const store = await openStore(throughPort(await database(), proxy.port), { deadlineMs: 500 })
      proxy.goSilent()
      return { store, proxy }
    }

    test('a look ends at the deadline as unreachable, and its connection is dropped', async () => {
      const { store, proxy } = await silent()

      await expect(store.nextDue(anything)).rejects.toMatchObject({
        code: 'STORE_UNREACHABLE',
        message: 'cannot reach postgres://app:***@db1/app: no answer within 0.5 s',
      })
      await proxy.untilEmpty()
    })

    test('an enqueue under way ends at the deadline with its outcome unknown', async () => {
      const { store } = await silent()

      await expect(store.enqueue([aJob()])).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    })

    test('a call that had to connect first has surely written nothing', async () => {
      const { store } = await silent()
      await expect(store.nextDue(anything)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })

      await expect(store.enqueue([aJob()])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    })

    test('ten calls at once all end, though only two can be under way', async () => {
      const { store } = await silent()

      const calls = await Promise.allSettled(Array.from({ length: 10 }, () => store.nextDue(anything)))

      expect(calls.map(({ status }) => status)).toEqual(Array(10).fill('rejected'))
    })

    test('closing ends and leaves no connection', async () => {
      const { store, proxy } = await silent()

      await store.close()

      await proxy.untilEmpty()
    })
  })

  test('a read-only database is denied for writing and answers questions', async () => {
    const url = await database()
    await command(url, `alter database ${url.split('/').at(-1)} set default_transaction_read_only = on`)
    const store = await openStore(url)

    expect(await store.nextDue(anything)).toBeNull()
    await expect(store.enqueue([aJob()])).rejects.toMatchObject({
      code: 'STORE_DENIED',
      message: 'postgres://app:***@db1/app is read-only',
    })
  })

  test('a wrong password is denied, and no part of the error holds it', async () => {
    const url = await database()
    await command(url, "create role locked login password 'right'")
    const password = 'S3cr3t-é'

    const error: KhepriError = await openStore(
      url.replace('postgres@', `locked:${encodeURIComponent(password)}@`),
    ).catch((thrown) => thrown)

    expect(error).toMatchObject({
      code: 'STORE_DENIED',
      message: 'postgres://app:***@db1/app refused the login: wrong user or password',
    })
    const shown = inspect(error, { showHidden: true, depth: 9 })
    for (const secret of [password, encodeURIComponent(password), Buffer.from(password).toString('base64')])
      expect(shown).not.toContain(secret)
  })

  test('a role without rights is denied, and the table is named', async () => {
    const url = await database()
    await command(url, 'create role outsider login')

    await expect(openStore(url.replace('postgres@', 'outsider@'))).rejects.toMatchObject({
      code: 'STORE_DENIED',
      message: expect.stringContaining('permission denied for table jobs_migrations'),
    })
  })

  test('a statement_timeout of the server is named, and not taken for a lock', async () => {
    const url = await database()
    const store = await openStore(`${url}?options=-c%20statement_timeout%3D50ms`)
    const blocker = await holding(url, 'lock table jobs in access exclusive mode')

    await expect(store.enqueue([aJob()])).rejects.toMatchObject({
      code: 'STORE_BUSY',
      message: expect.stringMatching(
        /cancelled the statement with which khepri tried to enqueue jobs: .*statement_timeout/,
      ),
    })
    await blocker`rollback`
    expect(await countJobs(url)).toBe(0)
  })

  test.each([
    ['a schema', undefined, /for schema public/, /grant usage, create on schema/],
    ['a database', 'mail', /for database/, /grant create on database/],
  ])('a role that may not create in %s is told what to grant', async (_, schema, says, fix) => {
    const url = await database()
    const role = `bare_${databases}`
    const empty = url.replace(/\w+$/, `bare_${databases}`)
    await command(url, `create role ${role} login`)
    await command(url, `create database bare_${databases}`)
    await command(empty, 'revoke create on schema public from public')

    await expect(migrate(empty.replace('postgres@', `${role}@`), { schema })).rejects.toMatchObject({
      code: 'STORE_DENIED',
      message: expect.stringMatching(says),
      fix: expect.stringMatching(fix),
    })
  })

  test('a value that the server refuses is not in the error, and none of 6,000 jobs is written', async () => {
    const url = await database()
    const store = await openStore(url)
    const tooBig = aJob({ priority: 3_000_000_123, envelope: '{"token":"T0k3n-xyz"}' })

    const error: KhepriError = await store.enqueue([...jobs(5_999), tooBig]).catch((thrown) => thrown)

    expect(error).toMatchObject({
      code: 'STORE_FAILED',
      message: 'postgres://app:***@db1/app refused to enqueue jobs (SQLSTATE 22003)',
    })
    expect(inspect(error, { showHidden: true, depth: 9 })).not.toMatch(/3000000123|T0k3n-xyz/)
    expect(await countJobs(url)).toBe(0)
  })

  test('a failing question of the admin shows neither its parameters nor its text', async () => {
    const url = await database()
    const admin = await openAdmin(url)
    await command(url, 'drop table jobs_attempts, failed_jobs')

    const error: KhepriError = await admin.selectFailed({ error: 'S3cr3t' }).catch((thrown) => thrown)

    expect(error).toMatchObject({
      code: 'SCHEMA_BROKEN',
      message:
        'the table "failed_jobs" is missing from postgres://app:***@db1/app, though its migrations say that it was created',
    })
    expect(inspect(error, { showHidden: true, depth: 9 })).not.toMatch(/S3cr3t|select/)
  })

  test('a round that loses a deadlock is sent again and settles both of its jobs', async () => {
    const url = await database()
    await command(url, `alter database ${url.split('/').at(-1)} set deadlock_timeout = '1s'`)
    const store = await openStore(url)
    const [one, two] = await enqueueAll(store, jobs(2))
    const round: Round = { worker: 7, settle: [], enqueue: [], start: [], disown: [], reserve: null }
    const { reserved } = await store.exchange({ ...round, reserve: aWish() })

    const other = await holding(
      url,
      `set local deadlock_timeout = '60s'; select from jobs where id = ${two} for update`,
    )
    const settled = store.exchange({
      ...round,
      settle: reserved.map(({ id, fence }) => ({ id, fence, kind: 'complete', keep: false })),
    })
    await waitingSession(url)
    await other.unsafe(`update jobs set enqueued_at = 0 where id = ${one}`)
    await other`commit`

    expect((await settled).lost).toEqual([])
    expect(await countJobs(url)).toBe(0)
  })
})
