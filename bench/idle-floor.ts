import { isMainThread, Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import postgres from 'postgres'

/** An idle process with the store's driver, and with a thread that has one too: what a worker cannot go below. */
const database = process.argv[2] ?? ''
if (database.startsWith('postgres:')) await postgres(database, { max: 1 }).unsafe('select 1')
else new Database(database).pragma('journal_mode')

if (isMainThread) new Worker(new URL(import.meta.url), { argv: [database] })
setInterval(() => {}, 1_000)
