import { setImmediate as turn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { Client, NewJob, Payload, Peer, Place } from '../peer.ts'

const schema = `
create table jobs (id integer primary key, available_at integer not null, worker integer, payload text not null);
create index jobs_ready on jobs(available_at, id) where worker is null;`

const batch = 200

interface Row {
  readonly id: number
  readonly payload: string
}

function open(place: Place, synchronous: 'NORMAL' | 'FULL'): Database.Database {
  const db = new Database(place.database, { timeout: 5_000 })
  db.pragma('journal_mode = WAL')
  db.pragma(`synchronous = ${synchronous}`)
  return db
}

/** One transaction settles what was claimed before and claims the next 200. */
function exchanger(db: Database.Database): (settled: readonly Row[]) => readonly Row[] {
  const settle = db.prepare('delete from jobs where id in (select value from json_each(?))')
  const find = db.prepare<[number], Row>(
    `select id, payload from jobs where worker is null and available_at <= ? order by available_at, id limit ${batch}`,
  )
  const claim = db.prepare('update jobs set worker = ? where id in (select value from json_each(?))')
  const ids = (rows: readonly Row[]): string => JSON.stringify(rows.map(({ id }) => id))
  const exchange = db.transaction((settled: readonly Row[]): readonly Row[] => {
    if (settled.length > 0) settle.run(ids(settled))
    const rows = find.all(Date.now())
    if (rows.length > 0) claim.run(process.pid, ids(rows))
    return rows
  })
  return (settled) => exchange.immediate(settled)
}

/** What SQLite does at most: a few prepared statements, adds that survive a power cut, settle and claim 200 at once. */
export const peer: Peer = {
  async prepare(place) {
    open(place, 'FULL').exec(schema).close()
  },

  async open(place): Promise<Client> {
    const db = open(place, 'FULL')
    const addOne = db.prepare('insert into jobs (available_at, payload) values (?, ?)')
    const addMany = db.prepare('insert into jobs (available_at, payload) select ?, value from json_each(?)')
    const dueAt = ({ delayMs }: NewJob): number => Date.now() + delayMs
    return {
      addOne: async (job) => {
        addOne.run(dueAt(job), JSON.stringify(job.payload))
      },
      addMany: async (jobs) => {
        const [first] = jobs
        if (first) addMany.run(dueAt(first), JSON.stringify(jobs.map(({ payload }) => JSON.stringify(payload))))
      },
      left: async () => db.prepare<[], number>('select count(*) from jobs').pluck().get() ?? 0,
      close: async () => {
        db.close()
      },
    }
  },

  async drain(place, _concurrency, handle) {
    const db = open(place, 'NORMAL')
    const exchange = exchanger(db)
    let isStopping = false
    const loop = async (): Promise<void> => {
      let rows: readonly Row[] = []
      while (!isStopping) {
        rows = exchange(rows)
        for (const { payload } of rows) handle(JSON.parse(payload) as Payload, 1)
        await turn()
      }
      exchange(rows)
    }
    const finished = loop()
    return {
      async stop() {
        isStopping = true
        await finished
        db.close()
      },
    }
  },
}
