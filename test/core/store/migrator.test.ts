import { describe, expect, test } from 'vitest'
import { version } from '../../../src/core/package.ts'
import {
  type Applied,
  loadMigrations,
  migrationNames,
  refuseAhead,
  refuseForeign,
  requireCurrent,
  statementsOf,
  statusOf,
} from '../../../src/core/store/migrator.ts'
import { tableNames } from '../../../src/core/store/names.ts'

const names = tableNames('mail', 'dead_mail')
const dialects = ['sqlite', 'postgres'] as const

describe.each(dialects)('the migrations of %s', (dialect) => {
  test('are four, oldest first', () => {
    expect(migrationNames(dialect)).toEqual([
      '0000_jobs',
      '0001_attempts',
      '0002_workers',
      '0003_marks',
      '0004_schedules',
      '0005_parents',
    ])
  })

  test('each say which khepri they admit, and none that is newer than this one', () => {
    for (const { name, leastWorker } of loadMigrations(dialect, names, undefined)) {
      expect(leastWorker, name).toMatch(/^\d+\.\d+\.\d+$/)
      expect(() => refuseAhead([{ name, leastWorker }], [name], 'the database'), name).not.toThrow()
    }
  })

  test('carry the names of the installation, indexes included, and no placeholder', () => {
    const sql = loadMigrations(dialect, names, undefined)
      .map((migration) => migration.sql)
      .join('\n')

    for (const name of [
      'mail',
      'dead_mail',
      'mail_ended',
      'mail_attempts',
      'mail_workers',
      'mail_queues',
      'mail_ready',
    ])
      expect(sql).toMatch(new RegExp(`["\`]${name}["\`]`))
    expect(sql).not.toContain('$')
  })

  test('split into statements that each begin with CREATE or ALTER', () => {
    const statements = loadMigrations(dialect, names, undefined).flatMap(statementsOf)

    expect(statements).toHaveLength(22)
    expect(statements.filter((statement) => !/^(CREATE|ALTER) /.test(statement))).toEqual([])
  })
})

describe('a Postgres schema', () => {
  const sqlFor = (schema: string | undefined) => loadMigrations('postgres', names, schema).map(({ sql }) => sql)

  test('qualifies every table and is created when it is configured', () => {
    const [first] = sqlFor('back"office')

    expect(first).toContain('CREATE SCHEMA IF NOT EXISTS "back""office";')
    expect(first).toContain('CREATE TABLE "back""office"."mail" (')
    expect(first).toContain('ON "back""office"."mail" USING btree')
  })

  test('that is not configured appears nowhere', () => {
    expect(sqlFor(undefined).join('\n')).not.toMatch(/SCHEMA|"\."/)
  })
})

/** What a database says of migrations that declare nothing. */
function silent(...applied: readonly string[]): readonly Applied[] {
  return applied.map((name) => ({ name, leastWorker: null }))
}

function declaring(name: string, leastWorker: string): Applied {
  return { name, leastWorker }
}

test('status tells applied, pending, newer and unknown names apart', () => {
  const migrations = loadMigrations('sqlite', names, undefined)

  const { applied, pending, newer, unknown } = statusOf(migrations, [
    ...silent('9999_moons', '0001_attempts', '0000_jobs'),
    declaring('0006_rings', '0.1.0'),
    declaring('0007_comets', '99.0.0'),
  ])

  expect(applied).toEqual(['0000_jobs', '0001_attempts'])
  expect(pending.map(({ name }) => name)).toEqual(['0002_workers', '0003_marks', '0004_schedules', '0005_parents'])
  expect(newer).toEqual(['0006_rings'])
  expect(unknown).toEqual(['0007_comets', '9999_moons'])
})

describe('a schema', () => {
  const wanted = migrationNames('sqlite')

  test.each([
    ['SCHEMA_MISSING', null],
    ['SCHEMA_MISSING', []],
    ['SCHEMA_BEHIND', silent(...wanted.slice(0, 2))],
    ['SCHEMA_AHEAD', silent(...wanted, '9999_moons')],
    ['SCHEMA_AHEAD', silent('9999_moons')],
    ['SCHEMA_AHEAD', [...silent(...wanted), declaring('9999_moons', '99.0.0')]],
  ])('is %s when %j is applied', (code, applied) => {
    expect(() => requireCurrent('sqlite', applied, 'sqlite:./q.db')).toThrow(expect.objectContaining({ code }))
  })

  test('is accepted when exactly what this khepri needs is applied', () => {
    expect(() => requireCurrent('sqlite', silent(...wanted), 'sqlite:./q.db')).not.toThrow()
  })

  test.each(['0.0.0', '0.0.99', version()])('that a newer khepri migrated is accepted where it admits %s', (least) => {
    const applied = [...silent(...wanted), declaring('0004_rings', least)]

    expect(() => requireCurrent('sqlite', applied, 'sqlite:./q.db')).not.toThrow()
  })

  test.each(['0.99.0', '10.0.0', '2.0.0'])('that needs khepri %s is refused, and the message says so', (least) => {
    const applied = [...silent(...wanted), declaring('0004_rings', '0.0.1'), declaring('0005_comets', least)]

    expect(() => requireCurrent('sqlite', applied, 'sqlite:./q.db')).toThrow(
      expect.objectContaining({
        code: 'SCHEMA_AHEAD',
        message: `the schema of sqlite:./q.db needs khepri ${least} or newer, this is ${version()}`,
        fix: `npm install khepri@^${least}`,
      }),
    )
  })

  test('of several versions that are needed the newest is named, by its numbers and not by its text', () => {
    const applied = [...silent(...wanted), declaring('0003_a', '9.0.0'), declaring('0004_b', '10.2.0')]

    expect(() => requireCurrent('sqlite', applied, 'the database')).toThrow('needs khepri 10.2.0 or newer')
  })

  test('is refused by the version it declares also where the migration itself is known', () => {
    const applied = [...silent(...wanted.slice(1)), declaring(wanted[0] ?? '', '99.0.0')]

    expect(() => requireCurrent('sqlite', applied, 'the database')).toThrow('needs khepri 99.0.0 or newer')
  })
})

describe.each(dialects)('somebody else’s tables on %s', (dialect) => {
  const migrations = loadMigrations(dialect, names, undefined)

  test.each(['mail', 'dead_mail', 'mail_ready', 'mail_unique', 'mail_workers'])('are not overwritten: %s', (taken) => {
    expect(() => refuseForeign(migrations, new Set(['users', taken]), 'the database')).toThrow(
      `"${taken}" exists in the database and does not belong to khepri`,
    )
  })

  test('are left alone where no name is ours', () => {
    expect(() => refuseForeign(migrations, new Set(['users', 'mailbox', 'jobs']), 'the database')).not.toThrow()
  })
})
