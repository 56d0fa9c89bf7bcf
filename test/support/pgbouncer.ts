import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ask, freePort } from './postgres.ts'

/** Server sessions that all clients share: fewer than one worker alone would open. */
const poolSize = 2

/** Why there is no PgBouncer to be tested with; null where there is one. */
export function pgbouncerSkipReason(): string | null {
  return find() === undefined ? 'there is no pgbouncer in PATH or /usr/sbin' : null
}

function find(): string | undefined {
  // Debian puts it where only root's PATH leads.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  return folders.map((folder) => join(folder, 'pgbouncer')).find((file) => existsSync(file))
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** A pooler in transaction mode, in front of a server: every transaction may meet another session. */
export class PgBouncer implements AsyncDisposable {
  /** Of the database that the pooler leads to. */
  readonly url: string
  readonly #child: ChildProcess
  readonly #folder: string

  /** url: of the database on the server itself. */
  static async start(url: string): Promise<PgBouncer> {
    const folder = mkdtempSync(join(tmpdir(), 'khepri-pgbouncer-'))
    const pooler = new PgBouncer(url, folder, await freePort())
    try {
      await pooler.#untilReady()
      return pooler
    } catch (error) {
      await pooler[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(url: string, folder: string, port: number) {
    this.#folder = folder
    const pooled = new URL(url)
    writeFileSync(join(folder, 'pgbouncer.ini'), settings(pooled, port))
    pooled.port = String(port)
    this.url = pooled.href
    this.#child = spawn(find() ?? 'pgbouncer', [...asNobody(folder), join(folder, 'pgbouncer.ini')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    running.add(this.#child)
    this.#child.once('exit', () => running.delete(this.#child))
  }

  async #untilReady(): Promise<void> {
    let stderr = ''
    this.#child.stderr?.on('data', (text: Buffer) => {
      stderr += text
    })
    for (let tries = 0; tries < 100 && this.#child.exitCode === null; tries++) {
      if (await ask(this.url, 'select 1').catch(() => null)) return
      await wait(50)
    }
    throw new Error(`pgbouncer does not start:\n${stderr}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit')
      this.#child.kill('SIGKILL')
      await ended
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function settings({ hostname, port, pathname, username }: URL, listenPort: number): string {
  return `[databases]
${pathname.slice(1)} = host=${hostname} port=${port} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
`
}

/** It refuses to run as root. */
function asNobody(folder: string): readonly string[] {
  if (process.getuid?.() !== 0) return []
  chmodSync(folder, 0o755)
  return ['-u', 'nobody']
}
