import { setImmediate } from 'node:timers/promises'
import type { TableNames } from '../names.ts'
import type { StoreOptions } from '../options.ts'
import type {
  Definition,
  PlannedRun,
  ScheduleSight,
  ScheduleStore,
  StoredSchedule,
  Taken,
  Taking,
  Waiting,
} from '../schedule-store.ts'
import { keptSlots } from '../schedule-store.ts'
import type { JobId, NewJob } from '../store.ts'
import { type Connection, dispatcherRole } from './connection.ts'
import { insertJobs } from './insertion.ts'
import { openMigrated } from './opening.ts'
import { type Statements, statementsFor } from './statements.ts'
import { now } from './transaction.ts'

/** Opens the schedules of an SQLite file; throws what `openSqliteStore` throws. */
export async function openSqliteSchedules(path: string, options: StoreOptions): Promise<ScheduleStore> {
  return new SqliteSchedules(await openMigrated(path, options, dispatcherRole), options)
}

class SqliteSchedules implements ScheduleStore {
  readonly #connection: Connection
  readonly #options: StoreOptions
  readonly #texts: ReturnType<typeof textsFor>
  readonly #statements: Statements

  constructor(connection: Connection, options: StoreOptions) {
    this.#connection = connection
    this.#options = options
    this.#texts = textsFor(options.names)
    this.#statements = statementsFor(options.names)
  }

  look(): Promise<ScheduleSight> {
    return this.#connection.read(() => {
      const moment = this.#now()
      return {
        now: moment,
        schedules: this.#all<StoredSchedule>(this.#texts.schedules),
        pausedQueues: this.#all<{ name: string }>(this.#texts.pausedQueues, { now: moment }).map(({ name }) => name),
        lastTick: this.#all<{ at: number; ticker: string }>(this.#texts.lastTick)[0] ?? null,
      }
    })
  }

  define(definitions: readonly Definition[], begunAt: number): Promise<void> {
    return this.#connection.write(() => {
      const moment = this.#now()
      for (const definition of definitions) this.#run(this.#texts.define, { ...definition, begunAt, now: moment })
    })
  }

  async take({ name, definition, after, upTo, missed, overlap, runs }: Taking): Promise<readonly Taken[] | null> {
    const answer = await this.#connection.write(() => {
      if (!this.#run(this.#texts.advance, { name, definition, after, upTo, missed })) return null
      const fresh = runs.filter(({ slot }) => this.#run(this.#texts.slot, { name, slot }))
      const taken = fresh.map((run) => this.#takeOne(name, run, overlap))
      if (fresh.length > 0) this.#run(this.#texts.forget, { name, kept: keptSlots })
      return taken
    })
    // The driver is synchronous: without a turn of the event loop a thousand schedules of midnight would keep all else out.
    await setImmediate()
    return answer
  }

  #takeOne(name: string, { slot, job }: PlannedRun, overlap: Taking['overlap']): Taken {
    if (overlap === 'allow' || !this.#isLive(name))
      return { slot, id: this.#enqueue(name, slot, job), fate: 'enqueued' }
    const waits = overlap === 'queue' && this.#run(this.#texts.wait, { name, slot })
    return { slot, id: null, fate: waits ? 'waiting' : 'skipped' }
  }

  takeWaiting({ name, definition, slot, job }: Waiting): Promise<JobId | null> {
    return this.#connection.write(() => {
      if (this.#isLive(name) || !this.#run(this.#texts.stopWaiting, { name, definition, slot })) return null
      return this.#enqueue(name, slot, job)
    })
  }

  #isLive(name: string): boolean {
    return this.#connection.statement(this.#texts.isLive).pluck().get({ name }) === 1
  }

  #enqueue(name: string, slot: number, job: NewJob): JobId {
    const id = this.#insert(name, job)
    this.#run(this.#texts.ran, { name, slot, id })
    return id
  }

  #insert(name: string, job: NewJob): JobId {
    const moment = this.#now()
    const transaction = { connection: this.#connection, statements: this.#statements, now: moment }
    const id = insertJobs(transaction, [job])[0]?.id as JobId
    this.#run(this.#texts.fired, { name, id, now: moment })
    return id
  }

  trigger(name: string, job: NewJob): Promise<JobId> {
    return this.#connection.write(() => {
      this.#run(this.#texts.meet, { name, now: this.#now() })
      return this.#insert(name, job)
    })
  }

  pause(name: string): Promise<void> {
    return this.#connection.write(() => {
      this.#run(this.#texts.meet, { name, now: this.#now() })
      this.#run(this.#texts.pause, { name, now: this.#now() })
    })
  }

  resume(name: string): Promise<boolean> {
    return this.#connection.write(() => this.#run(this.#texts.resume, { name, now: this.#now() }))
  }

  tick(ticker: string): Promise<void> {
    return this.#connection.write(() => void this.#run(this.#texts.tick, { ticker, now: this.#now() }))
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  /** Whether it changed anything. */
  #run(text: string, parameters: object): boolean {
    return this.#connection.statement(text).run(parameters).changes > 0
  }

  #all<Row>(text: string, parameters: object = {}): readonly Row[] {
    return this.#connection.statement(text).all(parameters) as Row[]
  }

  #now(): number {
    return now(this.#options.clock)
  }
}

