import { defaults } from '../../defaults.ts'
import type { Waiting } from '../continuations.ts'
import { type Chores, type RecoverySteps, survivor } from '../recovery.ts'
import type { JobId, Observation, WorkerId } from '../store.ts'
import type { Row } from './connection.ts'
import type { Call, Connections, Values } from './connections.ts'
import type { Continuations } from './continuations.ts'
import { anyParents, archive, free, now, type Relations, rung, these } from './fragments.ts'
import { bigints, type Statement } from './statement.ts'

/** How many jobs of dead workers, or cancelled ones, are moved in one transaction. */
const movedAtOnce = 500

const longDead = `w.dead_at < ${now} - ${defaults.keepDeadMs}`

/** Whom an observer knows to be dead. Where it is silent itself, it is the clock that has been set. */
function dying({ workers }: Relations): string {
  return `w.dead_at is null and w.id <> :observer::bigint
  and (w.id = any(:gone::bigint[]) or (:silent::boolean and w.beat_at + w.lease_ms < ${now}
    and not exists (select from ${workers} o where o.id = :observer::bigint and o.beat_at + o.lease_ms < ${now})))`
}

/**
 * The workers that hold jobs and have no row.
 *
 * From one holder to the next in the index of what is held: asked otherwise, the planner would rather read all jobs.
 */
function orphaned({ jobs, workers }: Relations): string {
  const next = (condition: string): string =>
    `(select j.worker from ${jobs} j where ${condition} order by j.worker limit 1)`
  return `(with recursive holders as (
  ${next('j.worker is not null')}
  union all select ${next('j.worker > h.worker')} from holders h where h.worker is not null)
select h.worker from holders h
  where h.worker is not null and not exists (select from ${workers} w where w.id = h.worker)) orphaned`
}

/** What there is to do. */
export function chores(tables: Relations): string {
  const { jobs, workers, parents } = tables
  return `select
  exists (select from ${workers} w where ${dying(tables)}) as judge,
  exists (select from ${workers} w, lateral (select from ${jobs} j where j.worker = w.id limit 1) j
    where w.dead_at is not null) as free,
  exists (select from ${jobs} j where j.cancelled_at is not null and j.worker is null) as "end",
  exists (select from ${workers} w where ${longDead}) as forget,
  exists (select from ${orphaned(tables)}) as adopt,
  ${anyParents(parents)} as release`
}

/** Declares workers dead and says once how they died; a row that another observer is judging is left to it. */
export function judge(tables: Relations): string {
  const { jobs, workers } = tables
  return `with dying as materialized (
  select w.id, w.state, w.id = any(:rebooted::bigint[]) as rebooted from ${workers} w where ${dying(tables)}
  order by w.id for update skip locked),
counted as materialized (
  select d.id, d.state, d.rebooted, h.held, h.started, h.blamed from dying d, lateral (
    select count(*) as held, count(j.started_at) as started,
      json_object_agg(j.id, j.fence) as blamed
    from ${jobs} j where j.worker = d.id) h)
update ${workers} w set dead_at = ${now}, blamed = c.blamed::text,
  verdict = case when c.state = 'draining' or c.rebooted then 'free' when c.started = 0 then 'unstarted'
    when c.held = 1 then 'alone' else 'company' end
from counted c where w.id = c.id and w.dead_at is null returning w.id`
}

/** Some of what dead workers hold. In two parts: together they could be a walk through all jobs in the order of ids. */
export function heldByDead({ jobs, workers }: Relations): string {
  return `with held as materialized (
  select j.id from ${jobs} j where j.worker = any(array(select w.id from ${workers} w where w.dead_at is not null)))
select h.id from held h where h.id > :after::bigint order by h.id limit ${movedAtOnce}`
}

/**
 * Frees what dead workers hold, in the order of ids and past what anybody else has locked.
 *
 * Only what it held when it was judged pays for a worker's death.
 */
export function freeDead(tables: Relations): string {
  const { jobs, workers } = tables
  return `with doomed as materialized (
  select h.id, w.verdict, h.started_at is not null as started,
    coalesce((w.blamed::json ->> h.id::text)::bigint = h.fence, false) as blamed
  from (select unnest(:ids::bigint[]) as id order by 1) a,
  lateral (select j.id, j.fence, j.worker, j.started_at from ${jobs} j where j.id = a.id and exists (
    select from ${workers} w where w.id = j.worker and w.dead_at is not null) for update skip locked) h
  join ${workers} w on w.id = h.worker),
freed as (update ${jobs} j set ${free}, fence = j.fence + 1,
  crashes = j.crashes + case when ${these('doomed', ` where p.blamed and p.started and p.verdict = 'alone'`)} then 1 else 0 end,
  suspect = case when j.suspect = 1 or ${these('doomed', ` where p.blamed and p.started and p.verdict = 'company'`)} then 1
    when ${these('doomed', ` where p.blamed and not p.started and p.verdict in ('company', 'unstarted')`)} then ${survivor}
    else j.suspect end
where ${these('doomed')} returning j.id),
${rung(tables, 'exists (select from freed)')}
select f.id from freed f left join rung on true`
}

