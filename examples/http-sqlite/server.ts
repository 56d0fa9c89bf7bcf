import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import Database from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { createKhepri } from 'khepri'
import { jobs } from './jobs.ts'

const file = process.env.DATABASE_FILE ?? './app.db'
const khepri = createKhepri({ database: `sqlite:${file}`, jobs })
await khepri.migrate()

const client = new Database(file, { timeout: 5_000 })
client.exec('create table if not exists users (id integer primary key, name text not null)')
const db = drizzle(client)
const users = sqliteTable('users', { id: integer('id').primaryKey(), name: text('name').notNull() })
const worker = await khepri.work({ concurrency: 4 })
khepri.events.on('job.log', ({ text }) => console.log(text))

/** The user and the job that greets it are there together, or neither is. */
async function signUp(request: IncomingMessage): Promise<{ readonly userId: number; readonly jobId: number }> {
  const { name } = (await json(request)) as { name: string }
  return db.transaction(
    (tx) => {
      const { id: userId } = tx.insert(users).values({ name }).returning().get()
      const { id: jobId } = khepri.with(db).dispatchSync('send-welcome', { userId })
      if (name === '') throw new Error('a user needs a name')
      return { userId, jobId }
    },
    // As a writer from the start: a reader may not be able to become one.
    { behavior: 'immediate' },
  )
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
  client.close()
})
