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
import type { Call, Connections, Transaction, Values } from './connections.ts'
import { Enqueuing } from './enqueuing.ts'
import { now, type Relations, relations } from './fragments.ts'
import { statement, texts } from './statement.ts'
import { statementsFor } from './statements.ts'
import { openConnections } from './store.ts'

const looking: Call = { doing: 'read its schedules', kind: 'reading' }
/** Whatever moves a schedule says from where, so that a second time finds nothing to move. */
const moving: Call = { doing: 'take slots of schedules', kind: 'repeatable' }
const marking: Call = { doing: 'write down its schedules', kind: 'repeatable' }
/** Would run the job twice. */
const triggering: Call = { doing: 'enqueue a run of a schedule', kind: 'writing' }

/** Opens the schedules of a Postgres database; throws what `openPostgresStore` throws. */
export async function openPostgresSchedules(url: string, options: StoreOptions): Promise<ScheduleStore> {
  return new PostgresSchedules(await openConnections(url, options), options)
}

class PostgresSchedules implements ScheduleStore {
  readonly #connections: Connections
  readonly #options: StoreOptions
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #enqueuing: Enqueuing

  constructor(connections: Connections, options: StoreOptions) {
    const tables = relations(options.names, options.schema)
    this.#connections = connections
    this.#options = options
    this.#statements = statementsOf(tables)
    this.#enqueuing = new Enqueuing(connections, statementsFor(tables), options.label)
  }

  async look(): Promise<ScheduleSight> {
    const [row] = await this.#connections.run(this.#statements.look, this.#values({}), looking)
    const { moment, schedules, paused, tick } = row as Record<string, unknown>
    return {
      now: moment as number,
      schedules: JSON.parse(schedules as string) as StoredSchedule[],
      pausedQueues: JSON.parse(paused as string) as string[],
      lastTick: tick === null ? null : (JSON.parse(tick as string) as ScheduleSight['lastTick']),
    }
  }

  async define(definitions: readonly Definition[], begunAt: number): Promise<void> {
    // In the order of their names: two that define at once then wait for each other instead of locking each other out.
    const sorted = definitions.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const columns = {
      names: texts(sorted.map(({ name }) => name)),
      definitions: texts(sorted.map(({ definition }) => definition)),
      cadences: texts(sorted.map(({ cadence }) => cadence)),
    }
    await this.#connections.run(this.#statements.define, this.#values({ ...columns, begunAt }), marking)
  }

