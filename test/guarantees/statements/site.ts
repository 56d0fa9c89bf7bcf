import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import postgres from 'postgres'
import type { StoreKind } from '../../support/installation.ts'
import { command, type Server } from '../../support/postgres.ts'
import { TempProject } from '../../support/temp-project.ts'
import { isKill, type Plan, type Struck } from './faults.ts'
import type { Order } from './host.ts'
import { type Answer, Host } from './host-process.ts'
import { PostgresSeam } from './postgres-seam.ts'

/** Jobs that write down what they do, in a file that outlives every process. `k` of the payload names a job. */
const jobs = {
  'jobs/_note.mjs': `
    import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
    const folder = new URL('../', import.meta.url)
    // One write of one line to a file opened for appending: no line is ever half, whoever is killed.
    export const note = (what, { k }, { attempt, crashes }) =>
      appendFileSync(new URL('ledger', folder), JSON.stringify({ what, k, attempt, crashes }) + '\\n')
    export const exists = (name) => existsSync(new URL(name, folder))
    export const mark = (name) => writeFileSync(new URL(name, folder), '')`,
  'jobs/done.mjs': `
    import { note } from './_note.mjs'
    export default (payload, context) => { note('start', payload, context); note('end', payload, context) }`,
  // Fails on its first attempt.
  'jobs/retry.mjs': `
    import { note } from './_note.mjs'
    export default (payload, context) => {
      note('start', payload, context)
      if (context.attempt === 1) throw new Error('not yet')
      note('end', payload, context)
    }`,
  // Fails until a file named "mended" is there.
  'jobs/fail.mjs': `
    import { defineJob } from 'khepri'
    import { exists, note } from './_note.mjs'
    export default defineJob({
      handle: (payload, context) => {
        note('start', payload, context)
        if (!exists('mended')) throw new Error('it broke')
        note('end', payload, context)
      },
      failed: (error, context, payload) => note('hook', payload, context),
    })`,
  // Gives itself back when it runs for the first time.
  'jobs/release.mjs': `
    import { exists, mark, note } from './_note.mjs'
    export default (payload, context) => {
      note('start', payload, context)
      if (!exists('released')) { mark('released'); context.release(0) }
      note('end', payload, context)
    }`,
}

/** What a handler wrote down. hook: its failed() ran. */
export interface Line {
  readonly what: 'start' | 'end' | 'hook'
  readonly k: number
  readonly attempt: number
  readonly crashes: number
}

/** How one act under a fault ended. */
export interface Act {
  readonly answer: Answer
  /** The statement that the fault befell; null where the act ended before, or where nothing was to befall it. */
  readonly struck: Struck | null
}

/** Where one store is tried: a project with a database that can be put back to a known state, and a process to run in. */
export abstract class Site {
  abstract readonly store: StoreKind
  /** The setting that names the database. */
  abstract readonly database: string
  protected readonly project: TempProject
  protected readonly host: Host
  readonly #marks = ['ledger', 'mended', 'released'] as const

  constructor() {
    this.project = new TempProject({ ...jobs, 'package.json': '{}' })
    this.host = new Host(this.project.path)
  }

  /** Lets the database be as it was kept under this name; null: there is none. */
  protected abstract restore(name: string | null): Promise<void>
  /** Keeps the database as it is now, for every site of this store. */
  abstract keep(name: string): Promise<void>
  abstract ask(query: string): Promise<readonly Record<string, unknown>[]>
  protected abstract act(order: Order): Promise<Act>

  /** Starts from a known state: nothing is written down, and nothing of an earlier try is left. */
  async begin(state: string | null): Promise<void> {
    for (const name of this.#marks) rmSync(join(this.project.path, name), { force: true })
    await this.restore(state)
  }

  /** Runs a command line. */
  run(argv: readonly string[], plan: Plan | null = null): Promise<Act> {
    return this.act({ argv, plan })
  }

  /** Runs a command line that has to succeed. */
  async must(...argv: readonly string[]): Promise<string> {
    const { answer } = await this.run(argv)
    if (answer === 'killed') throw new Error(`khepri ${argv.join(' ')} was killed`)
    if (answer.exit !== 0) throw new Error(`khepri ${argv.join(' ')} ended with ${answer.exit}: ${answer.stderr}`)
    return answer.stdout
  }

  /** Frees what dead workers hold, as a neighbour does it once an hour has passed without a beat. */
  recover(plan: Plan | null = null): Promise<Act> {
    return this.act({ recover: { database: this.database, aheadMs: 3_600_000 }, plan })
  }

  /** Writes a file, and answers its path. */
  write(name: string, text: string): string {
    return this.project.write(name, text)
  }

  ledger(): readonly Line[] {
    const path = join(this.project.path, 'ledger')
    if (!existsSync(path)) return []
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Line)
  }

  async close(): Promise<void> {
    await this.host.close()
    this.project[Symbol.dispose]()
  }
}

/** The faults of SQLite strike inside the process. */
export class SqliteSite extends Site {
  readonly store = 'sqlite'
  readonly database: string
  readonly #file: string
  readonly #shelf: string