/** Some of the cancelled jobs that nobody holds. */
export function abandoned({ jobs }: Relations): string {
  return `with found as materialized (select j.id from ${jobs} j where j.cancelled_at is not null and j.worker is null)
select f.id from found f where f.id > :after::bigint order by f.id limit ${movedAtOnce}`
}

/** Ends cancelled jobs that nobody holds. */
export function endAbandoned({ jobs, ended }: Relations): string {
  return `with doomed as materialized (
  select j.id from (select unnest(:ids::bigint[]) as id order by 1) a,
  lateral (select j.id from ${jobs} j where j.id = a.id and j.cancelled_at is not null and j.worker is null
    for update skip locked) j),
gone as (delete from ${jobs} j where ${these('doomed')} returning j.*)
${archive(ended, `select g.*, 'cancelled' as state, 0 as cost from gone g`)} returning id`
}

/** Takes away the rows of workers that died long ago and hold nothing. */
export function forgetDead({ jobs, workers }: Relations): string {
  return `delete from ${workers} w where ${longDead}
  and (select count(*) from ${jobs} j where j.worker = w.id) = 0`
}

/** Gives workers without a row one, as draining: nobody knows whether it was the job that ended its worker. */
export function adopt(tables: Relations): string {
  const { workers } = tables
  return `insert into ${workers}
  (id, name, version, host, pid, queues, concurrency, lease_ms, state, started_at, beat_at)
select orphaned.worker, 'unknown', '', '', 0, '', 0, o.lease_ms, 'draining', ${now}, ${now}
from ${orphaned(tables)}, ${workers} o where o.id = :observer::bigint
on conflict (id) do nothing`
}

const recovering: Call = { doing: 'recover jobs', kind: 'repeatable' }
const looking: Call = { doing: 'look for dead workers', kind: 'reading' }

type Texts = Readonly<
  Record<
    'chores' | 'judge' | 'dead' | 'heldByDead' | 'freeDead' | 'abandoned' | 'endAbandoned' | 'forgetDead' | 'adopt',
    Statement
  >
>

/** The steps of recovery in a Postgres database; each statement is its own transaction. */
export class PostgresRecovering implements RecoverySteps {
  readonly #connections: Connections
  readonly #statements: Texts
  readonly #continuations: Continuations
  readonly #now: () => number | null

  constructor(
    connections: Connections,
    statements: Texts,
    { continuations, now }: { readonly continuations: Continuations; readonly now: () => number | null },
  ) {
    this.#connections = connections
    this.#statements = statements
    this.#continuations = continuations
    this.#now = now
  }

  async chores(observation: Observation): Promise<Chores> {
    const [row] = await this.#run(this.#statements.chores, valuesOf(observation), looking)
    return row as unknown as Chores
  }

  async judge(observation: Observation): Promise<readonly WorkerId[]> {
    return idsOf(await this.#run(this.#statements.judge, valuesOf(observation), recovering))
  }

  async dead(): Promise<readonly WorkerId[]> {
    return idsOf(await this.#run(this.#statements.dead, {}, looking))
  }

  async heldByDead(after: JobId): Promise<readonly JobId[]> {
    return idsOf(await this.#run(this.#statements.heldByDead, { after }, looking))
  }

  async free(ids: readonly JobId[]): Promise<number> {
    return (await this.#run(this.#statements.freeDead, { ids: bigints(ids) }, recovering)).length
  }

  async abandoned(after: JobId): Promise<readonly JobId[]> {
    return idsOf(await this.#run(this.#statements.abandoned, { after }, looking))
  }

  async end(ids: readonly JobId[]): Promise<number> {
    return (await this.#run(this.#statements.endAbandoned, { ids: bigints(ids) }, recovering)).length
  }

  async forget(): Promise<void> {
    await this.#run(this.#statements.forgetDead, {}, recovering)
  }

  async adopt(observer: WorkerId): Promise<void> {
    await this.#run(this.#statements.adopt, { observer }, recovering)
  }

  waiting(after: JobId): Promise<Waiting> {
    return this.#continuations.look(after)
  }

  release(ids: readonly JobId[]): Promise<number> {
    return this.#continuations.release(ids)
  }

  /** Columns of Postgres hold what their types say. */
  async malformed(): Promise<readonly JobId[]> {
    return []
  }

  #run(statement: Statement, values: Values, call: Call): Promise<readonly Row[]> {
    return this.#connections.run(statement, { now: this.#now(), ...values }, call)
  }
}

function valuesOf({ observer, gone, rebooted, silent }: Observation): Values {
  return { observer, gone: bigints(gone), rebooted: bigints(rebooted), silent }
}

function idsOf(rows: readonly Row[]): readonly number[] {
  return rows.map(({ id }) => id as number)
}
