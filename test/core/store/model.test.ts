import assert from 'node:assert/strict'
import fc from 'fast-check'
import { afterAll, describe, test } from 'vitest'
import type { Opened } from '../../../src/testing/index.ts'
import { postgresSkipReason } from '../../support/postgres.ts'
import { histories, type Operation, StorePlayer } from '../../support/store-model.ts'
import { openMemory, PostgresTables, SqliteFiles } from '../../support/stores.ts'

/** So many operations lie between two looks at everything an operator can see. */
const lookEvery = 4

/** Plays one history on the memory store and on another one, side by side. */
async function playOnBoth(history: readonly Operation[], open: () => Promise<Opened>): Promise<void> {
  const [model, real] = [await openMemory(), await open()]
  try {
    const [expected, actual] = [new StorePlayer(model), new StorePlayer(real)]
    for (const [step, operation] of history.entries()) {
      assert.deepEqual(await actual.play(operation), await expected.play(operation), `step ${step}, ${operation.kind}`)
      if (step % lookEvery === 0) assert.deepEqual(await actual.view(), await expected.view(), `after step ${step}`)
    }
    assert.deepEqual(await actual.view(), await expected.view(), 'in the end')
    assert.deepEqual(await actual.attempts(), await expected.attempts(), 'the attempts of every job')
  } finally {
    await real.close()
  }
}

function agree(open: () => Promise<Opened>, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(histories(), (history) => playOnBoth(history, open))
  return fc.assert(property, { numRuns })
}

/** A machine that many share: nothing here waits for time to pass. */
const timeoutMs = 240_000

describe('random histories of 27 to 42 operations', () => {
  const files = new SqliteFiles()
  const tables = new PostgresTables()
  afterAll(async () => {
    files.remove()
    await tables.remove()
  })

  test(
    '60 of them give the same answers on the SQLite store as on the memory store',
    () => {
      return agree(() => files.open(), 60)
    },
    timeoutMs,
  )

  test(
    '25 of them give the same answers on the Postgres store as on the memory store',
    (context) => {
      const reason = postgresSkipReason()
      if (reason !== null) context.skip(reason)
      return agree(() => tables.open(), 25)
    },
    timeoutMs,
  )
})
