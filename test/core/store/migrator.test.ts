import { describe, expect, test } from 'vitest'
import {
  loadMigrations,
  migrationNames,
  refuseForeign,
  requireCurrent,
  statementsOf,
  statusOf,
} from '../../../src/core/store/migrator.ts'
import { tableNames } from '../../../src/core/store/names.ts'

const names = tableNames('mail', 'dead_mail')
const dialects = ['sqlite', 'postgres'] as const

describe.each(dialects)('the migrations of %s', (dialect) => {
  test('are three, oldest first', () => {
    expect(migrationNames(dialect)).toEqual(['0000_jobs', '0001_attempts', '0002_workers'])
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

  test('split into statements that each begin with CREATE', () => {
    const statements = loadMigrations(dialect, names, undefined).flatMap(statementsOf)

    expect(statements).toHaveLength(12)
    expect(statements.filter((statement) => !statement.startsWith('CREATE '))).toEqual([])
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

test('status tells applied, pending and unknown names apart', () => {
  const migrations = loadMigrations('sqlite', names, undefined)

  const { applied, pending, unknown } = statusOf(migrations, ['9999_moons', '0001_attempts', '0000_jobs'])

  expect(applied).toEqual(['0000_jobs', '0001_attempts'])
  expect(pending.map(({ name }) => name)).toEqual(['0002_workers'])
  expect(unknown).toEqual(['9999_moons'])
})

describe('a schema', () => {
  const wanted = migrationNames('sqlite')

  test.each([
    ['SCHEMA_MISSING', null],
    ['SCHEMA_MISSING', []],
    ['SCHEMA_BEHIND', wanted.slice(0, 2)],
    ['SCHEMA_AHEAD', [...wanted, '9999_moons']],
    ['SCHEMA_AHEAD', ['9999_moons']],
  ])('is %s when %j is applied', (code, applied) => {
    expect(() => requireCurrent('sqlite', applied, 'sqlite:./q.db')).toThrow(expect.objectContaining({ code }))
  })

  test('is accepted when exactly what this khepri needs is applied', () => {
    expect(() => requireCurrent('sqlite', wanted, 'sqlite:./q.db')).not.toThrow()
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
