import { startPostgres } from '../../support/postgres.ts'
import { PostgresTables, SqliteFiles } from '../../support/stores.ts'
import type { Figures, Form, Print } from '../part.ts'
import { agree, historyLength } from './agreement.ts'

const counts: Readonly<Record<Form, number>> = { sample: 100, short: 200, long: 5_000 }

/** Histories between two lines of progress. */
const stretch = 200

/** The stores give the same answers to the same random histories. Throws with the first history on which they differ. */
export async function run(form: Form, print: Print): Promise<Figures> {
  const startedAt = performance.now()
  const count = counts[form]
  await Promise.all([onSqlite(count, print), onPostgres(count, print)])
  return {
    'histories on each store': count,
    'operations in a history': historyLength,
    'different answers': 0,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  }
}

async function onSqlite(count: number, print: Print): Promise<void> {
  const files = new SqliteFiles()
  try {
    await inStretches(
      count,
      (seed, runs) => agree(() => files.open(), { count: runs, seed }),
      (done) => print(`SQLite: ${done} histories`),
    )
  } finally {
    files.remove()
  }
}

async function onPostgres(count: number, print: Print): Promise<void> {
  const server = await startPostgres()
  // The server goes with its database.
  const tables = new PostgresTables(async () => ({ url: server.url, drop: async () => {} }))
  try {
    await inStretches(
      count,
      (seed, runs) => agree(() => tables.open(), { count: runs, seed }),
      (done) => print(`Postgres: ${done} histories`),
    )
  } finally {
    await tables.remove()
    await server.remove()
  }
}

/** Each stretch has its own seed, the same in every run. */
async function inStretches(
  count: number,
  play: (seed: number, runs: number) => Promise<void>,
  told: (done: number) => void,
): Promise<void> {
  for (let done = 0; done < count; ) {
    const runs = Math.min(stretch, count - done)
    await play(done, runs)
    done += runs
    told(done)
  }
}
