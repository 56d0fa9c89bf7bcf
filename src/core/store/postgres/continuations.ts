import { judgement, lookedAtOnce, lookedUpTo, never, requireGivenOut, type Waiting } from '../continuations.ts'
import type { Enqueued, JobId, NewJob } from '../store.ts'
import type { Row } from './connection.ts'
import type { Call, Connections, Values } from './connections.ts'
import { archive, momentInside, now, nowInside, type Relations, rung, these } from './fragments.ts'
import { bigints, type Statement, statement, texts } from './statement.ts'

/** The statements about jobs that wait for others. */
export function continuationStatements(tables: Relations) {
  return {
    /** The last id that was given out. */
    lastId: statement(`select coalesce(pg_sequence_last_value(${tables.jobIds}), 0) as id`),
    link: statement(link(tables, now)),
    /** The same in a transaction of the caller's. */
    linkInside: statement(`with ${momentInside} ${link(tables, nowInside)}`),
    judgeSome: statement(judgeSome(tables)),
    release: statement(release(tables)),
    childrenOf: statement(
      `select distinct p.child as id from ${tables.parents} p where p.parent = any(:ids::bigint[])`,
    ),
  }
}

type ContinuationStatements = ReturnType<typeof continuationStatements>

/** Sends one statement, in a transaction or as one. */
export type Run = (statement: Statement, values: Values) => Promise<readonly Row[]>

/** Throws NOT_FOUND for a parent whose id was never given out. */
export async function requireParents(
  jobs: readonly NewJob[],
  { lastId }: ContinuationStatements,
  run: Run,
): Promise<void> {
  const parents = jobs.flatMap(({ after = [] }) => after)
  if (parents.length === 0) return
  const [row] = await run(lastId, {})
  requireGivenOut(parents, Number(row?.id))
}

/** Makes new jobs wait for their parents; one of which none is to be waited for is due by its own terms at once. */
export async function waitForParents(
  children: readonly { readonly job: NewJob; readonly id: JobId }[],
  { link, release }: ContinuationStatements,
  now: number | null,
  run: Run,
): Promise<void> {
  if (children.length === 0) return
  const rows = children.flatMap(({ job, id }) => [...new Set(job.after)].map((parent) => ({ job, id, parent })))
  await run(link, {
    now,
    children: bigints(rows.map(({ id }) => id)),
    parents: bigints(rows.map(({ parent }) => parent)),
    onFailures: texts(rows.map(({ job }) => job.onParentFailure ?? 'wait')),
    delays: bigints(rows.map(({ job: { due } }) => ('delayMs' in due ? due.delayMs : null))),
    moments: bigints(rows.map(({ job: { due } }) => ('at' in due ? due.at : null))),
  })
  await run(release, { now, ids: bigints(children.map(({ id }) => id)) })
}

/** The jobs of a call that were written and wait for others. */
export function childrenAmong(
  jobs: readonly NewJob[],
  answers: ReadonlyMap<NewJob, Enqueued>,
): readonly { readonly job: NewJob; readonly id: JobId }[] {
  return jobs.flatMap((job) => {
    const answer = answers.get(job)
    return waits(job) && answer && !answer.duplicate ? [{ job, id: answer.id }] : []
  })
}

/** Tells whether a new job is due only after others. */
export const waits = ({ after = [] }: NewJob): boolean => after.length > 0

interface Judged {
  readonly child: JobId
  readonly parents: number
  readonly is_lost: number
  readonly is_held: number
  readonly is_loose: boolean
}

const releasing: Call = { doing: 'release jobs that wait for others', kind: 'repeatable' }
const looking: Call = { doing: 'look for jobs that wait for others', kind: 'reading' }

/** Releases jobs that wait for others; each step is a transaction of its own, and may be repeated. */
export class Continuations {
  readonly #connections: Connections
  readonly #statements: ContinuationStatements
  readonly #now: () => number | null

  constructor(connections: Connections, statements: ContinuationStatements, now: () => number | null) {
    this.#connections = connections
    this.#statements = statements
    this.#now = now
  }

