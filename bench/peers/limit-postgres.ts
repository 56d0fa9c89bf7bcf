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

/** What is asked for while a statement is under way goes into the next one. */
function coalesced(write: (jobs: readonly NewJob[]) => Promise<unknown>): (job: NewJob) => Promise<void> {
  let waiting: NewJob[] = []
  let underWay: Promise<unknown> | null = null
  let next: Promise<unknown> | null = null
  const send = (): Promise<unknown> => {
    const jobs = waiting
    waiting = []
    next = null
    underWay = write(jobs).finally(() => {
      underWay = null
    })
    return underWay
  }
  return async (job) => {
    waiting.push(job)
    next ??= underWay ? underWay.then(send) : send()
    await next
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
