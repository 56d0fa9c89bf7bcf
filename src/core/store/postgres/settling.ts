import { defaults } from '../../defaults.ts'
import { archive, free, insertJobs, mine, now, type Relations, these } from './fragments.ts'

/** How attempts end: the parts of an exchange that settle, start and follow up. */

/** `done`: what was completed. A job that was reserved more than once may have a history, which goes with it. */
export function completions({ jobs, attempts }: Relations): string[] {
  return [
    'asked_done as materialized (select * from unnest(:doneIds::bigint[], :doneFences::bigint[]) u(id, fence))',
    `done as (delete from ${jobs} j using asked_done a
  where ${these('asked_done')} and j.id = a.id and j.fence = a.fence and ${mine} returning j.id, j.fence)`,
    `forgotten as (delete from ${attempts} t where t.id = any(array(
  select o.id from done d, lateral (select o.id from ${attempts} o where o.job_id = d.id order by o.job_id, o.id) o
  where d.fence > 1)))`,
  ]
}

export function starts({ jobs }: Relations): string[] {
  return [
    'asked_start as materialized (select * from unnest(:startIds::bigint[], :startFences::bigint[]) u(id, fence))',
    `begun as (update ${jobs} j set started_at = coalesce(j.started_at, ${now}) from asked_start a
  where ${these('asked_start')} and j.id = a.id and j.fence = a.fence and ${mine} returning j.id, j.fence)`,
  ]
}

/**
 * Every ending but a plain completion. `held` locks and confirms, and turns what would be tried again although it was
 * cancelled into a cancellation; what follows touches nothing else.
 */
export function otherEndings({ jobs, failed, ended, attempts }: Relations): string[] {
  const ending = (kind: string): string => these('held', ` where p.kind = '${kind}'`)
  return [
    `asked_end as materialized (select * from rows from (json_to_recordset(:endings::text::json) as (
  kind text, id bigint, fence bigint, delay bigint, reason text, attempt bigint, worker text, started_at bigint,
  ended_at bigint, error_type text, message text, stack text, output text)) with ordinality as e(
  asked, id, fence, delay, reason, attempt, worker, started_at, ended_at, error_type, message, stack, output, place))`,

    `held as materialized (
  select a.*, case when j.cancelled_at is not null and a.asked in ('retry', 'fail') then 'cancel' else a.asked end as kind
  from (select * from asked_end order by id) a,
  lateral (select j.cancelled_at from ${jobs} j where j.id = a.id and j.fence = a.fence and ${mine} for update) j)`,

    `kept as (delete from ${jobs} j where ${ending('keep')} returning j.*)`,
    `cancelling as (delete from ${jobs} j where ${ending('cancel')} returning j.*)`,
    `archived as (${archive(ended, "select k.*, 'done' as state, 0 as cost from kept k")})`,
    `called_off as (${archive(
      ended,
      `select c.*, 'cancelled' as state, case when h.attempt is null then 0 else 1 end as cost
    from cancelling c join held h on h.id = c.id`,
    )})`,

    `retried as (update ${jobs} j set ${free}, failures = j.failures + 1, suspect = 0, available_at = ${now} + h.delay
  from held h where ${ending('retry')} and h.id = j.id)`,
    `released as (update ${jobs} j set ${free}, available_at = coalesce(${now} + h.delay, j.available_at),
    suspect = case when h.delay is null then j.suspect else 0 end
  from held h where ${ending('release')} and h.id = j.id)`,

    `failing as (delete from ${jobs} j where ${ending('fail')} returning j.*)`,
    `filed as (insert into ${failed} (id, fence, queue, priority, job, failures, crashes, unique_key, version,
    enqueued_at, failed_at, reason, error_type, error, envelope)
  select f.id, f.fence, f.queue, f.priority, f.job, f.failures + 1, f.crashes, f.unique_key, f.version, f.enqueued_at,
    ${now}, h.reason, h.error_type, h.message, f.envelope
  from failing f join held h on h.id = f.id)`,

    `recorded as (insert into ${attempts} (job_id, fence, attempt, worker, started_at, ended_at, error_type, message,
    stack, output)
  select h.id, h.fence, h.attempt, h.worker, h.started_at, h.ended_at, h.error_type, h.message, h.stack, h.output
  from held h where h.attempt is not null order by h.place)`,
    trimmed(attempts),
  ]
}

/** Makes room for the attempt that is being recorded; a job can have too many only after as many reservations. */
function trimmed(attempts: string): string {
  const { keptFirstAttempts: first, keptLastAttempts: last } = defaults
  return `trimmed as (delete from ${attempts} t where t.id = any(array(
  select n.id from held h, lateral (
    select o.id, row_number() over (order by o.id) as place, count(*) over () as total
    from ${attempts} o where o.job_id = h.id) n
  where h.attempt is not null and h.fence > ${first + last} and n.place > ${first} and n.place <= n.total - ${last - 1})))`
}

/**
 * Adds what handlers dispatched with their completion. The counts make every removal come first: the key of a job that
 * has just ended is free for its follow-up.
 */
export function followUps({ jobs, jobIds }: Relations): string[] {
  return [
    `followed as materialized (select nextval(${jobIds}) as id, f.* from (
    select * from rows from (json_to_recordset(:followUps::text::json) as (
      parent bigint, queue text, priority bigint, delay bigint, moment bigint, job text, unique_key text, version bigint,
      envelope text)) with ordinality as u(
      parent, queue, priority, delay, moment, job, unique_key, version, envelope, place)
    where (select count(*) from done) + (select count(*) from kept) + (select count(*) from cancelling)
      + (select count(*) from failing) > 0
      and (u.parent in (select d.id from done d) or u.parent in (select k.id from kept k))
    order by u.place) f)`,
    `added as (${insertJobs(jobs, 'followed a order by a.place')})`,
  ]
}
