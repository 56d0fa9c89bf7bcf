import { defaults } from '../../defaults.ts'
import type { TableNames } from '../names.ts'
import { survivor } from '../recovery.ts'
import type { Filter } from '../store.ts'
import { continuationTexts } from './continuations.ts'

/** How many jobs of dead workers, or cancelled ones, are moved in one transaction. */
const movedAtOnce = 500

const free = 'worker = null, batch = null, started_at = null'
const listed = (parameter: string) => `in (select value from json_each(:${parameter}))`

/**
 * The text of every statement on the hot side of one installation, prepared once by a connection.
 *
 * Lists go in as one JSON parameter, so that one text serves every length. Settling statements take ids that `held` has
 * just confirmed in the same transaction: the write lock, taken at its beginning, is what makes this a compare-and-swap.
 */
export function statementsFor(names: TableNames) {
  const { jobs, failed, ended, attempts, workers, queues } = names
  const held = `"${jobs}" j where j.worker = "${workers}".id`
  const isBlamed = `json_extract(w.blamed, '$."' || "${jobs}".id || '"') is "${jobs}".fence`
  return {
    ...continuationTexts(names),

    /** Which of these jobs the worker holds, under which fence, and whether somebody has cancelled them. */
    held: `select id, fence, cancelled_at is not null as "isCancelled" from "${jobs}" where id ${listed('ids')} and worker = :worker`,

    /** Completes what the worker holds under these fences, {"id": fence}, in one step; answers which. */
    complete: `delete from "${jobs}" where id in (select j.id from json_each(:refs) e
        cross join "${jobs}" j on j.id = cast(e.key as integer) and j.fence = e.value and j.worker = :worker)
      returning id`,

    liveKeys: `select unique_key as "key", id from "${jobs}" where unique_key ${listed('keys')}`,

    insert: (rows: number) =>
      `insert into "${jobs}" (queue, priority, available_at, job, unique_key, version, enqueued_at, envelope)
       values ${Array(rows).fill('(?, ?, ?, ?, ?, ?, ?, ?)').join(', ')}`,

    /** The live job under a key becomes another one, unless it is held, or a run of it has counted. */
    replace: `update "${jobs}" set job = :job, queue = :queue, priority = :priority, available_at = :availableAt,
        version = :version, envelope = :envelope
      where unique_key = :uniqueKey and worker is null and failures = 0 and crashes = 0 and suspect <> 1
        and cancelled_at is null`,

    /** cost: 1 where the attempt counts as a failure. */
    archive: `insert into "${ended}" (id, state, fence, queue, priority, job, failures, version, enqueued_at, ended_at, envelope)
      select id, :state, fence, queue, priority, job, failures + :cost, version, enqueued_at, :now, envelope
      from "${jobs}" where id ${listed('ids')}`,

    remove: `delete from "${jobs}" where id ${listed('ids')}`,

    forget: `delete from "${attempts}" where job_id ${listed('ids')}`,

    /** moments: {"id": availableAt, or null to keep it and what it is suspected of}. */
    giveBack: `update "${jobs}" set ${free}, failures = failures + :cost, available_at = coalesce(e.value, available_at),
        suspect = case when e.value is null then suspect else 0 end
      from json_each(:moments) e where "${jobs}".id = cast(e.key as integer)`,

    fail: `insert into "${failed}" (id, fence, queue, priority, job, failures, crashes, unique_key, version, enqueued_at,
        failed_at, reason, error_type, error, envelope)
      select j.id, j.fence, j.queue, j.priority, j.job, j.failures + 1, j.crashes, j.unique_key, j.version, j.enqueued_at,
        :now, e.value ->> 'reason', e.value ->> 'errorType', e.value ->> 'message', j.envelope
      from json_each(:failures) e cross join "${jobs}" j on j.id = e.value ->> 'id'`,

    record: `insert into "${attempts}" (job_id, fence, attempt, worker, started_at, ended_at, error_type, message, stack,
        output)
      values (:id, :fence, :attempt, :worker, :startedAt, :endedAt, :errorType, :message, :stack, :output)`,

    /** Keeps the first and the last attempts of a job. */
    trim: `delete from "${attempts}" where job_id = :id and id in (
      select id from "${attempts}" where job_id = :id order by id limit -1 offset ${defaults.keptFirstAttempts})
      and id not in (select id from "${attempts}" where job_id = :id order by id desc limit ${defaults.keptLastAttempts})`,

    disown: `update "${jobs}" set ${free} where worker = :worker and batch ${listed('batches')}`,

    start: `update "${jobs}" set started_at = coalesce(started_at, :now) where id ${listed('ids')}`,

    take: `update "${jobs}" set worker = :worker, batch = :batch, fence = fence + 1, started_at = :startedAt
      where id ${listed('ids')}`,

    /** Every queue with a free job, by jumping from one to the next in the index. */
    freeQueues: `with recursive found (name) as (
        select min(queue) from "${jobs}" where worker is null
        union all
        select (select min(queue) from "${jobs}" where worker is null and queue > name) from found where name is not null)
      select name from found where name is not null`,

    pausedQueues: `select name from "${queues}" where paused_until is null or paused_until > :now`,

    nextLevel: `select min(priority) from "${jobs}" where worker is null and queue = :queue and priority > :above`,

    /** The due jobs of one level, in order. */
    level: (filter: Filter) =>
      `select ${reservation} from "${jobs}" where queue = :queue and priority = :priority and available_at <= :due
       and ${takeable(filter)} order by available_at, id limit :limit`,

    /** The due jobs of every level beyond one, in order; a scan. */
    beyond: (filter: Filter) =>
      `select ${reservation} from "${jobs}" where queue = :queue and priority > :priority and available_at <= :due
       and ${takeable(filter)} order by priority, available_at, id limit :limit`,

    envelope: `select envelope from "${jobs}" where id = :id`,

    levelDue: (filter: Filter) =>
      `select available_at from "${jobs}" where queue = :queue and priority = :priority
       and ${takeable(filter)} order by available_at limit 1`,

    beyondDue: (filter: Filter) =>
      `select min(available_at) from "${jobs}" where queue = :queue and priority > :priority and ${takeable(filter)}`,

    /** Since when the longest waiting suspect has been due. */
    suspectDue: (filter: Filter) =>
      `select min(available_at) from "${jobs}" where suspect = 1 and ${waiting(filter)} and version <= :maxVersion`,

    /** Whether anything due is only too new. A literal version, for the sake of the index: no envelope is older than 1. */
    newer: (filter: Filter) =>
      `select 1 from "${jobs}" where version > 1 and ${waiting(filter)} and version > :maxVersion limit 1`,

    cancelled: `select id from "${jobs}" where id ${listed('held')} and cancelled_at is not null`,

    known: `select 1 from "${workers}" where id = :worker and dead_at is null`,

    /** Also of a worker that was declared dead: it hears it before it joins anew. */
    restart: `select 1 from "${workers}" where id = :worker and restart_at is not null`,

    neighbours: `select id as worker, boot_id as "bootId", pid_namespace as "pidNamespace", pid, pid_start as "pidStart"
      from "${workers}" where host = :host and dead_at is null and id <> :worker`,

    join: `insert into "${workers}" (id, name, version, host, boot_id, pid_namespace, pid, pid_start, queues, concurrency,
        lease_ms, state, started_at, beat_at)
      values (:worker, :name, :version, :host, :bootId, :pidNamespace, :pid, :pidStart, :queues, :concurrency, :leaseMs,
        'working', :now, :now)
      on conflict (id) do update set name = excluded.name, version = excluded.version, host = excluded.host,
        boot_id = excluded.boot_id, pid_namespace = excluded.pid_namespace, pid = excluded.pid,
        pid_start = excluded.pid_start, queues = excluded.queues, concurrency = excluded.concurrency,
        lease_ms = excluded.lease_ms, state = excluded.state, started_at = excluded.started_at,
        beat_at = excluded.beat_at, dead_at = null, verdict = null, blamed = null,
        restart_at = null`,

    beat: `update "${workers}" set beat_at = :now, state = :state where id = :worker and dead_at is null`,

    /** Answers `dead_at`, or no row where the worker is unknown. */
    leave: `delete from "${workers}" where id = :worker returning dead_at`,

    freeHeld: `update "${jobs}" set ${free} where worker = :worker`,

    /** What there is for recovery to do: a look that takes no lock. */
    chores: `select
      exists (select 1 from "${workers}" where ${dying(names)}) as judge,
      exists (${heldByDead(names)}) as free,
      exists (select 1 from "${jobs}" where ${abandoned}) as end,
      exists (select 1 from "${workers}" where dead_at < :before) as forget`,

    /** Declares workers dead and judges each, once and for all, by what it holds at this moment. */
    judge: `update "${workers}" set dead_at = :now, verdict = case
        when state = 'draining' or id ${listed('rebooted')} then 'free'
        when not exists (select 1 from ${held} and j.started_at is not null) then 'unstarted'
        when (select count(*) from ${held}) = 1 then 'alone'
        else 'company' end,
      blamed = (select json_group_object(cast(j.id as text), j.fence) from ${held})
      where ${dying(names)} returning id`,

    dead: `select id from "${workers}" where dead_at is not null`,

    /** Some of what dead workers hold, those that died long ago and were only frozen among them. */
    heldByDead: `${heldByDead(names)} and j.id > :after order by j.id limit ${movedAtOnce}`,

    /** Only what it held when it was judged pays for a worker's death. */
    freeDead: `update "${jobs}" set ${free}, fence = fence + 1,
        crashes = crashes + (w.verdict = 'alone' and ${isBlamed} and "${jobs}".started_at is not null),
        suspect = case when suspect = 1 or not ${isBlamed} or w.verdict not in ('company', 'unstarted') then suspect
          when "${jobs}".started_at is null then ${survivor} else 1 end
      from "${workers}" w where w.id = "${jobs}".worker and w.dead_at is not null and "${jobs}".id ${listed('ids')}`,

    forgetDead: `delete from "${workers}" where dead_at < :before
      and not exists (select 1 from "${jobs}" j where j.worker = "${workers}".id)`,

    /** Some of the cancelled jobs that nobody holds. */
    abandoned: `select id from "${jobs}" where ${abandoned} and +id > :after order by +id limit ${movedAtOnce}`,

    stillAbandoned: `select id from "${jobs}" where id ${listed('ids')} and ${abandoned}`,
  }
}

