import { afterAll, describe, test } from 'vitest'
import { type Harness, storeConformance } from '../../../src/testing/index.ts'
import { postgresSkipReason } from '../../support/postgres.ts'
import { openMemory, PostgresTables, SqliteFiles } from '../../support/stores.ts'

/** Registers every case of the suite for one store; `missing`: why that store cannot be had here. */
function conform(harness: Harness, missing: string | null = null): void {
  for (const { name, skip, run } of storeConformance(harness))
    test(name, (context) => {
      const reason = missing ?? skip
      if (reason !== null) context.skip(reason)
      return run()
    })
}

describe('the memory store', () => {
  conform({ open: openMemory, lacks: {} })
})

describe('the SQLite store', () => {
  const files = new SqliteFiles()
  afterAll(() => files.remove())

  conform({ open: () => files.open(), lacks: {} })
})

describe('the Postgres store', () => {
  const tables = new PostgresTables()
  afterAll(() => tables.remove())

  conform({ open: () => tables.open(), lacks: {} }, postgresSkipReason())
})
