import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Answer, Request } from './agent.ts'
import { builtFolder } from './build.ts'
import type { Calls } from './calls.ts'
import type { Contestant } from './contestants.ts'
import { keepRunsVariable } from './handlers.ts'
import { now, type Place } from './peer.ts'
import type { Tallied } from './tally.ts'

type Message = Answer | Tallied | { readonly kind: 'ready' }

/** How a process is started. */
export interface StartOptions {
  readonly contestant: Contestant
  readonly place: Place
  readonly role: 'client' | 'work' | 'gated'
  readonly concurrency: number | null
  /** Reports each run, and not only their count. */
  readonly keepsRuns: boolean
}

/** Patience with a process that is to stop by itself. */
const stopMs = 3_000

/** Of the kernel's counts of time. */
const tickMs = 10

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

/** A process of a contestant, seen from the benchmark. */
export class AgentProcess {
  readonly child: ChildProcess
  readonly startedAt = now()
  readonly #isCommandLine: boolean
  readonly #answers = new Map<number, (answer: Answer) => void>()
  readonly #listeners: ((tallied: Tallied) => void)[] = []
  readonly #ready: Promise<void>
  #asked = 0
  #errors = ''

  constructor({ contestant, place, role, concurrency, keepsRuns }: StartOptions) {
    this.#isCommandLine = contestant.commandLine && role !== 'client'
    const text = concurrency === null ? '' : String(concurrency)
    const words = this.#isCommandLine
      ? [join(import.meta.dirname, '../bin/run.cjs'), 'work', ...(text && [`--concurrency=${text}`])]
      : [join(builtFolder, 'agent.js'), contestant.store, contestant.name, JSON.stringify(place), role, text]
    this.child = spawn(process.execPath, words, {
      cwd: place.folder,
      env: { ...environment(), [keepRunsVariable]: keepsRuns ? '1' : '0' },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    running.add(this.child)
    this.child.once('exit', () => this.#gone())
    this.child.stderr?.setEncoding('utf8').on('data', (more: string) => {
      this.#errors = (this.#errors + more).slice(-2_000)
    })
    this.#ready = new Promise((resolve) => {
      if (this.#isCommandLine) resolve()
      else this.child.once('message', () => resolve())
      this.child.once('exit', () => resolve())
    })
    this.child.on('message', (message: Message) => this.#take(message))
  }

  /** Resolves once it has loaded. */
  ready(): Promise<void> {
    return this.#ready
  }

  onTally(listener: (tallied: Tallied) => void): void {
    this.#listeners.push(listener)
  }

  /** Asks and waits for the answer; rejects with the process's own error. */
  async ask<Name extends keyof Calls>(
    call: Name,
    parameters: Parameters<Calls[Name]>[1],
  ): Promise<Awaited<ReturnType<Calls[Name]>>> {
    return (await this.send(call, parameters)) as Awaited<ReturnType<Calls[Name]>>
  }

  async send(call: Request['call'], parameters: unknown = null): Promise<unknown> {
    await this.#ready
    const id = ++this.#asked
    const answered = new Promise<Answer>((resolve) => this.#answers.set(id, resolve))
    if (this.child.connected)
      this.child.send({ id, call, parameters } satisfies Request, (error) => error && this.#gone())
    else this.#gone()
    const { error, value } = await answered
    if (error !== undefined) throw new Error(`${call}: ${error}`)
    return value
  }

  /** Ends it gently, and by force where that takes too long. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const exited = once(this.child, 'exit')
    const patience = new AbortController()
    const force = wait(stopMs, undefined, { signal: patience.signal }).then(
      () => this.child.kill('SIGKILL'),
      () => {},
    )
    if (this.#isCommandLine) this.child.kill('SIGTERM')
    else
      await Promise.race([this.send('stop').catch(() => {}), exited]).then(() => {
        if (this.child.connected) this.child.disconnect()
      })
    await exited
    patience.abort()
    await force
  }

  #take(message: Message): void {
    if (message.kind === 'tally') for (const listener of this.#listeners) listener(message)
    if (message.kind !== 'answer') return
    this.#answers.get(message.id)?.(message)
    this.#answers.delete(message.id)
  }

  #gone(): void {
    running.delete(this.child)
    for (const [id, answer] of this.#answers) answer({ kind: 'answer', id, error: `it is gone: ${this.#errors}` })
    this.#answers.clear()
  }
}

/** Resident memory, bytes, and time on a core so far, ms, of a process; 0 where the system does not tell. */
export function costOf(pid: number): { readonly rss: number; readonly cpuMs: number } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [, user = '0', system = '0'] = /\) (?:\S+ ){11}(\d+) (\d+)/.exec(stat) ?? []
    return {
      rss: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1_024,
      cpuMs: (Number(user) + Number(system)) * tickMs,
    }
  } catch {
    return { rss: 0, cpuMs: 0 }
  }
}

/** Ours without what npm and a user's own khepri add. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(?:KHEPRI_|npm_|NODE_OPTIONS$|NODE_CHANNEL)/.test(name)),
  )
}
