import { describe, it } from 'vitest'
import { freshDatabase, postgresSkipReason } from '../../support/postgres.ts'
import { runOnPostgres, runOnSqlite } from './run.ts'

/** The slowest machine that is meant to pass; nothing here is timed by it. */
const timeoutMs = 600_000
const print = (): void => {}
const seed = Math.floor(Math.random() * 2 ** 31)

describe.concurrent('10 kills of workers and commands, and some that stand still beyond their lease', () => {
  it('lose no job and start none again without a cause, on sqlite', { timeout: timeoutMs }, async ({ expect }) => {
    const figures = await runOnSqlite('sample', print, seed)
    expect(figures).toMatchObject({ 'sqlite kills': 10, 'sqlite lost': 0 })
  })

  it.skipIf(postgresSkipReason() !== null)(
    'lose no job and start none again without a cause, on postgres',
    { timeout: timeoutMs },
    async ({ expect }) => {
      const { url, drop } = await freshDatabase()
      try {
        const figures = await runOnPostgres('sample', print, { seed, url })
        expect(figures).toMatchObject({ 'postgres kills': 10, 'postgres lost': 0 })
      } finally {
        await drop()
      }
    },
  )
})
