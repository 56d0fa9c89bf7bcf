import { createHash } from 'node:crypto'
import type { TableNames } from '../names.ts'
import { identifier } from './statement.ts'

/** Pieces of statements that more than one of them needs. */

/** Every name that statements need, quoted and qualified. */
export interface Relations extends TableNames {
  /** The sequence of job ids as an expression. */
  readonly jobIds: string
  /** Where sleeping workers are woken; one name for an installation, in one database. */
  readonly channel: string
}

/** Qualifies the tables of one installation. */
export function relations(names: TableNames, schema: string | undefined): Relations {
  const qualified = (name: string): string =>
    schema === undefined ? identifier(name) : `${identifier(schema)}.${identifier(name)}`
  const { jobs, failed, ended, attempts, workers, queues, schedules, slots, ticks, parents, migrations } = names
  return {
    jobs: qualified(jobs),
    failed: qualified(failed),
    ended: qualified(ended),
    attempts: qualified(attempts),
    workers: qualified(workers),
    queues: qualified(queues),
    schedules: qualified(schedules),
    slots: qualified(slots),
    ticks: qualified(ticks),
    parents: qualified(parents),
    migrations: qualified(migrations),
    channel: channelOf(schema, jobs),
    jobIds: `pg_get_serial_sequence('${qualified(jobs).replaceAll("'", "''")}', 'id')::regclass`,
  }
}

/** Names may be longer together than a channel's may be. */
function channelOf(schema: string | undefined, jobs: string): string {
  return `khepri_${createHash('sha256')
    .update(`${schema ?? ''}.${jobs}`)
    .digest('hex')
    .slice(0, 32)}`
}

/**
 * Wakes sleeping workers. A notification takes a lock at commit, so nobody sends one where nobody sleeps, and a statement
 * sends one at most. when: a condition. The part must be named by what follows, or it does not happen.
 */
export function rung({ workers, channel }: Relations, when: string): string {
  return `rung as materialized (select pg_notify('${channel}', '') where (${when})
  and exists (select from ${workers} w where w.asleep_until > ${now} and w.dead_at is null))`
}

/** The server's moment, in epoch milliseconds: the beginning of the transaction. */
export const serverNow = 'floor(extract(epoch from now()) * 1000)::bigint'

/** The moment itself, where the transaction is a caller's and may have begun long ago. */
const clockNow = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** `now` in a transaction of a caller's; one moment for all rows, since it stands in a part of its own. */
export const momentInside = `moment as materialized (select coalesce(:now::bigint, ${clockNow}) as ms)`
export const nowInside = '(select m.ms from moment m)'

/** The one expression of now; `:now` is a clock's where the store was opened with one, and null otherwise. */
export const now = `coalesce(:now::bigint, ${serverNow})`

/** Gives a job back. */
export const free = 'worker = null, batch = null, started_at = null'

/** Holding, compared so that the index of held rows is of no use (see `statements.ts`). */
export const mine = 'j.worker is not distinct from :worker::bigint'

/** The jobs that another part names, looked up by id; a join alone is a scan for a plan made while the table is small. */
export function these(part: string, where = ''): string {
  return `j.id = any(array(select p.id from ${part} p${where}))`
}

/** The ids were drawn before, so that an answer finds its question. A taken key waits for its holder's commit. */
export function insertJobs(jobs: string, source: string, at = now): string {
  return `insert into ${jobs} (id, queue, priority, available_at, job, unique_key, version, enqueued_at, envelope)
    select a.id, a.queue, a.priority, coalesce(a.moment, ${at} + a.delay), a.job, a.unique_key, a.version, ${at},
      a.envelope from ${source}
    on conflict (unique_key) where unique_key is not null do nothing returning id`
}

/** Keeps jobs that have ended. source: rows of jobs with `state`, and `cost`, what their last attempt adds to failures. */
export function archive(ended: string, source: string): string {
  return `insert into ${ended} (id, state, fence, queue, priority, job, failures, version, enqueued_at, ended_at, envelope)
  select e.id, e.state, e.fence, e.queue, e.priority, e.job, e.failures + e.cost, e.version, e.enqueued_at, ${now},
    e.envelope from (${source}) e`
}

/** Whether any job waits for another; by the index, which soon passes over what is dead in it. */
export function anyParents(parents: string): string {
  return `(select p.child from ${parents} p order by p.parent, p.child limit 1) is not null`
}

/** Who holds unique keys now. */
export function holders(jobs: string): string {
  return `select j.unique_key as key, j.id from ${jobs} j where j.unique_key = any(:keys::text[])`
}
