import { existsSync, statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { systemClock } from '../../clock.ts'
import { KhepriError } from '../../errors.ts'
import { schemaMissing } from '../migrator.ts'
import type { StoreOptions } from '../options.ts'
import { isBusy, outcomeUnknown, storeBusy, storeClosed, toStoreError } from './errors.ts'
import { refuseUnusable } from './file-system.ts'

/** FULL survives a power cut; NORMAL survives a kill, and syncs only at a checkpoint. */
export type Durability = 'FULL' | 'NORMAL'

export type ConnectionOptions = Pick<StoreOptions, 'label' | 'deadlineMs' | 'random'> & { readonly path: string }

/** What a connection is used for, and so how it waits. */
export interface Role {
  readonly durability: Durability
  /**
   * Milliseconds until the next look at a lock that somebody else holds. At random, so that workers get fair shares; a
   * dispatch has a person waiting.
   */
  readonly pauseMs: (random: number) => number
}

export const workerRole: Role = { durability: 'NORMAL', pauseMs: (random) => 1 + random * 3 }
export const dispatcherRole: Role = { durability: 'FULL', pauseMs: () => 1 }
export const operatorRole: Role = { durability: 'FULL', pauseMs: (random) => 1 + random * 3 }

/**
 * Pages in the log after which SQLite copies them into the file: four times its own default. A job's page is written when
 * it is reserved and again when it is done, and is copied once if both are in the log by then.
 */
const checkpointPages = 4_000

/** While somebody always reads, the log is never begun anew, and grows. Looked at once in so many commits, */
const commitsBetweenLooks = 256
/** it is cut once it has grown past so many bytes. */
const longestLogBytes = 64 * 1024 * 1024

/**
 * One connection to an SQLite file.
 *
 * Its driver is synchronous, so it never waits for a lock inside SQLite, where nothing else of the process could run:
 * the driver refuses at once, and the waiting happens here, between transactions.
 */
export class Connection {
  readonly db: Database.Database
  readonly #options: ConnectionOptions
  readonly #statements = new Map<string, Database.Statement<unknown[]>>()
  #role: Role
  /** What `synchronous` is set to by now: setting it reads the file, and so can meet a lock. */
  #durability: Durability | undefined
  #commits = 0

  private constructor(options: ConnectionOptions, role: Role, driverOptions: Database.Options) {
    this.db = openDatabase(options, driverOptions)
    this.#options = options
    this.#role = role
  }

  /** Opens an existing file. Throws SCHEMA_MISSING when there is none: only `migrate` creates one. */
  static open(options: ConnectionOptions, role: Role): Connection {
    if (!existsSync(options.path)) throw schemaMissing(options.label)
    return new Connection(options, role, { fileMustExist: true })
  }

  /** Opens a file for migrations, and creates it where there is none. */
  static create(options: ConnectionOptions): Connection {
    return new Connection(options, operatorRole, {})
  }

  /** Changes what the connection is used for, from the next transaction on. */
  assume(role: Role): void {
    this.#role = role
  }

  /** A statement that is prepared once, when it is first needed. */
  statement(text: string): Database.Statement<unknown[]> {
    const known = this.#statements.get(text)
    if (known) return known
    const prepared = this.db.prepare<unknown[]>(text)
    this.#statements.set(text, prepared)
    return prepared
  }

  /** Runs `work` in one transaction that holds the write lock from its first moment; all or nothing. */
  write<T>(work: () => T): Promise<T> {
    return this.patiently(() => this.#transaction('begin immediate', work, () => this.#commit()))
  }

  /** Runs `work` on one unchanging view of the database. */
  read<T>(work: () => T): Promise<T> {
    return this.patiently(() => this.#transaction('begin', work, () => this.statement('commit').run()))
  }

  /** Runs `work` again, until the deadline, as long as the lock is somebody else's. */
  async patiently<T>(work: () => T): Promise<T> {
    const { label, deadlineMs, random } = this.#options
    const since = systemClock.monotonic()
    for (;;) {
      if (!this.db.open) throw storeClosed(label)
      try {
        this.#synchronise()
        return work()
      } catch (error) {
        if (!isBusy(error)) throw toStoreError(error, label)
        const waitedMs = systemClock.monotonic() - since
        if (waitedMs >= deadlineMs) throw storeBusy(label, waitedMs, error)
      }
      await wait(this.#role.pauseMs(random()))
    }
  }

  #synchronise(): void {
    const { durability } = this.#role
    if (this.#durability === durability) return
    if (this.#durability === undefined) this.db.pragma(`wal_autocheckpoint = ${checkpointPages}`)
    this.db.pragma(`synchronous = ${durability}`)
    this.#durability = durability
  }

  #transaction<T>(begin: string, work: () => T, end: () => void): T {
    this.statement(begin).run()
    try {
      const result = work()
      end()
      return result
    } catch (error) {
      // SQLite itself rolls back after some errors, a full disk among them.
      if (this.db.inTransaction) this.statement('rollback').run()
      throw error
    }
  }

  /** What was only read has no outcome; a change that the disk did not confirm may or may not be there. */
  #commit(): void {
    try {
      this.statement('commit').run()
    } catch (error) {
      throw outcomeUnknown(error, this.#options.label)
    }
    if (++this.#commits % commitsBetweenLooks === 0) this.#cutLog()
  }

  /** Empties a log that has grown too long, where nobody reads from it just now; otherwise another commit will. */
  #cutLog(): void {
    try {
      const { size } = statSync(`${this.#options.path}-wal`)
      if (size >= longestLogBytes) this.db.pragma('wal_checkpoint(truncate)')
    } catch {
      // The commit stands; that the disk refuses to shrink its log, the next one will tell.
    }
  }

  close(): void {
    this.db.close()
  }
}

function openDatabase(options: ConnectionOptions, driverOptions: Database.Options): Database.Database {
  refuseUnusable(options.path, options.label)
  try {
    return new Database(options.path, { ...driverOptions, timeout: 0 })
  } catch (error) {
    throw isBindingMissing(error) ? bindingMissing(error) : toStoreError(error, options.label)
  }
}

function isBindingMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'MODULE_NOT_FOUND' || code === 'ERR_DLOPEN_FAILED'
}

function bindingMissing(cause: unknown): KhepriError {
  return new KhepriError('BINDING_MISSING', 'the native part of better-sqlite3 cannot be loaded', {
    fix: 'npm rebuild better-sqlite3',
    cause,
  })
}
