import { systemClock } from '../../clock.ts'
import { KhepriError } from '../../errors.ts'
import type { StoreOptions } from '../options.ts'
import { type Address, addressesOf, Connection, type ConnectionOptions, type Row } from './connection.ts'
import { isBrokenConnection, isConflict, SilenceError, type Stage, storeError } from './errors.ts'
import { type Parameter, parametersOf, type Statement } from './statement.ts'

/** Two rounds under way keep a server busy, and a look does not wait for them; more would only cost it memory. */
const mostConnections = 3

/** A close that takes longer than this gives up: the process wants to end. */
const closeMs = 5_000

/** So often a statement that the server undid, in a deadlock for one, is sent again. */
const mostTries = 10

/** How one call is sent, and what a broken connection means for it. */
export interface Call {
  /** For people: "reserve jobs". */
  readonly doing: string
  /** reading changes nothing; repeatable may happen twice without harm; writing must be sent only once. */
  readonly kind: 'reading' | 'repeatable' | 'writing'
  /** Longer than the store's own for what scans; shorter never. */
  readonly deadlineMs?: number
}

/** The parameters of a statement by name. */
export type Values = Readonly<Record<string, Parameter>>

/** Statements of one transaction: all of them happen or none. */
export interface Transaction {
  run(statement: Statement, values: Values): Promise<Row[]>
}

/** The sessions of one store, opened when they are needed, and the rules for what happens when one breaks. */
export class Connections {
  readonly #url: string
  readonly #options: StoreOptions
  readonly #addresses: readonly Address[]
  readonly #all = new Set<Connection>()
  readonly #idle: Connection[] = []
  readonly #permits: Permits
  #closed = false

  constructor(url: string, options: StoreOptions) {
    this.#url = url
    this.#options = options
    this.#addresses = parsed(url)
    this.#permits = new Permits(mostConnections, options.deadlineMs)
  }

  /** Runs one statement, which is its own transaction. */
  run(statement: Statement, values: Values, call: Call): Promise<Row[]> {
    const parameters = parametersOf(statement, values)
    return this.#send(call, (connection) => connection.run(statement.text, parameters, call.deadlineMs))
  }

  /** Runs text that was built elsewhere; each row is a list of its values. */
  values(text: string, parameters: readonly Parameter[], call: Call): Promise<unknown[][]> {
    const deadlineMs = call.deadlineMs ?? this.#options.deadlineMs
    return this.#send(call, (connection) => connection.values(text, parameters, deadlineMs))
  }

