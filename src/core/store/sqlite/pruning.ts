import type { Aged } from '../admin.ts'
import type { TableNames } from '../names.ts'
import type { JobId } from '../store.ts'
import type { Connection } from './connection.ts'

/** Deletes jobs that ended long ago. */
export class Pruning {
  readonly #connection: Connection
  readonly #names: TableNames
  readonly #now: () => number

  constructor(connection: Connection, names: TableNames, now: () => number) {
    this.#connection = connection
    this.#names = names
    this.#now = now
  }

  /** See `Admin.countAged`. */
  count(aged: Aged): Promise<number> {
    const { table, condition } = this.#home(aged)
    const text = `select count(*) from "${table}" where ${condition}`
    return this.#connection.read(() => this.#connection.statement(text).pluck().get(this.#values(aged)) as number)
  }

  /** See `Admin.prune`. */
  prune(aged: Aged, limit: number): Promise<number> {
    const { table, condition, moment } = this.#home(aged)
    const oldest = `select id from "${table}" where ${condition} order by ${moment}, id limit :limit`
    return this.#connection.write(() => {
      const values = { ...this.#values(aged), limit }
      const ids = this.#connection.statement(oldest).pluck().all(values) as JobId[]
      if (aged.state !== 'done') this.#lose(ids)
      this.#delete(this.#names.attempts, 'job_id', ids)
      this.#delete(table, 'id', ids)
      return ids.length
    })
  }

  /** Who waits for one of them would otherwise take it for done. */
  #lose(ids: readonly JobId[]): void {
    const text = `update "${this.#names.parents}" set lost = 1 where parent in (select value from json_each(:ids))`
    this.#connection.statement(text).run({ ids: JSON.stringify(ids) })
  }

  #delete(table: string, column: string, ids: readonly JobId[]): void {
    const text = `delete from "${table}" where ${column} in (select value from json_each(:ids))`
    this.#connection.statement(text).run({ ids: JSON.stringify(ids) })
  }

  #home({ state }: Aged): { readonly table: string; readonly condition: string; readonly moment: string } {
    if (state === 'failed') return { table: this.#names.failed, condition: 'failed_at <= :before', moment: 'failed_at' }
    return { table: this.#names.ended, condition: 'state = :state and ended_at <= :before', moment: 'ended_at' }
  }

  #values({ state, leastAgeMs }: Aged) {
    return { state, before: this.#now() - leastAgeMs }
  }
}
