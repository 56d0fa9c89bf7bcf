import { statSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import type { StoreOptions } from '../options.ts'
import { RecoveryPass } from '../recovery.ts'
import type {
  Beat,
  BeatAnswer,
  BeforeFreeing,
  Enqueued,
  Exchanged,
  Filter,
  Look,
  NewJob,
  Observation,
  Recovery,
  Round,
  Sight,
  Store,
} from '../store.ts'
import { Connection, dispatcherRole, type Role, workerRole } from './connection.ts'
import { storeClosed } from './errors.ts'
import { Exchange } from './exchange.ts'
import { insertJobs } from './insertion.ts'
import { lookIn } from './looking.ts'
import { requireMigrated } from './opening.ts'
import { SqliteRecovering } from './recovering.ts'
import { Selection } from './selection.ts'
import { type Statements, statementsFor } from './statements.ts'
import { now, type Transaction } from './transaction.ts'
import { WalWatch } from './wal-watch.ts'

/**
 * Opens the hot side of an SQLite file.
 *
 * Throws SCHEMA_MISSING, SCHEMA_BEHIND or SCHEMA_AHEAD unless the file exists and is migrated as this khepri needs it;
 * never creates one.
 */
export async function openSqliteStore(path: string, options: StoreOptions): Promise<Store> {
  const store = new SqliteStore(path, options)
  await store.requireSchema()
  return store
}

class SqliteStore implements Store {
  readonly #path: string
  readonly #options: StoreOptions
  readonly #statements: Statements
  readonly #connections = new Map<Role, Connection>()
  readonly #recovery: RecoveryPass
  /** Opened to look at the schema: the first role that needs a connection takes it over. */
  #spare: Connection | undefined
  /** Which file the connections are open on. */
  #file: string | null = null
  #watch: WalWatch | null = null
  #isClosed = false

  constructor(path: string, options: StoreOptions) {
    this.#path = path
    this.#options = options
    this.#statements = statementsFor(options.names)
    this.#recovery = new RecoveryPass(
      new SqliteRecovering(
        options.names,
        (work) => this.#read(work),
        (work) => this.#write(workerRole, work),
      ),
    )
  }

  async requireSchema(): Promise<void> {
    this.#spare = this.#open(workerRole)
    try {
      await requireMigrated(this.#spare, this.#options)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    if (jobs.length === 0) return []
    return this.#write(dispatcherRole, (transaction) => insertJobs(transaction, jobs))
  }

  async exchange(round: Round): Promise<Exchanged> {
    const answer = await this.#write(workerRole, (transaction) => {
      const exchanged = new Exchange(transaction, round.worker).run(round)
      // While the write lock is held nobody can commit what neither this look nor the watch would see.
      if (round.reserve && exchanged.reserved.length === 0) this.#watch?.arm()
      return exchanged
    })
    // The driver is synchronous: without a turn of the event loop short jobs would keep out signals, timers and beats.
    await setImmediate()
    return answer
  }

  async beat(beat: Beat): Promise<BeatAnswer> {
    return this.#write(workerRole, (transaction) => beatIn(transaction, beat))
  }

  async look(look: Look): Promise<Sight> {
    return this.#read((transaction) => lookIn(transaction, look))
  }

  async recover(observation: Observation, beforeFreeing?: BeforeFreeing): Promise<Recovery> {
    return this.#recovery.run(observation, beforeFreeing)
  }

  async nextDue(filter: Filter): Promise<number | null> {
    return this.#read(({ connection, statements, now }) => {
      const dueAt = new Selection(connection, statements, now).earliestDue(filter)
      return dueAt === null ? null : Math.max(0, dueAt - now)
    })
  }

  async listen(onWake: () => void): Promise<() => Promise<void>> {
    const watch = new WalWatch(this.#path, () => this.#version(), onWake)
    this.#watch = watch
    return async () => watch.close()
  }

  /** Changes with each commit of another connection. */
  #version(): number {
    try {
      return this.#connection(workerRole).db.pragma('data_version', { simple: true }) as number
    } catch {
      return -1
    }
  }

  async close(): Promise<void> {
    this.#watch?.close()
    this.#isClosed = true
    this.#closeConnections()
  }

  #closeConnections(): void {
    for (const connection of this.#connections.values()) connection.close()
    this.#spare?.close()
    this.#connections.clear()
    this.#spare = undefined
  }

  #write<T>(role: Role, work: (transaction: Transaction) => T): Promise<T> {
    const connection = this.#connection(role)
    return connection.write(() => work(this.#transaction(connection)))
  }

  #read<T>(work: (transaction: Transaction) => T): Promise<T> {
    const connection = this.#connection(workerRole)
    return connection.read(() => work(this.#transaction(connection)))
  }

  #transaction(connection: Connection): Transaction {
    return { connection, statements: this.#statements, now: now(this.#options.clock) }
  }

  /** A pure dispatcher and a pure worker pay for one connection each. */
  #connection(role: Role): Connection {
    if (this.#isClosed) throw storeClosed(this.#options.label)
    // What goes into a file that was deleted, or replaced, is seen by nobody again.
    if (this.#file !== fileAt(this.#path)) this.#closeConnections()
    const known = this.#connections.get(role)
    if (known) return known
    const connection = this.#spare ?? this.#open(role)
    this.#spare = undefined
    connection.assume(role)
    this.#connections.set(role, connection)
    return connection
  }

  #open(role: Role): Connection {
    this.#file = fileAt(this.#path)
    return Connection.open({ ...this.#options, path: this.#path }, role)
  }
}

/** Tells one file from another that has taken its place; null: there is none. */
function fileAt(path: string): string | null {
  const file = statSync(path, { throwIfNoEntry: false })
  return file === undefined ? null : `${file.dev}:${file.ino}`
}

function beatIn({ connection, statements, now }: Transaction, beat: Beat): BeatAnswer {
  const { worker } = beat
  if (beat.kind === 'joining') {
    connection.statement(statements.join).run({ ...beat.profile, worker, now })
    return { known: true }
  }
  if (beat.kind === 'leaving') {
    connection.statement(statements.freeHeld).run({ worker })
    return { known: connection.statement(statements.leave).pluck().get({ worker }) === null }
  }
  return { known: connection.statement(statements.beat).run({ worker, state: beat.kind, now }).changes === 1 }
}