function textsFor({ jobs, queues, schedules, slots, ticks }: TableNames) {
  const ours = 'name = :name and definition = :definition and paused_at is null'
  return {
    schedules: `select name, definition, cadence, defined_at as "definedAt", last_slot as "lastSlot", missed,
  waiting_slot as "waitingSlot", paused_at as "pausedAt", last_job as "lastJob", fired_at as "firedAt"
from "${schedules}" order by name`,
    pausedQueues: `select name from "${queues}" where paused_until is null or paused_until > :now`,
    lastTick: `select ticked_at as "at", ticker from "${ticks}"`,
    /** Without a row there is nothing older either. */
    define: `insert into "${schedules}" (name, definition, cadence, defined_at, last_slot)
values (:name, :definition, :cadence, :begunAt, :now)
on conflict (name) do update set definition = excluded.definition, cadence = excluded.cadence,
  defined_at = excluded.defined_at,
  last_slot = case when cadence = excluded.cadence then last_slot else excluded.last_slot end,
  missed = case when cadence = excluded.cadence then missed else 0 end,
  waiting_slot = case when cadence = excluded.cadence then waiting_slot end
where defined_at < excluded.defined_at`,
    meet: `insert into "${schedules}" (name, definition, cadence, defined_at, last_slot)
values (:name, '', '', 0, :now) on conflict (name) do nothing`,
    advance: `update "${schedules}" set last_slot = :upTo, missed = :missed where ${ours} and last_slot = :after`,
    slot: `insert into "${slots}" (schedule, slot) values (:name, :slot) on conflict do nothing`,
    wait: `update "${schedules}" set waiting_slot = :slot where name = :name and waiting_slot is null`,
    stopWaiting: `update "${schedules}" set waiting_slot = null, missed = 0 where ${ours} and waiting_slot = :slot`,
    isLive: `select exists (select 1 from "${jobs}" where id = (select last_job from "${schedules}" where name = :name))
  or exists (select 1 from "${jobs}" where id in (select job_id from "${slots}" where schedule = :name))`,
    ran: `insert into "${slots}" (schedule, slot, job_id) values (:name, :slot, :id)
on conflict (schedule, slot) do update set job_id = excluded.job_id`,
    fired: `update "${schedules}" set last_job = :id, fired_at = :now where name = :name`,
    forget: `delete from "${slots}" where schedule = :name
and slot <= (select slot from "${slots}" where schedule = :name order by slot desc limit 1 offset :kept)`,
    pause: `update "${schedules}" set paused_at = :now where name = :name and paused_at is null`,
    resume: `update "${schedules}" set paused_at = null, last_slot = :now, missed = 0, waiting_slot = null
where name = :name and paused_at is not null`,
    tick: `insert into "${ticks}" (id, ticked_at, ticker) values (1, :now, :ticker)
on conflict (id) do update set ticked_at = excluded.ticked_at, ticker = excluded.ticker`,
  }
}
