import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getTableConfig as postgresConfig } from 'drizzle-orm/pg-core'
import { getTableConfig as sqliteConfig } from 'drizzle-orm/sqlite-core'
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { generateInto } from '../../../scripts/generate-migrations.ts'
import { tableNames } from '../../../src/core/store/names.ts'
import { type PostgresTables, postgresTables } from '../../../src/core/store/postgres/schema.ts'
import { type SqliteTables, sqliteTables } from '../../../src/core/store/sqlite/schema.ts'

type Rows<Tables> = {
  readonly [Name in keyof Tables]: Tables[Name] extends { readonly $inferSelect: infer Row } ? Row : never
}
const names = tableNames('jobs', 'failed_jobs')

interface Facts {
  readonly name: string
  readonly notNull: boolean
  readonly hasDefault: boolean
  readonly primary: boolean
}

/** SQLite gives every integer key a default by nature, so keys are compared without theirs. */
function facts(columns: readonly Facts[]): Facts[] {
  return columns.map(({ name, notNull, hasDefault, primary }) => ({
    ...{ name, notNull, primary },
    hasDefault: hasDefault && !primary,
  }))
}

describe('the two schemas', () => {
  test('give rows of the same types', () => {
    expectTypeOf<Rows<SqliteTables>>().toEqualTypeOf<Rows<PostgresTables>>()
  })

  test.each(['jobs', 'failed', 'ended', 'attempts', 'workers', 'queues'] as const)(
    'have the same columns and indexes in %s',
    (table) => {
      const sqlite = sqliteConfig(sqliteTables(names)[table])
      const postgres = postgresConfig(postgresTables(names, undefined)[table])

      expect(facts(postgres.columns)).toEqual(facts(sqlite.columns))
      expect(postgres.indexes.map(({ config }) => config.name)).toEqual(sqlite.indexes.map(({ config }) => config.name))
      expect(postgres.name).toBe(sqlite.name)
    },
  )

  test('keep every name within the 63 bytes of Postgres when a table has the longest name', () => {
    const longest = postgresTables(tableNames('j'.repeat(40), 'f'.repeat(40)), undefined)

    const tables = Object.values(longest).map((table) => postgresConfig(table))
    const all = tables.flatMap(({ name, indexes }) => [name, ...indexes.map(({ config }) => config.name ?? '')])
    expect(all.filter((name) => name.length > 63)).toEqual([])
  })
})

describe.each(['sqlite', 'postgres'] as const)('the generated migrations of %s', (dialect) => {
  test('say what the schema says', () => {
    expect(generateInto(freshFolder(), dialect)).toEqual([])
  })
})

test('a schema that has changed shows as a new migration', () => {
  const folder = freshFolder()
  const root = join(import.meta.dirname, '../../..')
  const tables = join(folder, 'changed.tables.ts')
  writeFileSync(
    tables,
    `import { sqliteTables } from '${root}/src/core/store/sqlite/schema.ts'
     import { placeholderNames } from '${root}/drizzle/placeholders.ts'
     export const { jobs, failed, ended, attempts, workers } = sqliteTables(placeholderNames)`,
  )

  expect(generateInto(join(folder, 'out'), 'sqlite', { tables })).toEqual(['0006_drift.sql'])
})

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'khepri-schema-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}