export type Statements = ReturnType<typeof statementsFor>

/** The columns of `FoundRow` in selection.ts, in its order. An envelope over :inlineBytes comes by a read of its own. */
const reservation = `id, fence, job, queue, priority, available_at, enqueued_at, failures, crashes, suspect,
  octet_length(envelope), case when octet_length(envelope) <= :inlineBytes then envelope end`

/** Whom an observer knows to be dead. Where it is silent itself, it is the clock that has been set. */
function dying({ workers }: TableNames): string {
  return `dead_at is null and id <> :observer and (id ${listed('gone')} or (:silent = 1 and beat_at + lease_ms < :now
    and not exists (select 1 from "${workers}" o where o.id = :observer and o.beat_at + o.lease_ms < :now)))`
}

/** Cancelled and held by nobody; the comparison makes it a range of the index, which is nearly always empty. */
const abandoned = 'cancelled_at > 0 and worker is null'

function heldByDead({ jobs, workers }: TableNames): string {
  return `select j.id from "${workers}" d cross join "${jobs}" j on j.worker = d.id where d.dead_at is not null`
}

/**
 * The one condition of reserve, nextDue and look, beside the queue and the time: this worker could take this job.
 *
 * Only what the filter uses is in the text, which therefore has a handful of forms.
 */
