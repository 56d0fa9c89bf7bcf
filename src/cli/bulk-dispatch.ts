import type { Dispatcher } from '../core/dispatch.ts'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import type { Enqueued, JobId, NewJob } from '../core/store/store.ts'
import { type Inputs, located } from './dispatch-inputs.ts'
import { exitCodeOf, exits } from './exit-codes.ts'
import type { JsonItem } from './job-files.ts'
import type { Progress } from './progress.ts'
import type { Rejects } from './rejects.ts'
import type { Places } from './unserved.ts'
import { count } from './words.ts'

/** So many jobs of files are one transaction, all or none. */
const mostAtOnce = 100_000

/** So many ids are remembered for printing; of more only the count is told. */
const mostIds = 999

export interface BulkOptions {
  readonly inputs: Inputs
  readonly dispatcher: Dispatcher
  readonly enqueue: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>
  /** Jobs a transaction, where there are several. */
  readonly chunk: number
  /** Where lines that cannot be taken go; null: the first of them ends the dispatch. */
  readonly rejects: Rejects | null
  readonly progress: (label: string) => Progress
}

/** What a dispatch came to. */
export interface BulkOutcome {
  readonly dispatched: number
  /** Jobs whose unique key a live job held; that job's ids. */
  readonly duplicates: readonly JobId[]
  /** In the order of the input; null where there are too many to be told. */
  readonly ids: readonly JobId[] | null
  /** The first job that was put in, to be named where it is the only one. */
  readonly first: NewJob | null
  /** The queues they went to, each with the first of its jobs. */
  readonly places: Places
}

/**
 * Dispatches the jobs of files and streams.
 *
 * Files are read and checked to their end before the first row is written. Up to 100,000 jobs of files are written in
 * one transaction; more of them, and streams, in chunks, so that memory and locks stay bounded.
 */
export class BulkDispatch {
  readonly #options: BulkOptions
  readonly #tally = new Tally()

  constructor(options: BulkOptions) {
    this.#options = options
  }

  /** Reads and checks everything, and writes nothing; the result is how many jobs there are. */
  async check(): Promise<number> {
    return (await this.#check(this.#options.inputs)).count
  }

  /** Dispatches everything. An error after the first transaction says what is in. */
  async run(): Promise<BulkOutcome> {
    try {
      await this.#dispatch()
    } catch (error) {
      throw this.#tally.explain(error)
    }
    return this.#tally.outcome()
  }

  async #dispatch(): Promise<void> {
    const { inputs } = this.#options
    const checked = await this.#check(inputs.files)
    if (inputs.isStream) await this.#writeInChunks(null)
    else if (checked.rows === null) await this.#writeInChunks(checked.count)
    else await this.#write(checked.rows, null)
  }

  /** Counts what can be dispatched, and keeps it where it is not too much. */
  async #check(inputs: Inputs): Promise<{ readonly count: number; readonly rows: readonly NewJob[] | null }> {
    const progress = this.#options.progress('checking')
    let rows: NewJob[] | null = []
    let count = 0
    try {
      for await (const item of inputs.items()) {
        const row = await this.#prepare(item, this.#options.rejects)
        if (row === null) continue
        progress.update(++count)
        if (count > mostAtOnce) rows = null
        rows?.push(row)
      }
    } finally {
      progress.end()
    }
    return { count, rows }
  }

  /** total: how many there will be; null where only the end of the stream will tell. */
  async #writeInChunks(total: number | null): Promise<void> {
    const { inputs, chunk, progress, rejects } = this.#options
    const shown = progress('dispatching')
    let rows: NewJob[] = []
    let last: JsonItem | null = null
    try {
      for await (const item of inputs.items()) {
        // Lines of files that were rejected while they were checked are known already.
        const row = await this.#prepare(item, total === null && item.source === 'stdin' ? rejects : muted(rejects))
        if (row === null) continue
        rows.push(row)
        last = item
        if (rows.length < chunk) continue
        await this.#write(rows, last)
        rows = []
        shown.update(this.#tally.written, total === null ? null : this.#tally.written / total)
      }
      if (rows.length > 0) await this.#write(rows, last)
    } finally {
      shown.end()
    }
  }

  /** The row of an item; null where it was rejected. */
  async #prepare(item: JsonItem, rejects: Pick<Rejects, 'take'> | null): Promise<NewJob | null> {
    try {
      const row = this.#options.dispatcher.prepare(this.#options.inputs.request(item))
      const prepared = row instanceof Promise ? await row : row
      this.#tally.prepared++
      return prepared
    } catch (error) {
      if (rejects === null) throw located(error, item)
      rejects.take(item, error)
      return null
    }
  }

  async #write(rows: readonly NewJob[], last: JsonItem | null): Promise<void> {
    if (rows.length > 0) this.#tally.add(rows, await enqueueSurely(this.#options.enqueue, rows), last)
  }
}