  #send<T>(call: Call, send: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#persistently(call, (stage) =>
      this.#lend(async (connection) => {
        stage.reached = call.kind === 'writing' ? 'writing' : 'reading'
        return await send(connection)
      }),
    )
  }

  /** Runs several statements in one transaction; `work` may be called again where the server undid it. */
  transaction<T>(call: Call, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#persistently(call, (stage) =>
      this.#lend(async (connection) => {
        // Until the commit has been sent a broken connection undoes everything.
        stage.reached = 'reading'
        const result = await inTransaction(connection, call.deadlineMs, work)
        stage.reached = call.kind === 'writing' ? 'writing' : 'reading'
        await connection.run('commit', [], call.deadlineMs)
        return result
      }),
    )
  }

  /** Sends again what surely has not happened and what may happen twice; rebuilds the error of the rest. */
  async #persistently<T>(call: Call, attempt: (stage: { reached: Stage }) => Promise<T>): Promise<T> {
    const { label, deadlineMs } = this.#options
    for (let tries = 1; ; tries++) {
      const stage: { reached: Stage } = { reached: 'connecting' }
      try {
        return await attempt(stage)
      } catch (error) {
        const broken = tries === 1 && stage.reached !== 'writing' && isBrokenConnection(error)
        if (!(broken || (isConflict(error) && tries < mostTries)))
          throw storeError(error, { label, deadlineMs, ...call, stage: stage.reached })
        await this.#pause(tries)
      }
    }
  }

  /** Random, so that two that have met do not meet again. */
  #pause(tries: number): Promise<void> {
    const pauseMs = this.#options.random() * Math.min(5 * tries, 25)
    return new Promise((resolve) => systemClock.after(pauseMs, resolve))
  }

  async #lend<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    await this.#permits.take()
    try {
      const connection = this.#takeIdle() ?? (await this.#open())
      try {
        return await use(connection)
      } finally {
        this.#takeBack(connection)
      }
    } finally {
      this.#permits.giveBack()
    }
  }

  #takeIdle(): Connection | null {
    const connection = this.#idle.pop()
    if (connection === undefined) return null
    if (connection.isUsable) return connection
    this.#all.delete(connection)
    return this.#takeIdle()
  }

  #takeBack(connection: Connection): void {
    if (connection.isUsable) this.#idle.push(connection)
    else this.#all.delete(connection)
  }

  async #open(): Promise<Connection> {
    this.#refuseClosed()
    const connection = await this.#openAny()
    this.#all.add(connection)
    if (this.#closed) connection.destroy()
    this.#refuseClosed()
    return connection
  }

  #refuseClosed(): void {
    if (this.#closed) throw new KhepriError('BUG', `the connections to ${this.#options.label} are closed`)
  }

  /** Opens a session beside the others, for as long as the caller wants it. */
  openSession(hooks: Pick<ConnectionOptions, 'onNotify' | 'onClose'>): Promise<Connection> {
    return this.#openAny(hooks)
  }

  /** Tries the servers that the URL names in its order. */
  async #openAny(hooks: Pick<ConnectionOptions, 'onNotify' | 'onClose'> = {}): Promise<Connection> {
    const { prepare, deadlineMs } = this.#options
    const failures: unknown[] = []
    for (const address of this.#addresses) {
      try {
        return await Connection.open(address, { url: this.#url, prepare, deadlineMs, ...hooks })
      } catch (error) {
        failures.push(error)
      }
    }
    throw failures.at(-1)
  }

  /** Waits for what is under way, and gives up after five seconds. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#all].map((connection) => connection.close(closeMs)))
  }
}

async function inTransaction<T>(
  connection: Connection,
  deadlineMs: number | undefined,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  // Said, since a database may have another default, under which the waits for a unique key end in an error.
  await connection.run('begin isolation level read committed', [], deadlineMs)
  try {
    return await work({
      run: (statement, values) => connection.run(statement.text, parametersOf(statement, values), deadlineMs),
    })
  } catch (error) {
    await rollBack(connection)
    throw error
  }
}

/** A session that cannot even roll back is dropped, which does it too. */
async function rollBack(connection: Connection): Promise<void> {
  try {
    if (connection.isUsable) await connection.run('rollback', [])
  } catch {
    connection.destroy()
  }
}

/** The right to use one of a few connections, given in the order of asking. */
class Permits {
  readonly #deadlineMs: number
  readonly #waiting = new Set<() => void>()
  #free: number

  constructor(count: number, deadlineMs: number) {
    this.#free = count
    this.#deadlineMs = deadlineMs
  }

  /** Throws SilenceError when none came free in time: everybody before was waiting for the server. */
  take(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const granted = (): void => {
        timer.cancel()
        resolve()
      }
      const timer = systemClock.after(this.#deadlineMs, () => {
        this.#waiting.delete(granted)
        reject(new SilenceError())
      })
      this.#waiting.add(granted)
    })
  }

  giveBack(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

function parsed(url: string): readonly Address[] {
  try {
    return addressesOf(url)
  } catch {
    // The reason would quote the URL, with its password.
    throw new KhepriError('CONFIG_INVALID', 'the database is not a URL that Postgres understands', {
      fix: 'write it as postgres://user:password@host:5432/database; percent-encode special characters',
    })
  }
}