function takeable(filter: Filter): string {
  return together([...wanted(filter), 'version <= :maxVersion', filter.suspects ? '' : 'suspect <> 1'])
}

/** The same of everything that is due in the queues served, whatever its version, suspects included. */
function waiting(filter: Filter): string {
  return together([
    filter.queues === 'all' ? '' : `queue ${listed('queues')}`,
    'available_at <= :now',
    `queue not ${listed('passed')}`,
    ...wanted(filter),
  ])
}

function wanted({ only, except, exclude }: Filter): readonly string[] {
  return [
    'worker is null',
    // What was written with SQL may have an id that no JavaScript number holds.
    `id <= ${Number.MAX_SAFE_INTEGER}`,
    'cancelled_at is null',
    only === null ? '' : `job ${listed('only')}`,
    except.length === 0 ? '' : `job not ${listed('except')}`,
    exclude.length === 0 ? '' : `id not ${listed('exclude')}`,
  ]
}

function together(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' and ')
}

/** The parameters that `takeable` reads. */
export function filterParameters({ only, except, exclude, maxVersion }: Filter): Record<string, unknown> {
  return {
    maxVersion,
    ...(only === null ? {} : { only: JSON.stringify(only) }),
    ...(except.length === 0 ? {} : { except: JSON.stringify(except) }),
    ...(exclude.length === 0 ? {} : { exclude: JSON.stringify(exclude) }),
  }
}
