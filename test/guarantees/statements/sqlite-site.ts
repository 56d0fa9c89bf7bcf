import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { isKill } from './faults.ts'
import type { Order } from './host.ts'
import { type Act, Site } from './site.ts'

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
