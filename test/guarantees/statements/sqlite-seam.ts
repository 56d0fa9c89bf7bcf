import Database from 'better-sqlite3'
import type { Plan, SqliteFault, Struck } from './faults.ts'

const codes: Readonly<Record<Exclude<SqliteFault, 'kill before' | 'kill after'>, string>> = {
  BUSY: 'SQLITE_BUSY',
  FULL: 'SQLITE_FULL',
  IOERR: 'SQLITE_IOERR_WRITE',
  'IOERR after': 'SQLITE_IOERR_FSYNC',
  READONLY: 'SQLITE_READONLY',
}

/**
 * Stands between better-sqlite3 and whoever calls it in this process: counts statements, and lets a fault befall one.
 *
 * It changes the driver's prototypes, so that the code under test is the product's own, without a hook.
 */
export class SqliteSeam {
  #plan: Plan | null = null
  #count = 0
  #struck: Struck | null = null
  /** How the open transaction of a connection began. */
  readonly #begun = new WeakMap<object, string>()

  static install(): SqliteSeam {
    const seam = new SqliteSeam()
    const scratch = new Database(':memory:')
    seam.#wrap(Object.getPrototypeOf(scratch.prepare('select 1')), ['run', 'get', 'all', 'iterate'])
    seam.#wrap(Database.prototype, ['exec'])
    scratch.close()
    return seam
  }

  get count(): number {
    return this.#count
  }

  /** The statement that the fault befell; null where the operation ended before. */
  get struck(): Struck | null {
    return this.#struck
  }

  arm(plan: Plan | null): void {
    this.#plan = plan
    this.#count = 0
    this.#struck = null
  }

  #wrap(prototype: Record<string, unknown> | object, names: readonly string[]): void {
    const methods = prototype as Record<string, (...parameters: unknown[]) => unknown>
    const pass = this.#pass.bind(this)
    for (const name of names) {
      const original = methods[name]
      if (!original) throw new Error(`better-sqlite3 has no method ${name}`)
      methods[name] = function (this: Database.Statement | Database.Database, ...parameters) {
        const run = (): unknown => original.apply(this, parameters)
        // Its rows are read when it is called, so that it has ended when its fault comes.
        const call = name === 'iterate' ? () => [...(run() as Iterable<unknown>)].values() : run
        return 'source' in this ? pass(this.database, this.source, call) : pass(this, String(parameters[0]), call)
      }
    }
  }

  #pass(db: Database.Database, text: string, run: () => unknown): unknown {
    this.#count += 1
    const began = this.#begun.get(db) ?? ''
    if (text.startsWith('begin')) this.#begun.set(db, text)
    if (this.#plan === null || this.#count !== this.#plan.at) return run()
    this.#struck = { text, role: roleOf(db, text, began) }
    return strike(this.#plan.fault as SqliteFault, db, text, run)
  }
}

function roleOf(db: Database.Database, text: string, began: string): Struck['role'] {
  if (!db.inTransaction) return 'read'
  if (text !== 'commit') return 'open'
  return began === 'begin immediate' ? 'commit' : 'read'
}

function strike(fault: SqliteFault, db: Database.Database, text: string, run: () => unknown): never {
  // A BEGIN that fails leaves no transaction open in SQLite, so "after" would be a state that cannot be.
  if (fault.endsWith(' after') && !text.startsWith('begin')) run()
  if (fault === 'kill before' || fault === 'kill after') return die()
  // A full disk is one of the errors after which SQLite rolls back by itself.
  if (fault === 'FULL' && db.inTransaction) db.prepare('rollback').run()
  throw new Database.SqliteError(`injected at: ${text}`, codes[fault])
}

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
