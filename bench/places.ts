import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import postgres from 'postgres'
import { findBinaries, freePort, startPostgres } from '../test/support/postgres.ts'
import type { StoreName } from './contestants.ts'
import type { Place } from './peer.ts'

/** A store that is ready for contestants. */
export interface Venue {
  readonly store: StoreName
  /** What it is, for the report. */
  readonly label: string
  /** An empty place. */
  place(): Promise<Place>
  /** Removes a place with all that is in it. */
  clear(place: Place): Promise<void>
  close(): Promise<void>
}

/** As durable as Postgres comes; only memory and connections differ from its defaults. */
const serverSettings = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  max_connections: '200',
}

/** Starts a store, or says why there is none. */
export async function openVenue(store: StoreName): Promise<Venue | { readonly missing: string }> {
  const root = mkdtempSync(join(tmpdir(), 'khepri-bench-'))
  const numbered = folders(root)
  switch (store) {
    case 'sqlite':
      return sqliteVenue(root, numbered)
    case 'postgres':
      return postgresVenue(root, numbered)
    case 'redis':
      return redisVenue(root, numbered)
  }
}

function folders(root: string): () => string {
  let made = 0
  return () => {
    const folder = join(root, String(++made))
    mkdirSync(folder)
    return folder
  }
}

function sqliteVenue(root: string, newFolder: () => string): Venue {
  return {
    store: 'sqlite',
    label: 'SQLite, a file on the disk of the temporary folder',
    async place() {
      const folder = newFolder()
      return { folder, database: join(folder, 'bench.db') }
    },
    clear: async ({ folder }) => rmSync(folder, { recursive: true, force: true }),
    close: async () => rmSync(root, { recursive: true, force: true }),
  }
}

async function postgresVenue(root: string, newFolder: () => string): Promise<Venue | { readonly missing: string }> {
  const binaries = findBinaries()
  if ('missing' in binaries) return binaries
  const server = await startPostgres({ settings: serverSettings })
  const sql = postgres(server.url, { max: 1, onnotice: () => {} })
  const [version] = await sql.unsafe<{ server_version: string }[]>('show server_version')
  let made = 0
  return {
    store: 'postgres',
    label: `Postgres ${version?.server_version}, a private server with durable settings`,
    async place() {
      const name = `bench_${++made}`
      await sql.unsafe(`create database ${name}`)
      return { folder: newFolder(), database: new URL(`/${name}`, server.url).href }
    },
    async clear({ folder, database }) {
      await sql.unsafe(`drop database ${new URL(database).pathname.slice(1)} with (force)`)
      await sql.unsafe('checkpoint')
      rmSync(folder, { recursive: true, force: true })
    },
    async close() {
      await sql.end()
      await server.remove()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

async function redisVenue(root: string, newFolder: () => string): Promise<Venue | { readonly missing: string }> {
  const folder = (process.env.PATH ?? '').split(delimiter).find((each) => existsSync(join(each, 'redis-server')))
  if (folder === undefined) {
    rmSync(root, { recursive: true, force: true })
    return { missing: 'no redis-server in PATH' }
  }
  const port = await freePort()
  const program = join(folder, 'redis-server')
  const server = spawn(program, ['--port', String(port), '--save', '', '--dir', root], { stdio: 'ignore' })
  await untilListening(join(folder, 'redis-cli'), port)
  let made = 0
  return {
    store: 'redis',
    label: 'Redis, nothing on the disk',
    place: async () => ({ folder: newFolder(), database: `redis://127.0.0.1:${port}/${made++ % 16}` }),
    clear: async () => {
      execFileSync(join(folder, 'redis-cli'), ['-p', String(port), 'flushall'])
    },
    async close() {
      server.kill('SIGTERM')
      await once(server, 'exit')
      rmSync(root, { recursive: true, force: true })
    },
  }
}

async function untilListening(client: string, port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    try {
      execFileSync(client, ['-p', String(port), 'ping'], { stdio: 'ignore' })
      return
    } catch {
      await wait(50)
    }
  }
  throw new Error(`redis-server does not answer on port ${port}`)
}
