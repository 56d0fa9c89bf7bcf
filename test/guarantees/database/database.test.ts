import { describe, expect, it } from 'vitest'
import { postgresSkipReason } from '../../support/postgres.ts'
import { onPostgres, onSqlite } from './run.ts'

/** Nothing here waits for this long; a busy machine may. */
const timeoutMs = 240_000

describe('two workers and a client', () => {
  it.skipIf(postgresSkipReason() !== null).concurrent(
    'come through 5 faults of Postgres: no worker is wedged, every job ends, no attempt starts twice',
    async () => {
      const figures = await onPostgres('sample', () => {})
      expect(figures['faults on Postgres']).toBe(5)
    },
    timeoutMs,
  )

  it.concurrent(
    'come through a lock, a full disk and a read-only file of SQLite: no worker is wedged, every job ends, no attempt starts twice',
    async () => {
      const figures = await onSqlite('sample', () => {})
      expect(figures['jobs through the faults of SQLite']).toBeGreaterThan(0)
    },
    timeoutMs,
  )
})
