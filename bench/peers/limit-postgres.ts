import postgres from 'postgres'
import type { Client, NewJob, Payload, Peer } from '../peer.ts'

const schema = `
create table jobs (id bigint generated always as identity primary key, available_at bigint not null, worker bigint, payload text not null);
create index jobs_ready on jobs(available_at, id) where worker is null;`

const insert = 'insert into jobs (available_at, payload) select * from unnest($1::bigint[], $2::text[])'

const batch = 200
const connections = 4

/** One statement settles what was claimed before and claims the next 200. */
const exchange = `
with done as (delete from jobs where id = any($1::bigint[])),
due as materialized (
  select id from jobs where worker is null and available_at <= (extract(epoch from clock_timestamp()) * 1000)::bigint
  order by available_at, id limit ${batch} for update skip locked)
update jobs set worker = $2 where id = any(array(select id from due)) returning id, payload`

interface Row {
  readonly id: string
  readonly payload: string
}

type Sql = ReturnType<typeof postgres>

const open = (url: string, max: number): Sql => postgres(url, { max, onnotice: () => {} })

interface Waiting {
  readonly job: NewJob
  readonly ended: PromiseWithResolvers<void>
}

/** What is asked for while a statement is under way goes into the next one. */
function coalesced(write: (jobs: readonly NewJob[]) => Promise<unknown>): (job: NewJob) => Promise<void> {
  const waiting: Waiting[] = []
  let isWriting = false
  const writeAll = async (): Promise<void> => {
    isWriting = true
    while (waiting.length > 0) {
      const batch = waiting.splice(0)
      try {
        await write(batch.map(({ job }) => job))
        for (const { ended } of batch) ended.resolve()
      } catch (error) {
        for (const { ended } of batch) ended.reject(error)
      }
    }
    isWriting = false
  }
  return (job) => {
    const ended = Promise.withResolvers<void>()
    waiting.push({ job, ended })
    if (!isWriting) void writeAll()
    return ended.promise
  }
}

/** What Postgres does at most: adds that share a statement, four connections that settle and claim 200 at once. */
export const peer: Peer = {
  async prepare({ database }) {
    const sql = open(database, 1)
    await sql.unsafe(schema)
    await sql.end()
  },

  async open({ database }): Promise<Client> {
    const sql = open(database, 1)
    const write = (jobs: readonly NewJob[]): Promise<unknown> => {
      const times = jobs.map(({ delayMs }) => Date.now() + delayMs)
      const payloads = jobs.map(({ payload }) => JSON.stringify(payload))
      return sql.unsafe(insert, [times, payloads], { prepare: true })
    }
    return {
      addOne: coalesced(write),
      addMany: async (jobs) => {
        await write(jobs)
      },
      left: async () => Number((await sql.unsafe('select count(*) as left from jobs'))[0]?.left),
      close: () => sql.end(),
    }
  },

  async drain({ database }, _concurrency, handle) {
    const sql = open(database, connections)
    let isStopping = false
    const loop = async (): Promise<void> => {
      let ids: readonly string[] = []
      while (!isStopping) {
        const rows = await sql.unsafe<Row[]>(exchange, [[...ids], process.pid], { prepare: true })
        for (const { payload } of rows) handle(JSON.parse(payload) as Payload, 1)
        ids = rows.map(({ id }) => id)
      }
      await sql.unsafe('delete from jobs where id = any($1::bigint[])', [[...ids]])
    }
    const finished = Promise.all(Array.from({ length: connections }, loop))
    return {
      async stop() {
        isStopping = true
        await finished
        await sql.end()
      },
    }
  },
}
