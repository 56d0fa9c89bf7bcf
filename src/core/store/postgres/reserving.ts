import { never } from '../continuations.ts'
import { survivor } from '../recovery.ts'
import { now, type Relations, these } from './fragments.ts'

/** How the next jobs are found: the one condition of what a worker could take, and its two uses. */

/** How a wish names its queues. strict: one queue a group; merged: several; all: whatever queues there are. */
export type Scope = 'strict' | 'merged' | 'all'

/** Where a reservation begins to look: at the head of every level, or at the marks of those that the worker remembers. */
export type Start = 'everywhere' | 'marks'

/** Levels of priority that are looked up one by one in a queue; what lies beyond is read as one ordered range. */
const mostLevels = 64

/** What was written with SQL may have an id that no JavaScript number holds. */
const countable = `j.id <= ${Number.MAX_SAFE_INTEGER}`

/** What this worker would take once it is due, if it could read every envelope; the queue is chosen by `served`. */
export const wantedOfAnyVersion = `j.worker is null and ${countable} and j.cancelled_at is null
  and (:only::text[] is null or j.job = any(:only::text[])) and j.job <> all(:except::text[])
  and j.id <> all(:exclude::bigint[])`

/** What it could take, but for suspects. */
export const wanted = `${wantedOfAnyVersion} and j.version <= :maxVersion::bigint`

export const due = `j.available_at <= ${now}`

/** No job of a paused queue is taken. name: the queue as an expression. */
export function isPaused({ queues }: Relations, name: string): string {
  return `exists (select from ${queues} q where q.name = ${name} and (q.paused_until is null or q.paused_until > ${now}))`
}

/** The queues to look at: grp is the group's place in the order; a paused or excepted queue is none. */
function served(tables: Relations, scope: Scope): string[] {
  const { jobs } = tables
  const named = 'select u.grp, u.queue from unnest(:queues::text[], :groups::bigint[]) u(queue, grp)'
  const found = 'select 1::bigint as grp, f.queue from found f where f.queue is not null'
  const next = (after: string): string =>
    `select j.queue from ${jobs} j where j.worker is null${after} order by j.queue limit 1`
  const walk = `found(queue) as (
  select (${next('')})
  union all
  select (${next(' and j.queue > f.queue')}) from found f where f.queue is not null)`
  const running = `served as materialized (
  select s.grp, s.queue from (${scope === 'all' ? found : named}) s
    where s.queue <> all(:exceptQueues::text[]) and not ${isPaused(tables, 's.queue')})`
  return scope === 'all' ? [walk, running] : [running]
}

/** The priorities that exist in each queue; one range scan each beats any sort. The step after the last is "beyond". */
export function levels(tables: Relations, scope: Scope): string[] {
  const { jobs } = tables
  const next = (above: string, queue: string): string =>
    `select j.priority from ${jobs} j where j.queue = ${queue} and j.worker is null${above} order by j.priority limit 1`
  return [
    ...served(tables, scope),
    `levels(grp, queue, priority, step) as (
  select s.grp, s.queue, (${next('', 's.queue')}), 1 from served s
  union all
  select l.grp, l.queue,
    case when l.step < ${mostLevels} then (${next(' and j.priority > l.priority', 'l.queue')}) else l.priority end,
    l.step + 1
  from levels l where l.priority is not null and l.step <= ${mostLevels})`,
  ]
}

/** The levels that the worker remembers, each with the last of its jobs that is worth no look any more. */
export function markedLevels(tables: Relations): string {
  return `levels as materialized (
  select u.grp, u.queue, u.priority, 1 as step, u.moment, u.id
  from unnest(:markGroups::bigint[], :markQueues::text[], :markPriorities::bigint[], :markMoments::bigint[],
    :markIds::bigint[]) u(grp, queue, priority, moment, id)
  where u.queue <> all(:exceptQueues::text[]) and not ${isPaused(tables, 'u.queue')})`
}

interface LevelRead {
  readonly start: Start
  readonly columns: string
  readonly where: string
  readonly order: string
  /** The order where several levels are read at once. */
  readonly orderBeyond: string
  readonly limit: string
  readonly lock: boolean
}

