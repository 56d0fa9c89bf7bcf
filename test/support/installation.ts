import { closeSync, copyFileSync, fstatSync, openSync, readSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import { type Ended, khepri, Live, type StartOptions } from './live.ts'
import { ask, freshDatabase, postgresSkipReason } from './postgres.ts'
import { TempProject } from './temp-project.ts'

export type StoreKind = 'sqlite' | 'postgres'

/** Describes the same tests on both stores; on Postgres they are skipped, and shown as skipped, where this run has none. */
export function onBothStores(name: string, tests: (store: StoreKind) => void): void {
  for (const store of ['sqlite', 'postgres'] as const)
    describe.skipIf(store === 'postgres' && postgresSkipReason() !== null)(`${name}, on ${store}`, () => tests(store))
}

/** Jobs that write down what they do, in a file that outlives every worker. */
const jobs = {
  'jobs/_ledger.mjs': `
    import { appendFileSync, existsSync } from 'node:fs'
    const folder = new URL('../', import.meta.url)
    export const exists = (name) => existsSync(new URL(name, folder))
    // One write of one line to a file opened for appending: lines of several processes never mix, and none is half.
    export const note = (what, { id, attempt, crashes, payloadText }) =>
      appendFileSync(new URL('ledger', folder),
        JSON.stringify({ what, id, attempt, crashes, payload: payloadText, pid: process.pid, at: Date.now() }) + '\\n')`,
  'jobs/note.mjs': `
    import { note } from './_ledger.mjs'
    export default (_, context) => { note('start', context); note('end', context) }`,
  'jobs/nap.mjs': `
    import { setTimeout as wait } from 'node:timers/promises'
    import { note } from './_ledger.mjs'
    export default async ({ ms }, context) => { note('start', context); await wait(ms); note('end', context) }`,
  // Runs until a file named "open" is there, or until it is aborted.
  'jobs/hold.mjs': `
    import { setTimeout as wait } from 'node:timers/promises'
    import { exists, note } from './_ledger.mjs'
    export default async (_, context) => {
      note('start', context)
      context.log('begun')
      while (!exists('open')) await wait(10, undefined, { signal: context.signal })
      note('end', context)
    }`,
  // The same, and nothing else of its process runs meanwhile.
  'jobs/block.mjs': `
    import { exists, note } from './_ledger.mjs'
    const never = new Int32Array(new SharedArrayBuffer(4))
    export default (_, context) => {
      note('start', context)
      while (!exists('open')) Atomics.wait(never, 0, 0, 10)
      note('end', context)
    }`,
  // Fails until a file named "mended" is there.
  'jobs/fail.mjs': `
    import { exists, note } from './_ledger.mjs'
    export default (_, context) => {
      note('start', context)
      if (!exists('mended')) throw new Error('not mended yet')
      note('end', context)
    }`,
  'jobs/crash.mjs': `
    import { note } from './_ledger.mjs'
    export default (_, context) => { note('start', context); process.kill(process.pid, 'SIGKILL'); return new Promise(() => {}) }`,
}

/** What a handler of `jobs` wrote down. */
export interface LedgerLine {
  readonly what: 'start' | 'end'
  readonly id: number
  readonly attempt: number
  readonly crashes: number
  /** The payload's text, byte for byte. */
  readonly payload: string
  readonly pid: number
  readonly at: number
}

/** The file in which handlers note when they start and end, as it grows. */
export class Ledger {
  readonly #file: string
  readonly #lines: LedgerLine[] = []
  readonly #ended = new Set<number>()
  #offset = 0

  constructor(file: string) {
    this.#file = file
    writeFileSync(file, '')
  }

  /** All lines so far, in the order in which they were written. */
  get lines(): readonly LedgerLine[] {
    this.#catchUp()
    return this.#lines
  }

  get starts(): readonly LedgerLine[] {
    return this.lines.filter(({ what }) => what === 'start')
  }

  get ends(): readonly LedgerLine[] {
    return this.lines.filter(({ what }) => what === 'end')
  }

  /** The ids of the jobs that have ended at least once. */
  get ended(): ReadonlySet<number> {
    this.#catchUp()
    return this.#ended
  }

  /** Resolves as soon as so many different jobs have ended. */
  untilEnded(count: number): Promise<void> {
    return this.#until(() => this.ended.size >= count)
  }

  /** Resolves as soon as handlers have started so many times, counting a job each time. */
  untilStarted(times: number): Promise<void> {
    return this.#until(() => this.starts.length >= times)
  }

  #until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const watcher = watch(this.#file, () => look())
      const look = (): void => {
        if (!holds()) return
        watcher.close()
        resolve()
      }
      look()
    })
  }

  #catchUp(): void {
    const bytes = readFrom(this.#file, this.#offset)
    // A write may be seen while it is under way; the rest of its line comes with the next look.
    const whole = bytes.subarray(0, bytes.lastIndexOf('\n') + 1)
    this.#offset += whole.length
    for (const line of whole.toString().split('\n').slice(0, -1)) this.#take(JSON.parse(line) as LedgerLine)
  }

  #take(line: LedgerLine): void {
    this.#lines.push(line)
    if (line.what === 'end') this.#ended.add(line.id)
  }
}

