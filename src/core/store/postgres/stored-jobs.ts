import type { JobFilter, StoredJob, WholeJob } from '../admin.ts'
import type { StoreOptions } from '../options.ts'
import { inPages } from '../paging.ts'
import type { JobId } from '../store.ts'
import { aheadText, pageText, type StoredRow, storedJob, type WholeRow, wholeText } from '../stored-jobs.ts'
import type { Call, Connections, Values } from './connections.ts'
import { now, relations } from './fragments.ts'
import { statement } from './statement.ts'

/** Reads the jobs of a Postgres database, wherever they are. */
export class StoredJobs {
  readonly #connections: Connections
  readonly #options: StoreOptions
  readonly #tables: Parameters<typeof pageText>[0]
  readonly #call: Call

  /** deadlineMs: longer than the store's own, since a rare filter scans. */
  constructor(connections: Connections, options: StoreOptions, deadlineMs: number) {
    this.#connections = connections
    this.#options = options
    this.#tables = { ...relations(options.names, options.schema), now }
    this.#call = { doing: 'read its jobs', kind: 'reading', deadlineMs }
  }

  /** See `Admin.jobs`. */
  list(filter: JobFilter, limit: number | null): AsyncGenerator<StoredJob> {
    const text = pageText(this.#tables, filter)
    const { queue = null, job = null } = filter
    return inPages(limit, async (below, size) =>
      (await this.#rows<StoredRow>(text, { queue, job, below, size })).map(storedJob),
    )
  }

  /** See `Admin.stored`. */
  async one(id: JobId): Promise<WholeJob | null> {
    const [row] = await this.#rows<WholeRow>(wholeText(this.#tables), { id, size: 1 })
    return row === undefined ? null : { ...storedJob(row), version: row.version, envelope: row.envelope }
  }

  /** See `Admin.ahead`. */
  async ahead(id: JobId): Promise<number> {
    const [row] = await this.#rows<{ readonly count: number }>(aheadText(this.#tables), { id })
    return row?.count ?? 0
  }

  async #rows<Row>(text: string, values: Values): Promise<readonly Row[]> {
    const clock = this.#options.clock?.now() ?? null
    return (await this.#connections.run(statement(text), { now: clock, ...values }, this.#call)) as unknown as Row[]
  }
}
