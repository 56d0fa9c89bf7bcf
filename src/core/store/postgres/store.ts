import type { RunInside } from '../../callers-transaction.ts'
import { systemClock } from '../../clock.ts'
import { requireCurrent } from '../migrator.ts'
import type { StoreOptions } from '../options.ts'
import { RecoveryPass } from '../recovery.ts'
import type {
  Beat,
  BeatAnswer,
  BeforeFreeing,
  Enqueued,
  Exchanged,
  Filter,
  JobId,
  Look,
  NewJob,
  Observation,
  Recovery,
  Round,
  Sight,
  Store,
  WorkerId,
  WorkerProfile,
} from '../store.ts'
import { appliedMigrations } from './applied.ts'
import type { Row } from './connection.ts'
import { type Call, Connections } from './connections.ts'
import { Continuations } from './continuations.ts'
import { Enqueuing } from './enqueuing.ts'
import { relations } from './fragments.ts'
import { Listener } from './listener.ts'
import { lookValues, sightOf } from './looking.ts'
import { type Mark, Marks, mayPassMarks } from './marks.ts'
import { PostgresRecovering } from './recovering.ts'
import type { Scope } from './reserving.ts'
import { answerOf, filterValues, isFull, needsTwoSteps, roundValues, scopeOf } from './round.ts'
import { bigints } from './statement.ts'
import { type Statements, statementsFor } from './statements.ts'

const exchanging: Call = { doing: 'settle and reserve jobs', kind: 'writing' }
const beating: Call = { doing: 'write a beat', kind: 'repeatable' }
const seeing: Call = { doing: 'look around', kind: 'reading' }
const looking: Call = { doing: 'look for the next job', kind: 'reading' }
const opening: Call = { doing: 'read its schema', kind: 'reading' }

/**
 * Opens the hot side of a Postgres database.
 *
 * Throws STORE_UNREACHABLE or STORE_DENIED where it cannot log in, and SCHEMA_MISSING, SCHEMA_BEHIND or SCHEMA_AHEAD
 * unless the database is migrated as this khepri needs it.
 */
export async function openPostgresStore(url: string, options: StoreOptions): Promise<Store> {
  return new PostgresStore(await openConnections(url, options), options)
}

/** Connects to a database whose schema is what this khepri needs, or throws why it cannot. */
export async function openConnections(url: string, options: StoreOptions): Promise<Connections> {
  const connections = new Connections(url, options)
  try {
    const run = (...[statement, values]: Parameters<Parameters<typeof appliedMigrations>[0]>): Promise<Row[]> =>
      connections.run(statement, values, opening)
    requireCurrent('postgres', await appliedMigrations(run, options), options.label)
    return connections
  } catch (error) {
    await connections.close()
    throw error
  }
}

class PostgresStore implements Store {
  /** While the server works on one round the worker prepares the next. */
  readonly flights = 2
  readonly #connections: Connections
  readonly #options: StoreOptions
  readonly #statements: Statements
  readonly #enqueuing: Enqueuing
  readonly #recovery: RecoveryPass
  readonly #marks = new Marks(systemClock)
  readonly #continuations: Continuations
  readonly #listeners = new Set<Listener>()

  constructor(connections: Connections, options: StoreOptions) {
    this.#connections = connections
    this.#options = options
    this.#statements = statementsFor(relations(options.names, options.schema))
    this.#enqueuing = new Enqueuing(connections, this.#statements, options.label)
    const now = (): number | null => this.#now
    this.#continuations = new Continuations(connections, this.#statements, now)
    this.#recovery = new RecoveryPass(
      new PostgresRecovering(connections, this.#statements, { continuations: this.#continuations, now }),
    )
  }