/** Reads one level `l` of a queue in its order, or all that lie beyond the last one. */
function atLevel(jobs: string, { start, columns, where, order, orderBeyond, limit, lock }: LevelRead): string {
  const read = (condition: string, by: string): string =>
    `select * from (select ${columns} from ${jobs} j
      where j.queue = l.queue and ${condition} and ${wanted} and ${where}
      order by ${by} limit ${limit}${lock ? ' for update skip locked' : ''}) r`
  if (start === 'marks') return read('j.priority = l.priority and (j.available_at, j.id) > (l.moment, l.id)', order)
  const level = read(`l.step <= ${mostLevels} and j.priority = l.priority`, order)
  const beyond = read(`l.step > ${mostLevels} and j.priority > l.priority`, orderBeyond)
  return `${level} union all ${beyond}`
}

const columns = `j.id, j.priority, j.available_at, j.suspect, octet_length(j.envelope) as bytes`

const inRunOrder = { columns, order: 'j.available_at, j.id', orderBeyond: 'j.priority, j.available_at, j.id' }

/** A suspect at the head comes alone; everywhere else suspects are passed over. */
const passable = 'j.suspect <> 1'
const passableOrHead = '(j.suspect <> 1 or j.id = (select h.id from head h where h.suspect = 1))'

/** Locks the first jobs in run order, cuts them to the limits, and takes them. */
export function reservation({ jobs }: Relations, scope: Scope, start: Start): string[] {
  const head = { ...inRunOrder, start, where: due, limit: '1', lock: false }
  return [
    `head as materialized (
  select j.id, j.suspect from levels l, lateral (${atLevel(jobs, head)}) j
  where :suspects::boolean and :limit::bigint > 0 and l.priority is not null
  order by l.grp, j.priority, j.available_at, j.id limit 1)`,
    ...(scope === 'strict' ? inOrder(jobs, start) : merged(jobs, start)),
    `chosen as materialized (
  select c.id, c.place from (
    select r.*, sum(case when r.suspect = ${survivor} and r.place > :started::bigint then 1 else 0 end)
      over (order by r.place) as left_out
    from (
      select d.id, d.suspect, row_number() over inorder as place, sum(d.bytes) over inorder as total from locked d
      where not exists (select from head h where h.suspect = 1) or d.suspect = 1
      window inorder as (order by d.grp, d.priority, d.available_at, d.id)) r) c
  where (c.place = 1 or c.total <= :maxBytes::bigint) and c.left_out = 0)`,
    `taken as (update ${jobs} j set worker = :worker::bigint, batch = :batch::bigint, fence = j.fence + 1,
    started_at = case when ${these('chosen', ' where p.place <= :started::bigint')} then ${now} end
  where ${these('chosen')} returning j.*)`,
  ]
}

/** With one queue a group the levels are in run order already: the scan stops at the limit and locks no more. */
function inOrder(jobs: string, start: Start): string[] {
  const level = { ...inRunOrder, start, where: `${due} and ${passableOrHead}`, limit: ':limit::bigint', lock: true }
  return [
    `locked as materialized (
  select l.grp, j.* from (select * from levels where priority is not null order by grp, priority, step) l,
  lateral (${atLevel(jobs, level)}) j limit :limit::bigint)`,
  ]
}

/** Queues of one group are merged by looking at the head of each; some more than wanted, since others look there too. */
function merged(jobs: string, start: Start): string[] {
  const level = { ...inRunOrder, start, where: `${due} and ${passableOrHead}`, limit: ':reach::bigint', lock: false }
  return [
    `candidates as materialized (
  select l.grp, j.* from levels l, lateral (${atLevel(jobs, level)}) j where l.priority is not null
  order by l.grp, j.priority, j.available_at, j.id limit :reach::bigint)`,
    `locked as materialized (
  select c.grp, j.* from (select * from candidates order by grp, priority, available_at, id) c,
  lateral (select ${columns} from ${jobs} j where j.id = c.id and ${wanted} and ${due} and ${passableOrHead}
    for update skip locked) j limit :limit::bigint)`,
  ]
}

export function nextDue(tables: Relations, scope: Scope): string {
  const level: LevelRead = {
    start: 'everywhere',
    columns: 'j.available_at',
    where: `(:suspects::boolean or ${passable})`,
    order: 'j.available_at',
    orderBeyond: 'j.available_at',
    limit: '1',
    lock: false,
  }
  return `with recursive ${levels(tables, scope).join(',\n')}
select min(greatest(j.available_at - ${now}, 0)) as ms
from levels l, lateral (${atLevel(tables.jobs, level)}) j where l.priority is not null and j.available_at < ${never}`
}