  take({ name, definition, after, upTo, missed, overlap, runs }: Taking): Promise<readonly Taken[] | null> {
    return this.#connections.transaction(moving, async (transaction) => {
      if (!(await this.#did(transaction, 'advance', { name, definition, after, upTo, missed }))) return null
      const taken: Taken[] = []
      for (const run of runs)
        if (await this.#did(transaction, 'slot', { name, slot: run.slot }))
          taken.push(await this.#takeOne(transaction, name, { ...run, overlap }))
      if (taken.length > 0) await transaction.run(this.#statements.forget, { name, kept: keptSlots })
      return taken
    })
  }

  async #takeOne(
    transaction: Transaction,
    name: string,
    { slot, job, overlap }: PlannedRun & Pick<Taking, 'overlap'>,
  ): Promise<Taken> {
    if (overlap === 'allow' || !(await this.#did(transaction, 'live', { name })))
      return { slot, id: await this.#enqueue(transaction, name, { slot, job }), fate: 'enqueued' }
    const waits = overlap === 'queue' && (await this.#did(transaction, 'wait', { name, slot }))
    return { slot, id: null, fate: waits ? 'waiting' : 'skipped' }
  }

  takeWaiting({ name, definition, slot, job }: Waiting): Promise<JobId | null> {
    return this.#connections.transaction(moving, async (transaction) => {
      if (await this.#did(transaction, 'live', { name })) return null
      if (!(await this.#did(transaction, 'stopWaiting', { name, definition, slot }))) return null
      return this.#enqueue(transaction, name, { slot, job })
    })
  }

  async #enqueue(transaction: Transaction, name: string, { slot, job }: PlannedRun): Promise<JobId> {
    const id = await this.#insert(transaction, name, job)
    await transaction.run(this.#statements.ran, { name, slot, id })
    return id
  }

  async #insert(transaction: Transaction, name: string, job: NewJob): Promise<JobId> {
    const [enqueued] = await this.#enqueuing.within(transaction, [job], this.#now)
    const id = enqueued?.id as JobId
    await transaction.run(this.#statements.fired, this.#values({ name, id }))
    return id
  }

  trigger(name: string, job: NewJob): Promise<JobId> {
    return this.#connections.transaction(triggering, async (transaction) => {
      await transaction.run(this.#statements.meet, this.#values({ name }))
      return this.#insert(transaction, name, job)
    })
  }

  async pause(name: string): Promise<void> {
    await this.#connections.transaction(marking, async (transaction) => {
      await transaction.run(this.#statements.meet, this.#values({ name }))
      await transaction.run(this.#statements.pause, this.#values({ name }))
    })
  }

  async resume(name: string): Promise<boolean> {
    return (await this.#connections.run(this.#statements.resume, this.#values({ name }), marking)).length > 0
  }

  async tick(ticker: string): Promise<void> {
    await this.#connections.run(this.#statements.tick, this.#values({ ticker }), marking)
  }

  close(): Promise<void> {
    return this.#connections.close()
  }

  /** Whether a statement changed or found anything. */
  async #did(
    transaction: Transaction,
    which: 'advance' | 'slot' | 'live' | 'wait' | 'stopWaiting',
    values: Values,
  ): Promise<boolean> {
    return (await transaction.run(this.#statements[which], values)).length > 0
  }

  #values(values: Values): Values {
    return { ...values, now: this.#now }
  }

  get #now(): number | null {
    return this.#options.clock?.now() ?? null
  }
}

function statementsOf(tables: Relations) {
  const { schedules, slots, ticks } = tables
  const ours = 's.name = :name::text and s.definition = :definition::text and s.paused_at is null'
  const meet = `insert into ${schedules} (name, definition, cadence, defined_at, last_slot)`
  return {
    look: statement(look(tables)),
    define: statement(`${meet.replace('(name', 'as s (name')}
select d.name, d.definition, d.cadence, :begunAt::bigint, ${now}
from unnest(:names::text[], :definitions::text[], :cadences::text[]) with ordinality as d (name, definition, cadence, place)
order by d.place
on conflict (name) do update set definition = excluded.definition, cadence = excluded.cadence,
  defined_at = excluded.defined_at,
  last_slot = case when s.cadence = excluded.cadence then s.last_slot else excluded.last_slot end,
  missed = case when s.cadence = excluded.cadence then s.missed else 0 end,
  waiting_slot = case when s.cadence = excluded.cadence then s.waiting_slot end
where s.defined_at < excluded.defined_at`),
    meet: statement(`${meet} values (:name::text, '', '', 0, ${now}) on conflict (name) do nothing`),
    advance: statement(`update ${schedules} s set last_slot = :upTo::bigint, missed = :missed::bigint
where ${ours} and s.last_slot = :after::bigint returning s.name`),
    slot: statement(`insert into ${slots} (schedule, slot) values (:name::text, :slot::bigint)
on conflict do nothing returning slot`),
    wait: statement(`update ${schedules} s set waiting_slot = :slot::bigint
where s.name = :name::text and s.waiting_slot is null returning s.name`),
    stopWaiting: statement(`update ${schedules} s set waiting_slot = null, missed = 0
where ${ours} and s.waiting_slot = :slot::bigint returning s.name`),
    live: statement(live(tables)),
    ran: statement(`insert into ${slots} (schedule, slot, job_id) values (:name::text, :slot::bigint, :id::bigint)
on conflict (schedule, slot) do update set job_id = excluded.job_id`),
    fired: statement(`update ${schedules} set last_job = :id::bigint, fired_at = ${now} where name = :name::text`),
    forget: statement(`delete from ${slots} x where x.schedule = :name::text and x.slot <= (
  select o.slot from ${slots} o where o.schedule = :name::text order by o.slot desc limit 1 offset :kept::bigint)`),
    pause: statement(`update ${schedules} set paused_at = ${now} where name = :name::text and paused_at is null`),
    resume: statement(`update ${schedules} set paused_at = null, last_slot = ${now}, missed = 0, waiting_slot = null
where name = :name::text and paused_at is not null returning name`),
    tick: statement(`insert into ${ticks} (id, ticked_at, ticker) values (1, ${now}, :ticker::text)
on conflict (id) do update set ticked_at = excluded.ticked_at, ticker = excluded.ticker`),
  }
}

/** One answer of one row, however many schedules there are. */
function look({ schedules, queues, ticks }: Relations): string {
  return `select ${now} as moment,
  (select coalesce(json_agg(json_build_object('name', s.name, 'definition', s.definition, 'cadence', s.cadence,
    'definedAt', s.defined_at, 'lastSlot', s.last_slot, 'missed', s.missed, 'waitingSlot', s.waiting_slot,
    'pausedAt', s.paused_at, 'lastJob', s.last_job, 'firedAt', s.fired_at) order by s.name collate "C"), '[]')::text
    from ${schedules} s) as schedules,
  (select coalesce(json_agg(q.name), '[]')::text from ${queues} q
    where q.paused_until is null or q.paused_until > ${now}) as paused,
  (select json_build_object('at', t.ticked_at, 'ticker', t.ticker)::text from ${ticks} t) as tick`
}

/** Looked up by id: a join may become a scan of all jobs. */
function live({ jobs, schedules, slots }: Relations): string {
  return `select j.id from ${jobs} j where j.id = any(
  array(select s.last_job from ${schedules} s where s.name = :name::text and s.last_job is not null)
  || array(select x.job_id from ${slots} x where x.schedule = :name::text and x.job_id is not null)) limit 1`
}