  /** The moment of the clock that this store was opened with; null: the server's own. */
  get #now(): number | null {
    return this.#options.clock?.now() ?? null
  }

  async enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    const enqueued = await this.#enqueuing.enqueue(jobs, this.#now)
    this.#marks.added(jobs)
    return enqueued
  }

  enlist(run: RunInside, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    return this.#enqueuing.enlist(run, jobs, this.#now)
  }

  async exchange(round: Round): Promise<Exchanged> {
    if (mayPassMarks(round)) this.#marks.forget()
    const { reserve } = round
    const marks = reserve && this.#marks.for(reserve)
    const sentAt = systemClock.monotonic()
    const rows = await this.#rowsOf(round, marks)
    await this.#releaseChildren(rows)
    const answer = answerOf(round, rows)
    if (reserve === null) return answer
    const marked = marks !== null
    this.#marks.found(reserve, answer.reserved, { marked, ms: systemClock.monotonic() - sentAt })
    return marked && answer.reserved.length < reserve.limit ? { ...answer, more: true } : answer
  }

  /** What was not written may be free again, before the marks. */
  #rowsOf(round: Round, marks: readonly Mark[] | null): Promise<readonly Row[]> {
    const rows = needsTwoSteps(round) ? this.#exchangeInSteps(round, marks) : this.#exchangeAtOnce(round, marks)
    return rows.catch((error: unknown) => {
      this.#marks.forget()
      throw error
    })
  }

  #exchangeAtOnce(round: Round, marks: readonly Mark[] | null): Promise<readonly Row[]> {
    return this.#connections.run(this.#statementFor(round, marks), this.#valuesOf(round, marks), exchanging)
  }

  /** The round is committed: what goes wrong here is left to whoever recovers next. */
  async #releaseChildren(rows: readonly Row[]): Promise<void> {
    const children = rows.filter(({ kind }) => kind === 'child').map(({ id }) => id as JobId)
    if (children.length === 0) return
    await this.#continuations.release(children).catch(() => {})
    this.#marks.forget()
  }

  /** The same order of events as in one statement, but what the first step makes free the last one may reserve. */
  #exchangeInSteps(round: Round, marks: readonly Mark[] | null): Promise<readonly Row[]> {
    const first: Round = { ...round, start: [], disown: [], reserve: null }
    const last: Round = { ...round, settle: [], enqueue: [], disown: [] }
    return this.#connections.transaction(exchanging, async (transaction) => {
      const settled = await transaction.run(this.#statementFor(first, null), this.#valuesOf(first, null))
      if (round.disown.length > 0)
        await transaction.run(this.#statements.disown, { worker: round.worker, batches: bigints(round.disown) })
      const reserved = await transaction.run(this.#statementFor(last, marks), this.#valuesOf(last, marks))
      return [...settled, ...reserved]
    })
  }

  #statementFor(round: Round, marks: readonly Mark[] | null) {
    const scope: Scope = round.reserve === null ? 'strict' : scopeOf(round.reserve)
    const size = isFull(round) ? 'full' : 'lean'
    return this.#statements[marks === null ? size : (`${size}FromMarks` as const)][scope]
  }

  #valuesOf(round: Round, marks: readonly Mark[] | null) {
    return { now: this.#now, ...roundValues(round, marks) }
  }

  async nextDue(filter: Filter): Promise<number | null> {
    const statement = this.#statements.nextDue[scopeOf(filter)]
    const [row] = await this.#connections.run(statement, { now: this.#now, ...filterValues(filter) }, looking)
    return (row?.ms as number | null | undefined) ?? null
  }

  async beat(beat: Beat): Promise<BeatAnswer> {
    if (beat.kind === 'joining') return this.#join(beat.worker, beat.profile)
    const { worker, kind } = beat
    const rows =
      kind === 'leaving'
        ? await this.#connections.run(this.#statements.leave, { worker }, beating)
        : await this.#connections.run(this.#statements.beat, { now: this.#now, worker, state: kind }, beating)
    return { known: rows.length > 0 }
  }

  async #join(worker: WorkerId, profile: WorkerProfile): Promise<BeatAnswer> {
    await this.#connections.run(this.#statements.join, { now: this.#now, worker, ...profile }, beating)
    return { known: true }
  }

  async look(look: Look): Promise<Sight> {
    const statement = this.#statements.look[scopeOf(look.filter)]
    const [row] = await this.#connections.run(statement, { now: this.#now, ...lookValues(look) }, seeing)
    return sightOf(row)
  }

  async recover(observation: Observation, beforeFreeing?: BeforeFreeing): Promise<Recovery> {
    const recovery = await this.#recovery.run(observation, beforeFreeing)
    if (recovery.freed > 0 || recovery.released > 0) this.#marks.forget()
    return recovery
  }

  /** A pooler that shares sessions loses what a session listens for: there nobody listens, and everybody polls. */
  async listen(onWake: () => void): Promise<() => Promise<void>> {
    if (!this.#options.prepare) return async () => {}
    const { channel } = relations(this.#options.names, this.#options.schema)
    const wake = (): void => {
      this.#marks.forget()
      onWake()
    }
    const listener = new Listener((hooks) => this.#connections.openSession(hooks), channel, wake)
    this.#listeners.add(listener)
    return async () => {
      this.#listeners.delete(listener)
      await listener.close()
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#listeners].map((listener) => listener.close()))
    await this.#connections.close()
  }
}
