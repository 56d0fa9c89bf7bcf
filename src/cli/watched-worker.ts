import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { Clock, Timer } from '../core/clock.ts'
import { KhepriError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { WorkHandle } from '../core/work.ts'
import { type Health, isWell } from './health.ts'

/** What the flags of `work` ask to be kept an eye on. */
export interface Watched {
  /** Keeps a file that says whether the worker is well. */
  readonly healthFile: string | undefined
  /** Answers over HTTP whether it is. */
  readonly healthPort: number | undefined
  /** Drains when the process holds so much. */
  readonly maxMemoryBytes: number | undefined
}

/** A worker, and how it is watched. */
export interface WatchParts {
  readonly handle: Pick<WorkHandle, 'worker' | 'ready' | 'turned' | 'counts' | 'drain'>
  readonly watched: Watched
  readonly events: EventBus
  readonly clock: Clock
}

/** How often it is looked. */
const lookMs = 1_000

/** A loop that has not turned for so long is stuck; what was said is believed for as long. */
const patienceMs = 15_000

/** Watches over a worker until it is closed. Throws IO where the file cannot be written or the port is taken. */
export async function watchWorker(parts: WatchParts): Promise<WatchedWorker> {
  const worker = new WatchedWorker(parts)
  await worker.open()
  return worker
}

/** Looks every second whether the loop of a worker turns and how much memory it holds, and lets others know. */
export class WatchedWorker {
  readonly #handle: WatchParts['handle']
  readonly #stopHearing: () => void
  readonly #watched: Watched
  readonly #clock: Clock
  #timer: Timer | null = null
  #server: Server | null = null
  #isReady = false
  #isDraining = false
  #isAsked = false
  #turnedAt: number

  constructor({ handle, watched, events, clock }: WatchParts) {
    this.#handle = handle
    this.#watched = watched
    this.#clock = clock
    this.#turnedAt = clock.monotonic()
    void handle.ready.then(() => {
      this.#isReady = true
    })
    this.#stopHearing = events.on('worker.draining', () => {
      this.#isDraining = true
    })
  }

  async open(): Promise<void> {
    this.#write()
    if (this.#watched.healthPort !== undefined)
      this.#server = await listen(this.#watched.healthPort, () => this.health())
    this.#arm()
  }

  /** How the worker is now. */
  health(): Health {
    const { worker } = this.#handle
    return {
      ...{ worker, pid: process.pid, state: this.#state, counts: this.#handle.counts() },
      validUntil: this.#clock.now() + patienceMs,
    }
  }

  /** Stops watching; the file goes, since nobody keeps it any more. */
  async close(): Promise<void> {
    this.#timer?.cancel()
    this.#stopHearing()
    const { healthFile } = this.#watched
    if (healthFile !== undefined) rmSync(healthFile, { force: true })
    const server = this.#server
    this.#server = null
    server?.closeAllConnections()
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()))
  }

  get #state(): Health['state'] {
    if (this.#clock.monotonic() - this.#turnedAt > patienceMs) return 'stuck'
    if (this.#isDraining) return 'draining'
    return this.#isReady ? 'working' : 'starting'
  }

  #arm(): void {
    this.#timer = this.#clock.after(lookMs, () => {
      this.#ask()
      this.#limitMemory()
      this.#keepFile()
      this.#arm()
    })
  }

  /** One question at a time: a loop that is stuck would collect them. */
  #ask(): void {
    if (this.#isAsked) return
    this.#isAsked = true
    void this.#handle.turned().then(() => {
      this.#isAsked = false
      this.#turnedAt = this.#clock.monotonic()
    })
  }

  #limitMemory(): void {
    const { maxMemoryBytes } = this.#watched
    if (maxMemoryBytes === undefined || this.#isDraining || process.memoryUsage.rss() < maxMemoryBytes) return
    this.#handle.drain('max-memory')
  }

  /** A disk that is full for a while must not end the worker: the file grows old, and says so. */
  #keepFile(): void {
    try {
      this.#write()
    } catch {
      // Its reader sees it.
    }
  }

  /** In one step, so that nobody reads half of it. */
  #write(): void {
    const { healthFile } = this.#watched
    if (healthFile === undefined) return
    try {
      writeFileSync(`${healthFile}.${process.pid}`, `${JSON.stringify(this.health())}\n`)
      renameSync(`${healthFile}.${process.pid}`, healthFile)
    } catch (cause) {
      throw new KhepriError('IO', `the health file ${healthFile} cannot be written: ${reasonOf(cause)}`, {
        fix: 'name a file in a folder that this user may write to',
        cause,
      })
    }
  }
}

/** Answers every request with the health: 200 where the worker is well, else 503. */
async function listen(port: number, health: () => Health): Promise<Server> {
  const server = createServer((_, response) => {
    const now = health()
    response.writeHead(isWell(now, now.validUntil) ? 200 : 503, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(now)}\n`)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new KhepriError('IO', `nobody can listen on port ${port}: ${reasonOf(cause)}`, {
          fix: 'name another --health-port',
          cause,
        }),
      ),
    )
    server.listen(port, resolve)
  })
  return server
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
