import postgres from 'postgres'
import { command, type Server } from '../../support/postgres.ts'
import type { Order } from './host.ts'
import { PostgresSeam } from './postgres-seam.ts'
import { type Act, Site } from './site.ts'

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