  /** Looks at some of the jobs that wait, upwards from an id. */
  async look(after: JobId): Promise<Waiting> {
    const rows = await this.#connections.run(this.#statements.judgeSome, { after }, looking)
    const judged = rows as unknown as readonly Judged[]
    const settled = judged.filter((one) => one.is_lost === 1 || one.is_held === 0 || one.is_loose)
    return { settled: settled.map(({ child }) => child), upTo: lookedUpTo(judged) }
  }

  /** Releases those of these jobs that wait no more, and what waited for those that are cancelled by that; answers how many. */
  async release(ids: readonly JobId[]): Promise<number> {
    let count = 0
    for (let open = ids; open.length > 0; ) {
      const values = { now: this.#now(), ids: bigints(open) }
      const rows = await this.#connections.run(this.#statements.release, values, releasing)
      count += rows.length
      open = await this.#childrenOf(rows.filter(({ lost }) => lost).map(({ id }) => id as JobId))
    }
    return count
  }

  async #childrenOf(ids: readonly JobId[]): Promise<readonly JobId[]> {
    if (ids.length === 0) return []
    const rows = await this.#connections.run(this.#statements.childrenOf, { ids: bigints(ids) }, looking)
    return rows.map(({ id }) => id as JobId)
  }
}

function link({ parents }: Relations, at: string): string {
  return `insert into ${parents} (parent, child, on_failure, available_at)
select u.parent, u.child, u.on_failure, coalesce(u.moment, ${at} + u.delay)
from unnest(:parents::bigint[], :children::bigint[], :onFailures::text[], :delays::bigint[], :moments::bigint[])
  u(parent, child, on_failure, delay, moment)`
}

/** What these children wait for; a look into the index for each, whatever the planner takes the table for. */
function rowsOf({ parents }: Relations, children: string): string {
  return `(${children}) s, lateral (select p.* from ${parents} p where p.child = s.child order by p.child, p.parent) p`
}

/** Whether a job does not wait, or does not live, any more. */
function isLoose(jobs: string, id: string): string {
  return `(select j.id from ${jobs} j where j.id = ${id} and j.available_at = ${never} limit 1) is null`
}

/** `is_loose`: it waits no more, though something is still kept of what it waited for. */
function judgeSome(tables: Relations): string {
  const { jobs, parents } = tables
  const some = `select distinct s.child from (
    select p.child from ${parents} p where p.child > :after::bigint order by p.child limit ${lookedAtOnce}) s`
  return `with judged as materialized (${judgement(tables, rowsOf(tables, some))})
select d.child, d.parents, d.is_lost, d.is_held, ${isLoose(jobs, 'd.child')} as is_loose from judged d`
}

/** One statement, so that it judges what it changes by one moment; what somebody else is just changing is left to it. */
function release(tables: Relations): string {
  const { jobs, ended, parents } = tables
  return `with judged as materialized (${judgement(tables, rowsOf(tables, 'select unnest(:ids::bigint[]) as child'))}),
waiting as materialized (
  select j.id, d.available_at, d.is_lost = 1 as lost
  from (select * from judged where is_lost = 1 or is_held = 0 order by child) d,
  lateral (select j.id from ${jobs} j where j.id = d.child and j.available_at = ${never} and j.worker is null
    for update skip locked) j),
released as (update ${jobs} j set available_at = w.available_at
  from waiting w where ${these('waiting', ' where not p.lost')} and w.id = j.id returning j.id),
gone as (delete from ${jobs} j where ${these('waiting', ' where p.lost')} returning j.*),
called_off as (${archive(ended, "select g.*, 'cancelled' as state, 0 as cost from gone g")}),
loose as materialized (select a.id from unnest(:ids::bigint[]) a(id) where ${isLoose(jobs, 'a.id')}),
unlinked as (delete from ${parents} p
  where p.child = any(array(select w.id from waiting w union all select l.id from loose l))),
${rung(tables, 'exists (select from released)')}
select w.id, w.lost from waiting w left join rung on true`
}
