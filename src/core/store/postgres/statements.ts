import { exchange } from './exchange.ts'
import { free, holders, insertJobs, now, type Relations, these } from './fragments.ts'
import { nextDue, type Scope } from './reserving.ts'
import { type Statement, statement } from './statement.ts'

/**
 * The text of every statement on the hot side, put together from fragments: what stands in several statements stands
 * here once. Parameters are named (`:worker`); a row list goes in as arrays or as one JSON text.
 *
 * Three rules were learnt by measuring, and a test reads the plans: the worker is compared with IS NOT DISTINCT FROM,
 * since "=" makes the planner walk the index of held rows; rows chosen by another part are named as
 * `= ANY(ARRAY(SELECT …))`, since a join becomes a scan of the whole table; and what has a LIMIT is MATERIALIZED,
 * since it may otherwise run more than once.
 */

/** How many jobs of a dead worker are freed in one transaction. */
export const freedAtOnce = 500

/** A dead worker's row stays so long: what a merely frozen one still commits is found and freed. */
const keepDeadMs = 86_400_000

/** Builds the statements of one installation; each text is always the same, so that the server prepares it once. */
export function statementsFor(tables: Relations) {
  return {
    enqueue: statement(enqueue(tables)),
    holders: statement(holders(tables.jobs)),
    /** Completions, starts and a reservation. */
    lean: byScope((scope) => statement(exchange(tables, scope, 'lean'))),
    /** All of that, and every other ending, and follow-ups. */
    full: byScope((scope) => statement(exchange(tables, scope, 'full'))),
    disown: statement(disown(tables)),
    nextDue: byScope((scope) => statement(nextDue(tables, scope))),
    join: statement(join(tables)),
    beat: statement(
      `update ${tables.workers} set beat_at = ${now}, state = :state::text
       where id = :worker::bigint and dead_at is null returning id`,
    ),
    leave: statement(leave(tables)),
    judge: statement(judge(tables)),
    bury: statement(bury(tables)),
    forgetDead: statement(
      `delete from ${tables.workers} w where w.dead_at < ${now} - ${keepDeadMs}
       and (select count(*) from ${tables.jobs} j where j.worker = w.id) = 0`,
    ),
  }
}

/** The prepared texts of one installation. */
export type Statements = ReturnType<typeof statementsFor>

function byScope(build: (scope: Scope) => Statement): Readonly<Record<Scope, Statement>> {
  return { strict: build('strict'), merged: build('merged'), all: build('all') }
}

function enqueue({ jobs, jobIds }: Relations): string {
  return `with asked as materialized (
  select nextval(${jobIds}) as id, a.* from (
    select * from unnest(:queues::text[], :priorities::bigint[], :delays::bigint[], :moments::bigint[], :jobs::text[],
      :keys::text[], :versions::bigint[], :envelopes::text[])
      with ordinality as u(queue, priority, delay, moment, job, unique_key, version, envelope, place)
    order by u.place) a
), added as (${insertJobs(jobs, 'asked a order by a.place')})
select a.place, a.id, added.id is not null as added from asked a left join added on added.id = a.id`
}

function disown({ jobs }: Relations): string {
  return `update ${jobs} j set ${free} where j.id = any(array(
  select h.id from ${jobs} h where h.worker = :worker::bigint and h.batch = any(:batches::bigint[])
  order by h.id for update))`
}

function join({ workers }: Relations): string {
  const profile = ['name', 'version', 'host', 'boot_id', 'pid_namespace', 'pid', 'pid_start', 'queues', 'concurrency']
  const columns = [...profile, 'lease_ms', 'state', 'started_at', 'beat_at', 'dead_at', 'verdict']
  return `insert into ${workers} (id, ${columns.join(', ')})
values (:worker::bigint, :name::text, :version::text, :host::text, :bootId::text, :pidNamespace::text, :pid::bigint,
  :pidStart::text, :queues::text, :concurrency::bigint, :leaseMs::bigint, 'working', ${now}, ${now}, null, null)
on conflict (id) do update set ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`
}

function leave({ jobs, workers }: Relations): string {
  return `with freed as (update ${jobs} j set ${free} where j.id = any(array(
  select h.id from ${jobs} h where h.worker = :worker::bigint order by h.id for update))),
gone as (delete from ${workers} w where w.id = :worker::bigint returning w.id, w.dead_at)
select g.id from gone g where g.dead_at is null`
}

/** Declares the silent dead and says once how they died; a row that another observer is judging is left to it. */
function judge({ jobs, workers }: Relations): string {
  return `with silent as materialized (
  select w.id, w.state from ${workers} w
  where w.dead_at is null and w.id <> :worker::bigint and w.beat_at + w.lease_ms < ${now}
  order by w.id for update skip locked),
counted as materialized (
  select s.id, s.state, h.held, h.started from silent s,
  lateral (select count(*) as held, count(j.started_at) as started from ${jobs} j where j.worker = s.id) h)
update ${workers} w set dead_at = ${now},
  verdict = case when c.state = 'draining' or c.started = 0 then 'free' when c.held = 1 then 'alone' else 'company' end
from counted c where w.id = c.id and w.dead_at is null returning w.id`
}

/** Frees some of what dead workers hold, in the order of ids and past what anybody else has locked. */
function bury({ jobs, workers }: Relations): string {
  return `with doomed as materialized (
  select j.id, w.verdict from ${workers} w,
  lateral (select j.id from ${jobs} j where j.worker = w.id order by j.id limit ${freedAtOnce} for update skip locked) j
  where w.dead_at is not null limit ${freedAtOnce})
update ${jobs} j set ${free}, fence = j.fence + 1,
  crashes = j.crashes + case when ${these('doomed', ` where p.verdict = 'alone'`)} then 1 else 0 end,
  suspect = case when j.started_at is not null
    and ${these('doomed', ` where p.verdict = 'company'`)} then 1 else j.suspect end
where ${these('doomed')} returning j.id`
}
