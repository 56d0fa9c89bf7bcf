import type { JobFilter, StoredJob, WholeJob } from '../admin.ts'
import type { TableNames } from '../names.ts'
import { inPages } from '../paging.ts'
import type { JobId } from '../store.ts'
import { aheadText, pageText, type StoredRow, storedJob, type WholeRow, wholeText } from '../stored-jobs.ts'
import type { Connection } from './connection.ts'

/** Reads the jobs of an SQLite file, wherever they are. */
export class StoredJobs {
  readonly #connection: Connection
  readonly #tables: Parameters<typeof pageText>[0]
  readonly #now: () => number

  constructor(connection: Connection, { jobs, failed, ended, workers }: TableNames, now: () => number) {
    this.#connection = connection
    this.#tables = {
      ...{ jobs: `"${jobs}"`, failed: `"${failed}"`, ended: `"${ended}"`, workers: `"${workers}"` },
      now: ':now',
    }
    this.#now = now
  }

  /** See `Admin.jobs`. */
  list(filter: JobFilter, limit: number | null): AsyncGenerator<StoredJob> {
    const text = pageText(this.#tables, filter)
    const { queue, job } = filter
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

  #rows<Row>(text: string, parameters: object): Promise<Row[]> {
    return this.#connection.read(
      () => this.#connection.statement(text).all({ ...parameters, now: this.#now() }) as Row[],
    )
  }
}