const muted = (rejects: Rejects | null): Pick<Rejects, 'take'> | null => (rejects === null ? null : { take: () => {} })

/** How often a dispatch of unique jobs is repeated whose outcome is unknown. */
const mostRepeats = 3

/** Writes rows; where the connection broke under the commit and every row has a unique key, writes them again: no job can be doubled. */
export async function enqueueSurely(
  enqueue: BulkOptions['enqueue'],
  rows: readonly NewJob[],
): Promise<readonly Enqueued[]> {
  for (let repeats = 0; ; repeats++) {
    try {
      const enqueued = await enqueue(rows)
      // After a repeat, the live holder of a key is most likely the row of the first go.
      return repeats === 0 ? enqueued : enqueued.map(({ id }) => ({ id, duplicate: false }))
    } catch (error) {
      const isSafe =
        isKhepriError(error) && error.code === 'OUTCOME_UNKNOWN' && rows.every(({ uniqueKey }) => uniqueKey !== null)
      if (!isSafe || repeats === mostRepeats) throw error
    }
  }
}

/** Tells whether an error is about the input, so that it surely came before anything was written. */
const isRefusal = (error: KhepriError): boolean =>
  [exits.data, exits.noInput].some((exit) => exit === exitCodeOf(error))

/** The lines before the one at fault were good: somebody has to know whether they are in. */
function withNothingIn(error: KhepriError): KhepriError {
  return new KhepriError(error.code, `${error.message}\nnothing was dispatched`, {
    ...(error.fix !== undefined && { fix: error.fix }),
    cause: error,
  })
}

/** Counts what is in. */
class Tally {
  written = 0
  prepared = 0
  #first: NewJob | null = null
  #ids: JobId[] | null = []
  readonly #duplicates: JobId[] = []
  readonly #places = new Map<string, NewJob>()
  #last: JsonItem | null = null

  add(rows: readonly NewJob[], enqueued: readonly Enqueued[], last: JsonItem | null): void {
    this.#first ??= rows.find((_, index) => enqueued[index]?.duplicate === false) ?? null
    this.written += rows.length
    for (const [index, row] of rows.entries())
      if (enqueued[index]?.duplicate === false && !this.#places.has(row.queue)) this.#places.set(row.queue, row)
    for (const { id, duplicate } of enqueued) if (duplicate) this.#duplicates.push(id)
    this.#ids = this.#ids === null || this.written > mostIds ? null : [...this.#ids, ...enqueued.map(({ id }) => id)]
    this.#last = last
  }

  outcome(): BulkOutcome {
    return {
      dispatched: this.written - this.#duplicates.length,
      duplicates: this.#duplicates,
      ids: this.#ids,
      first: this.#first,
      places: this.#places,
    }
  }

  /** The error with what is in already, so that the rest can be dispatched alone. */
  explain(error: unknown): unknown {
    if (!isKhepriError(error)) return error
    const last = this.#last
    if (this.written === 0) return this.prepared > 0 && isRefusal(error) ? withNothingIn(error) : error
    if (last === null) return error
    const message = `${error.message}\n${count(this.written, 'job')} are in, up to ${last.source}:${last.line}`
    return new KhepriError(error.code, message, {
      fix: `${error.fix === undefined ? '' : `${error.fix}; then `}dispatch what comes after line ${last.line} of ${last.source}`,
      cause: error,
    })
  }
}
