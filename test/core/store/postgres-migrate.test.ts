import { describe, expect, onTestFinished, test } from 'vitest'
import type { Migrations } from '../../../src/core/store/migrations.ts'
import { openPostgresMigrations } from '../../../src/core/store/postgres/migrate.ts'
import { aJob, aWish } from '../../../src/testing/conformance/builders.ts'
import { ask, command, postgresSkipReason } from '../../support/postgres.ts'
import { emptyDatabase, migrate, migratedDatabase, openAdmin, openStore, optionsFor } from './postgres-support.ts'

const every = ['0000_jobs', '0001_attempts', '0002_workers', '0003_marks', '0004_schedules', '0005_parents']

async function openMigrations(url: string): Promise<Migrations> {
  const migrations = await openPostgresMigrations(url, optionsFor())
  onTestFinished(() => migrations.close())
  return migrations
}

describe.skipIf(postgresSkipReason())('migrations on Postgres', () => {
  test('an empty database has three pending, and looking changes nothing', async () => {
    const url = await emptyDatabase()

    const { applied, pending, unknown } = await (await openMigrations(url)).status()

    expect({ applied, pending: pending.map(({ name }) => name), unknown }).toEqual({
      applied: [],
      pending: every,
      unknown: [],
    })
    expect(await ask(url, `select from pg_class where relname like 'jobs%'`)).toEqual([])
  })

  test('migrating applies three and migrating again none', async () => {
    const url = await emptyDatabase()

    expect(await migrate(url)).toEqual(every)
    expect(await migrate(url)).toEqual([])
    expect(await (await openMigrations(url)).status()).toEqual({
      applied: every,
      pending: [],
      newer: [],
      unknown: [],
      missing: [],
    })
  })

  test.each([undefined, 'mail'])('twenty migrations at once apply each file once, schema %s', async (schema) => {
    const url = await emptyDatabase()

    const applied = await Promise.all(Array.from({ length: 20 }, () => migrate(url, { schema })))

    expect(applied.flat().sort()).toEqual(every)
  })

  test('a role that may not create schemas migrates one that was given to it', async () => {
    const url = await emptyDatabase()
    const role = `guest_${url.split('_').at(-1)}`
    await command(url, `create role ${role} login`)
    await command(url, `create schema mail authorization ${role}`)
    onTestFinished(async () => {
      await command(url, `drop owned by ${role} cascade`)
      await command(url, `drop role ${role}`)
    })
    const guest = new URL(url)
    guest.username = role

    expect(await migrate(guest.href, { schema: 'mail' })).toEqual(every)
  })

  test.each(['jobs', 'failed_jobs', 'jobs_workers', 'jobs_ready'])(
    'a table "%s" of somebody else is left alone',
    async (name) => {
      const url = await emptyDatabase()
      await command(url, `create table ${name} (theirs text)`)

      await expect(migrate(url)).rejects.toMatchObject({ code: 'SCHEMA_FOREIGN' })
      expect(
        await ask(url, `select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`),
      ).toEqual([{ relname: name }])
    },
  )

  test('a list of migrations that is not ours is left alone', async () => {
    const url = await emptyDatabase()
    await command(url, 'create table jobs_migrations (version int)')

    await expect(migrate(url)).rejects.toMatchObject({ code: 'SCHEMA_FOREIGN' })
    await expect(openStore(url)).rejects.toMatchObject({ code: 'SCHEMA_FOREIGN' })
  })

  test('a store and an admin on an empty database say that the schema is missing', async () => {
    const url = await emptyDatabase()
    const missing = {
      code: 'SCHEMA_MISSING',
      message: 'the schema of postgres://app:***@db1/app is missing',
      fix: 'khepri migrate',
    }

    await expect(openStore(url)).rejects.toMatchObject(missing)
    await expect(openAdmin(url)).rejects.toMatchObject(missing)
    await expect(openStore(url, { schema: 'nowhere' })).rejects.toMatchObject(missing)
  })

  test('a store refuses a schema that is behind, and one that a newer khepri has migrated', async () => {
    const url = await migratedDatabase()

    await command(url, `delete from jobs_migrations where name = '0002_workers'`)
    await expect(openStore(url)).rejects.toMatchObject({ code: 'SCHEMA_BEHIND' })
    await command(url, `insert into jobs_migrations values ('0002_workers', 0), ('0042_future', 0)`)
    await expect(openStore(url)).rejects.toMatchObject({ code: 'SCHEMA_AHEAD' })
    await expect(migrate(url)).rejects.toMatchObject({ code: 'SCHEMA_AHEAD' })
  })

  test('a store opens and works on a newer schema that admits this khepri, and migrate has nothing to do', async () => {
    const url = await migratedDatabase()
    await command(url, `insert into jobs_migrations values ('0042_future', 0, '0.1.0')`)
    const store = await openStore(url)

    expect(await store.enqueue([aJob()])).toMatchObject([{ duplicate: false }])
    expect(await migrate(url)).toEqual([])
    expect(await (await openMigrations(url)).status()).toMatchObject({ newer: ['0042_future'], unknown: [] })
  })

  test('a store that is open goes on working while a newer khepri migrates', async () => {
    const url = await migratedDatabase()
    const store = await openStore(url)
    const nothing = { worker: 7, settle: [], enqueue: [], start: [], disown: [] }
    await store.enqueue([aJob(), aJob()])
    const first = await store.exchange({ ...nothing, reserve: aWish({ limit: 1 }) })
    await command(url, 'alter table jobs add column later text; create index jobs_later on jobs (later)')
    await command(url, `insert into jobs_migrations values ('0042_future', 0, '0.1.0')`)
    const settle = first.reserved.map(({ id, fence }) => ({ id, fence, kind: 'complete', keep: true }) as const)

    expect(await store.exchange({ ...nothing, settle, reserve: aWish() })).toMatchObject({ lost: [], reserved: [{}] })
  })

  test('a schema that needs a newer khepri is refused with the version it needs', async () => {
    const url = await migratedDatabase()
    await command(url, `insert into jobs_migrations values ('0042_future', 0, '99.1.0')`)
    const ahead = { code: 'SCHEMA_AHEAD', message: expect.stringContaining('needs khepri 99.1.0 or newer') }

    await expect(openStore(url)).rejects.toMatchObject(ahead)
    await expect(openAdmin(url)).rejects.toMatchObject(ahead)
    await expect(migrate(url)).rejects.toMatchObject(ahead)
    expect((await (await openMigrations(url)).status()).unknown).toEqual(['0042_future'])
  })

  test('beside each migration stands the khepri that it admits', async () => {
    const rows = await ask(await migratedDatabase(), 'select name, least_worker from jobs_migrations order by name')

    expect(rows).toEqual(every.map((name) => ({ name, least_worker: '0.1.0' })))
  })

  test('a migration that fails half-way leaves nothing of itself, and the next run finishes', async () => {
    const url = await emptyDatabase()
    await command(
      url,
      `create view jobs_queues_view as select 1; create function refuse() returns event_trigger
      language plpgsql as $$ begin raise exception 'not now'; end $$;
      create event trigger refuse on ddl_command_start when tag in ('CREATE INDEX') execute function refuse()`,
    )

    await expect(migrate(url)).rejects.toMatchObject({ code: 'STORE_FAILED' })
    expect(await ask(url, `select from pg_class where relname in ('jobs', 'jobs_migrations')`)).toEqual([])
    await command(url, 'drop event trigger refuse')

    expect(await migrate(url)).toEqual(every)
  })

  test.each([undefined, 'mail'])('a dropped table is not "nothing to do": it is named, schema %s', async (schema) => {
    const url = await emptyDatabase()
    await migrate(url, { schema })
    await command(url, `drop table ${schema === undefined ? '' : 'mail.'}jobs_workers`)

    await expect(migrate(url, { schema })).rejects.toMatchObject({
      code: 'SCHEMA_BROKEN',
      message: expect.stringContaining('the table "jobs_workers" is missing'),
    })
    const migrations = await openPostgresMigrations(url, { ...optionsFor(), schema })
    onTestFinished(() => migrations.close())
    expect(await migrations.status()).toMatchObject({ applied: every, pending: [], missing: ['jobs_workers'] })
  })
})