  /** shelf: a folder for the states that are kept. */
  constructor(shelf: string) {
    super()
    this.#shelf = shelf
    this.#file = join(this.project.path, 'khepri.db')
    this.database = `sqlite:${this.#file}`
    this.project.write('khepri.config.json', JSON.stringify({ database: this.database }))
  }

  protected async restore(name: string | null): Promise<void> {
    for (const ending of ['', '-wal', '-shm']) rmSync(this.#file + ending, { force: true })
    if (name !== null) copyFileSync(this.#kept(name), this.#file)
  }

  async keep(name: string): Promise<void> {
    if (existsSync(`${this.#file}-wal`)) throw new Error('somebody still has the file open')
    copyFileSync(this.#file, this.#kept(name))
  }

  #kept(name: string): string {
    return join(this.#shelf, `${name}.db`)
  }

  async ask(query: string): Promise<readonly Record<string, unknown>[]> {
    const db = new Database(this.#file)
    try {
      return db.prepare<[], Record<string, unknown>>(query).all()
    } finally {
      db.close()
    }
  }

  protected async act(order: Order): Promise<Act> {
    const answer = await this.host.run(order)
    if (answer !== 'killed') return { answer, struck: answer.struck }
    if (order.plan === null || !isKill(order.plan.fault)) throw new Error('its process was killed by somebody else')
    return { answer, struck: { text: '(the process died with it)', role: 'open' } }
  }
}

/** The tables of states that are kept stand in schemas of their own, beside the one that is in use. */
const parked = 'parked'

/**
 * The faults of Postgres strike on the wire.
 *
 * Its database is made once, and put back by copying rows: a new one for each try would take a second.
 */
export class PostgresSite extends Site {
  readonly store = 'postgres'
  readonly database: string
  readonly #seam: PostgresSeam
  /** Beside the wire that faults befall. */
  readonly #sql: postgres.Sql

  /** template: the database of the server that its own is copied from; nobody may be connected to it. */
  static async open(server: Server, name: string, template: string): Promise<PostgresSite> {
    await command(server.url, `create database ${name} template ${template}`)
    let site: PostgresSite | null = null
    const seam = await PostgresSeam.open(server.port, () => void site?.host.kill())
    site = new PostgresSite(server.url.replace(/postgres$/, name), seam)
    return site
  }

  private constructor(url: string, seam: PostgresSeam) {
    super()
    this.#seam = seam
    this.#sql = postgres(url, { max: 1, onnotice: () => {} })
    this.database = url.replace(/:\d+\//, `:${seam.port}/`)
    this.project.write('khepri.config.json', JSON.stringify({ database: this.database }))
  }

  protected async restore(name: string | null): Promise<void> {
    this.#seam.cut()
    if (name === null) return this.#do(await this.#emptying())
    if (await this.#isParked())
      await this.#do(['drop schema public cascade', `alter schema ${parked} rename to public`])
    await this.#do((await this.#tablesOf(name)).flatMap((table) => copying(`${name}.${table}`, `public.${table}`)))
  }

  async #emptying(): Promise<readonly string[]> {
    const isEmpty = (await this.#tablesOf('public')).length === 0
    if (isEmpty) return []
    const makeWay = (await this.#isParked()) ? 'drop schema public cascade' : `alter schema public rename to ${parked}`
    return [makeWay, 'create schema public']
  }

  async #isParked(): Promise<boolean> {
    return (await this.ask(`select from pg_namespace where nspname = '${parked}'`)).length > 0
  }

  async keep(name: string): Promise<void> {
    const tables = await this.#tablesOf('public')
    await this.#do([
      `create schema ${name}`,
      ...tables.map((table) => `create table ${name}.${table} as table public.${table}`),
    ])
  }

  async #tablesOf(schema: string): Promise<readonly string[]> {
    const rows = await this.ask(
      `select table_name as name from information_schema.tables where table_schema = '${schema}'`,
    )
    return rows.map(({ name }) => name as string)
  }

  /** All of them or none. */
  async #do(statements: readonly string[]): Promise<void> {
    await this.#sql.unsafe(statements.join(';')).simple()
  }

  async ask(query: string): Promise<readonly Record<string, unknown>[]> {
    return [...(await this.#sql.unsafe(query))]
  }

  protected async act(order: Order): Promise<Act> {
    this.#seam.arm(order.plan)
    const answer = await this.host.run({ ...order, plan: null })
    const { struck } = this.#seam
    this.#seam.arm(null)
    if (answer === 'killed' && struck === null) throw new Error('its process was killed by somebody else')
    return { answer, struck }
  }

  override async close(): Promise<void> {
    await super.close()
    await this.#seam.close()
    await this.#sql.end({ timeout: 5 })
  }
}

/** Rows with the ids that they had; the next id is one that none of them has. */
function copying(from: string, to: string): readonly string[] {
  const sequence = `pg_get_serial_sequence('${to}', 'id')`
  return [
    `truncate ${to}`,
    `insert into ${to} overriding system value select * from ${from}`,
    ...(/_?(jobs|attempts)$/.test(to) ? [`select setval(${sequence}, 100) where ${sequence} is not null`] : []),
  ]
}
