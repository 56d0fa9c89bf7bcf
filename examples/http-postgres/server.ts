import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { sql } from 'drizzle-orm'
import { pgTable, serial, text } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/postgres-js'
import { createKhepri } from 'khepri'
import postgres from 'postgres'
import { jobs } from './jobs.ts'

const database = process.env.DATABASE_URL
if (database === undefined) throw new Error('set DATABASE_URL to a Postgres database')

const client = postgres(database, { onnotice: () => {} })
const db = drizzle(client)
const users = pgTable('users', { id: serial('id').primaryKey(), name: text('name').notNull() })
const khepri = createKhepri({ database, jobs })

await db.execute(sql`create table if not exists users (id serial primary key, name text not null)`)
await khepri.migrate()
const worker = await khepri.work({ concurrency: 4 })
khepri.events.on('job.log', ({ text }) => console.log(text))

/** The user and the job that greets it are there together, or neither is. */
async function signUp(request: IncomingMessage): Promise<{ readonly userId: number; readonly jobId: number }> {
  const { name } = (await json(request)) as { name: string }
  return db.transaction(async (tx) => {
    const [user] = await tx.insert(users).values({ name }).returning()
    if (user === undefined) throw new Error('the insert answered nothing')
    const { id } = await khepri.with(tx).dispatch('send-welcome', { userId: user.id })
    if (name === '') throw new Error('a user needs a name')
    return { userId: user.id, jobId: id }
  })
}

const server = createServer((request, response) => {
  signUp(request).then(
    (answer) => response.writeHead(201).end(JSON.stringify(answer)),
    (error: unknown) => response.writeHead(400).end(String(error)),
  )
})
server.listen(Number(process.env.PORT ?? 3000), () => console.log('listening on', JSON.stringify(server.address())))

process.once('SIGTERM', async () => {
  server.close()
  worker.drain()
  await worker.finished
  await khepri.close()
  await client.end()
})
