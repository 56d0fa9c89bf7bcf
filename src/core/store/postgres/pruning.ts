import type { Aged } from '../admin.ts'
import type { StoreOptions } from '../options.ts'
import type { Call, Connections, Values } from './connections.ts'
import { now, type Relations, relations } from './fragments.ts'
import { statement } from './statement.ts'

const deleting: Call = { doing: 'prune jobs', kind: 'repeatable' }

/** Deletes jobs that ended long ago. */
export class Pruning {
  readonly #connections: Connections
  readonly #options: StoreOptions
  readonly #tables: Relations
  readonly #counting: Call

  /** deadlineMs: longer than the store's own, since counting scans. */
  constructor(connections: Connections, options: StoreOptions, deadlineMs: number) {
    this.#connections = connections
    this.#options = options
    this.#tables = relations(options.names, options.schema)
    this.#counting = { doing: 'count old jobs', kind: 'reading', deadlineMs }
  }

  /** See `Admin.countAged`. */
  async count(aged: Aged): Promise<number> {
    const { table, condition } = homeOf(this.#tables, aged)
    const text = `select count(*) as count from ${table} x where ${condition}`
    const [row] = await this.#connections.run(statement(text), this.#values(aged), this.#counting)
    return (row?.count as number | undefined) ?? 0
  }

  /** See `Admin.prune`. What somebody else is just retrying or deleting is passed over. */
  async prune(aged: Aged, limit: number): Promise<number> {
    const text = statement(pruneText(this.#tables, aged))
    return (await this.#connections.run(text, { ...this.#values(aged), limit }, deleting)).length
  }

  #values({ state, leastAgeMs }: Aged): Values {
    return { state, age: leastAgeMs, now: this.#options.clock?.now() ?? null }
  }
}

interface Home {
  readonly table: string
  readonly condition: string
  readonly moment: string
}

function homeOf({ failed, ended }: Relations, { state }: Aged): Home {
  const isOld = (moment: string): string => `x.${moment} <= ${now} - :age::bigint`
  if (state === 'failed') return { table: failed, condition: isOld('failed_at'), moment: 'failed_at' }
  return { table: ended, condition: `x.state = :state::text and ${isOld('ended_at')}`, moment: 'ended_at' }
}

function pruneText(tables: Relations, aged: Aged): string {
  const { table, condition, moment } = homeOf(tables, aged)
  return `with old as materialized (
  select x.id from ${table} x where ${condition} order by x.${moment}, x.id limit :limit::bigint for update skip locked),
${
  aged.state === 'done'
    ? ''
    : `lost as (update ${tables.parents} p set lost = 1 where p.parent = any(array(select o.id from old o))),
`
}history as (delete from ${tables.attempts} t where t.job_id = any(array(select o.id from old o)))
delete from ${table} d where d.id = any(array(select o.id from old o)) returning d.id`
}