function readFrom(path: string, offset: number): Buffer {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - offset))
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset))
  } finally {
    closeSync(file)
  }
}

/** Migrated once for each test file, and copied: a process less in every test. */
let template: Promise<string> | null = null

/** One project with its own database and a ledger: khepri as its user has it. Gone at the end of the block that holds it. */
export class Installation implements AsyncDisposable {
  readonly project: TempProject
  readonly ledger: Ledger
  /** Of Postgres; null: an SQLite file in the project. */
  readonly url: string | null
  readonly #drop: () => Promise<void>

  private constructor(url: string | null, drop: () => Promise<void>) {
    // A lease of two seconds keeps tests of dead workers short; a busy machine still gets its beats through.
    const settings = { ...(url !== null && { database: url }), retryAfter: '2s', sleep: '100ms' }
    this.project = new TempProject({ ...jobs, 'package.json': '{}', 'khepri.config.json': JSON.stringify(settings) })
    this.ledger = new Ledger(join(this.project.path, 'ledger'))
    this.url = url
    this.#drop = drop
  }

  /** Without tables. */
  static async empty(store: StoreKind): Promise<Installation> {
    if (store === 'sqlite') return new Installation(null, async () => {})
    const { url, drop } = await freshDatabase()
    return new Installation(url, drop)
  }

  static async migrated(store: StoreKind): Promise<Installation> {
    const installation = await Installation.empty(store)
    if (store === 'postgres') return installation.#migrated()
    template ??= Installation.#template()
    copyFileSync(await template, join(installation.project.path, 'khepri.db'))
    return installation
  }

  /** The path of an SQLite file that was migrated; it lasts as long as this process. */
  static async #template(): Promise<string> {
    const { project } = await (await Installation.empty('sqlite')).#migrated()
    process.once('exit', () => project[Symbol.dispose]())
    return join(project.path, 'khepri.db')
  }

  /** In a database that the caller made, and removes. */
  static async migratedAt(url: string): Promise<Installation> {
    return new Installation(url, async () => {}).#migrated()
  }

  async #migrated(): Promise<Installation> {
    await this.must('migrate')
    return this
  }

  /** Runs a command to its end. */
  run(args: readonly string[], options: Omit<StartOptions, 'cwd'> = {}): Promise<Ended> {
    return khepri(args, { cwd: this.project.path, ...options })
  }

  /** Runs a command that has to succeed; the result is its stdout. */
  async must(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args)
    expect(code, `khepri ${args.join(' ')}: ${stderr}`).toBe(0)
    return stdout
  }

  start(args: readonly string[], options: Omit<StartOptions, 'cwd'> = {}): Live {
    return Live.start(args, { cwd: this.project.path, ...options })
  }

  /** Starts a worker, and waits until it works. */
  async worker(...flags: readonly string[]): Promise<Live> {
    const worker = this.start(['work', ...flags])
    await worker.until(/Ctrl-C stops gently/)
    return worker
  }

  /** Dispatches one job; the result is its id. */
  async dispatch(job: string, ...flags: readonly string[]): Promise<number> {
    return Number(await this.must('dispatch', '--job', job, ...flags))
  }

  /** Dispatches jobs as NDJSON through stdin. */
  async dispatchAll(jobs: readonly object[], ...flags: readonly string[]): Promise<void> {
    const stdin = jobs.map((job) => `${JSON.stringify(job)}\n`).join('')
    const { code, stderr } = await this.run(['dispatch', '-', ...flags], { stdin })
    expect(code, stderr).toBe(0)
  }

  /** The ids of the failed jobs, as `khepri failed` lists them, and why each failed. */
  async failed(): Promise<readonly { readonly id: number; readonly reason: string; readonly error: string }[]> {
    return JSON.parse(await this.must('failed', '--json')) as { id: number; reason: string; error: string }[]
  }

  /** Lets what runs `hold` or `block` come to its end. */
  open(): void {
    this.project.write('open', '')
  }

  /** Takes the cause away that lets `fail` fail. */
  mend(): void {
    this.project.write('mended', '')
  }

  /** Looks into the database itself, or changes it behind khepri's back. */
  async ask(query: string, parameters: readonly (string | number)[] = []): Promise<readonly Record<string, unknown>[]> {
    if (this.url === null) return this.sqlite((db) => askSqlite(db, query, parameters))
    return ask(this.url, query.replaceAll('?', numbered()), parameters)
  }

  /** Reads or changes the SQLite file on a connection of its own. */
  sqlite<T>(use: (db: Database.Database) => T): T {
    const db = new Database(join(this.project.path, 'khepri.db'), { timeout: 10_000 })
    try {
      return use(db)
    } finally {
      db.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.project[Symbol.dispose]()
    await this.#drop()
  }
}

function askSqlite(db: Database.Database, query: string, parameters: readonly unknown[]): Record<string, unknown>[] {
  const statement = db.prepare<unknown[], Record<string, unknown>>(query)
  if (statement.reader) return statement.all(...parameters)
  statement.run(...parameters)
  return []
}

/** The names of parameters on Postgres, one after the other: $1, $2. */
function numbered(): () => string {
  let count = 0
  return () => `$${++count}`
}
