import Database from 'better-sqlite3'
import postgres from 'postgres'
import type { Worked } from '../crew.ts'
import type { Place } from '../peer.ts'
import { type Measure, perSecond, rate } from './measure.ts'

/** Opens a reading transaction that keeps what it sees; the answer ends it. */
async function hold({ database }: Place): Promise<() => Promise<void>> {
  if (!database.startsWith('postgres:')) return holdFile(database)
  const sql = postgres(database, { max: 1, onnotice: () => {} })
  await sql.unsafe('begin isolation level repeatable read')
  await sql.unsafe('select txid_current()')
  return () => sql.end({ timeout: 1 })
}

function holdFile(database: string): () => Promise<void> {
  const db = new Database(database)
  db.exec('begin')
  db.prepare('select count(*) from sqlite_master').get()
  return async () => {
    db.close()
  }
}

/** The rate of the last fifth as a share of the first fifth's: below 1 it was slowed down by what cannot be cleaned up. */
function lastToFirst({ course, count, ms }: Worked): number {
  const at = (share: number): number => course.find((point) => point.count >= count * share)?.ms ?? ms
  return at(0.2) / Math.max(ms - at(0.8), 0.001)
}

/** A drain while somebody's old transaction keeps the store from cleaning up. */
export const snapshot: Measure = {
  name: 'snapshot',
  title: 'drain while an old snapshot is held',
  from: 'usual',
  stores: ['sqlite', 'postgres'],
  onlyFast: true,
  asksForDurability: false,
  figures: [rate, { name: 'last-to-first', unit: 'rate of the last fifth / of the first', better: 'more' }],
  async run(contest, { snapshotJobs, boxMs }) {
    const count = await contest.fill({ count: snapshotJobs })
    const release = await hold(contest.place)
    try {
      const crew = await contest.crew({})
      await crew.go()
      const worked = await crew.until(count, boxMs * 4)
      return { ...perSecond(worked), 'last-to-first': lastToFirst(worked) }
    } finally {
      await release()
    }
  },
}
