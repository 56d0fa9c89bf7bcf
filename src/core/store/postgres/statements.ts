import { continuationStatements } from './continuations.ts'
import { exchange } from './exchange.ts'
import { free, holders, insertJobs, momentInside, now, nowInside, type Relations, rung } from './fragments.ts'
import { look } from './looking.ts'
import { abandoned, adopt, chores, endAbandoned, forgetDead, freeDead, heldByDead, judge } from './recovering.ts'
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

/** Builds the statements of one installation; each text is always the same, so that the server prepares it once. */
export function statementsFor(tables: Relations) {
  return {
    ...continuationStatements(tables),
    enqueue: statement(enqueue(tables, 'ours')),
    /** The same in a transaction of the caller's. */
    enqueueInside: statement(enqueue(tables, 'inside')),
    holders: statement(holders(tables.jobs)),
    replace: statement(replace(tables, 'ours')),
    replaceInside: statement(replace(tables, 'inside')),
    /** Completions, starts and a reservation. */
    lean: byScope((scope) => statement(exchange(tables, scope, 'lean'))),
    /** The same with a reservation that starts from marks. */
    leanFromMarks: byScope((scope) => statement(exchange(tables, scope, 'lean', 'marks'))),
    /** All of that, and every other ending, and follow-ups. */
    full: byScope((scope) => statement(exchange(tables, scope, 'full'))),
    fullFromMarks: byScope((scope) => statement(exchange(tables, scope, 'full', 'marks'))),
    disown: statement(disown(tables)),
    nextDue: byScope((scope) => statement(nextDue(tables, scope))),
    join: statement(join(tables)),
    beat: statement(
      `update ${tables.workers} set beat_at = ${now}, state = :state::text
       where id = :worker::bigint and dead_at is null returning id`,
    ),
    leave: statement(leave(tables)),
    look: byScope((scope) => statement(look(tables, scope))),
    chores: statement(chores(tables)),
    judge: statement(judge(tables)),
    dead: statement(`select w.id from ${tables.workers} w where w.dead_at is not null`),
    heldByDead: statement(heldByDead(tables)),
    freeDead: statement(freeDead(tables)),
    abandoned: statement(abandoned(tables)),
    endAbandoned: statement(endAbandoned(tables)),
    forgetDead: statement(forgetDead(tables)),
    adopt: statement(adopt(tables)),
  }
}

/** The prepared texts of one installation. */
export type Statements = ReturnType<typeof statementsFor>

function byScope(build: (scope: Scope) => Statement): Readonly<Record<Scope, Statement>> {
  return { strict: build('strict'), merged: build('merged'), all: build('all') }
}

/** The live job under a key becomes another one, unless it is held, or a run of it has counted. */
function replace(tables: Relations, transaction: 'ours' | 'inside'): string {
  const isInside = transaction === 'inside'
  const at = isInside ? nowInside : now
  return `with ${isInside ? `${momentInside}, ` : ''}replaced as (update ${tables.jobs} j set job = :job::text,
    queue = :queue::text, priority = :priority::bigint, version = :version::bigint, envelope = :envelope::text,
    available_at = coalesce(:moment::bigint, ${at} + :delay::bigint)
  where j.unique_key = :key::text and j.worker is null and j.failures = 0 and j.crashes = 0 and j.suspect <> 1
    and j.cancelled_at is null returning j.id),
${rung(tables, 'exists (select from replaced)')}
select r.id from replaced r left join rung on true`
}

function enqueue(tables: Relations, transaction: 'ours' | 'inside'): string {
  const { jobs, jobIds } = tables
  const isInside = transaction === 'inside'
  return `with ${isInside ? `${momentInside}, ` : ''}asked as materialized (
  select nextval(${jobIds}) as id, a.* from (
    select * from unnest(:queues::text[], :priorities::bigint[], :delays::bigint[], :moments::bigint[], :jobs::text[],
      :keys::text[], :versions::bigint[], :envelopes::text[])
      with ordinality as u(queue, priority, delay, moment, job, unique_key, version, envelope, place)
    order by u.place) a
), added as (${insertJobs(jobs, 'asked a order by a.place', isInside ? nowInside : now)}),
${rung(tables, 'exists (select from added)')}
select a.place, a.id, added.id is not null as added from asked a left join added on added.id = a.id left join rung on true`
}

function disown({ jobs }: Relations): string {
  return `update ${jobs} j set ${free} where j.id = any(array(
  select h.id from ${jobs} h where h.worker = :worker::bigint and h.batch = any(:batches::bigint[])
  order by h.id for update))`
}

function join({ workers }: Relations): string {
  const profile = ['name', 'version', 'host', 'boot_id', 'pid_namespace', 'pid', 'pid_start', 'queues', 'concurrency']
  const columns = [
    ...profile,
    'lease_ms',
    'state',
    'started_at',
    'beat_at',
    'dead_at',
    'verdict',
    'blamed',
    'restart_at',
  ]
  return `insert into ${workers} (id, ${columns.join(', ')})
values (:worker::bigint, :name::text, :version::text, :host::text, :bootId::text, :pidNamespace::text, :pid::bigint,
  :pidStart::text, :queues::text, :concurrency::bigint, :leaseMs::bigint, 'working', ${now}, ${now}, null, null, null, null)
on conflict (id) do update set ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`
}

function leave({ jobs, workers }: Relations): string {
  return `with freed as (update ${jobs} j set ${free} where j.id = any(array(
  select h.id from ${jobs} h where h.worker = :worker::bigint order by h.id for update))),
gone as (delete from ${workers} w where w.id = :worker::bigint returning w.id, w.dead_at)
select g.id from gone g where g.dead_at is null`
}
