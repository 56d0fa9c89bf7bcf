import { afterAll, describe, test } from 'vitest'
import { agree, historyLength } from '../../guarantees/model/agreement.ts'
import { postgresSkipReason } from '../../support/postgres.ts'
import { PostgresTables, SqliteFiles } from '../../support/stores.ts'

/** A machine that many share: nothing here waits for time to pass. */
const timeoutMs = 240_000

const count = 100

describe(`random histories of ${historyLength} operations`, () => {
  const files = new SqliteFiles()
  const tables = new PostgresTables()
  afterAll(async () => {
    files.remove()
    await tables.remove()
  })

  test(
    `${count} of them give the same answers on the SQLite store as on the memory store`,
    () => agree(() => files.open(), { count }),
    timeoutMs,
  )

  test(
    `${count} of them give the same answers on the Postgres store as on the memory store`,
    (context) => {
      const reason = postgresSkipReason()
      if (reason !== null) context.skip(reason)
      return agree(() => tables.open(), { count })
    },
    timeoutMs,
  )
})
