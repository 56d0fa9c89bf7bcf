import type { RunInside } from '../../callers-transaction.ts'
import { KhepriError } from '../../errors.ts'
import { never } from '../continuations.ts'
import type { Enqueued, JobId, NewJob } from '../store.ts'
import { keyHeld } from '../unique-keys.ts'
import type { Row } from './connection.ts'
import type { Call, Connections, Transaction, Values } from './connections.ts'
import { childrenAmong, type Run, requireParents, waitForParents, waits } from './continuations.ts'
import { enqueuing, storeError } from './errors.ts'
import { bigints, parametersOf, type Statement, texts } from './statement.ts'
import type { Statements } from './statements.ts'

/** Rows and characters of one INSERT; a call with more takes several in one transaction. */
const mostRows = 5_000
const mostCharacters = 8 * 1024 * 1024

/** So often a key is asked for whose holder goes away before it can be read. */
const mostTries = 20

const writing: Call = { doing: enqueuing, kind: 'writing' }
const reading: Call = { doing: enqueuing, kind: 'reading' }

/** Puts new jobs in: all or none, in as few statements as it takes. */
export class Enqueuing {
  readonly #connections: Connections
  readonly #statements: Statements
  readonly #label: string

  constructor(connections: Connections, statements: Statements, label: string) {
    this.#connections = connections
    this.#statements = statements
    this.#label = label
  }

  /** now: the moment of a clock of the caller's; null for the server's. */
  async enqueue(jobs: readonly NewJob[], now: number | null): Promise<readonly Enqueued[]> {
    if (jobs.length === 0) return []
    if (isOneStatement(jobs)) return this.#insert(jobs, now, (...statement) => this.#runAlone(...statement))
    return this.#connections.transaction(writing, (transaction) =>
      this.#insert(jobs, now, (...statement) => transaction.run(...statement)),
    )
  }

  /** The same inside a transaction that writes more than jobs. */
  within(transaction: Transaction, jobs: readonly NewJob[], now: number | null): Promise<readonly Enqueued[]> {
    return this.#insert(jobs, now, (...statement) => transaction.run(...statement))
  }

  /**
   * The same on a connection of the caller's, inside its transaction: without a commit, a savepoint or another try.
   * now: as above; null for the moment of the statement, since the transaction may have begun long ago.
   */
  async enlist(send: RunInside, jobs: readonly NewJob[], now: number | null): Promise<readonly Enqueued[]> {
    const { enqueue, enqueueInside, replace, replaceInside, link, linkInside } = this.#statements
    const inside = new Map([
      [enqueue, enqueueInside],
      [replace, replaceInside],
      [link, linkInside],
    ])
    const run: Run = async (asked, values) => {
      const statement = inside.get(asked) ?? asked
      return (await send(statement.text, parametersOf(statement, values))).map(withNumbers)
    }
    try {
      return await this.#insert(jobs, now, run)
    } catch (error) {
      // Whatever breaks, the caller's transaction is not committed by it.
      throw storeError(error, { label: this.#label, doing: enqueuing, stage: 'reading', deadlineMs: 0 })
    }
  }

  /** What comes after a refused INSERT only reads, until the next INSERT. */
  #runAlone(statement: Statement, values: Values): Promise<readonly Row[]> {
    return this.#connections.run(statement, values, statement === this.#statements.holders ? reading : writing)
  }

  async #insert(jobs: readonly NewJob[], now: number | null, run: Run): Promise<readonly Enqueued[]> {
    const answers = new Map<NewJob, Enqueued>()
    await requireParents(jobs, this.#statements, run)
    await this.#insertAll(jobs, now, run, answers)
    await waitForParents(childrenAmong(jobs, answers), this.#statements, now, run)
    return jobs.map((job) => answers.get(job) as Enqueued)
  }

  async #insertAll(
    jobs: readonly NewJob[],
    now: number | null,
    run: Run,
    answers: Map<NewJob, Enqueued>,
  ): Promise<void> {
    let open = jobs
    for (let tries = 0; tries < mostTries; tries++) {
      for (const chunk of chunksOf(open)) await this.#insertChunk(chunk, now, run, answers)
      const refused = open.filter((job) => !answers.has(job))
      await this.#replace(refused, now, run, answers)
      const left = refused.filter((job) => !answers.has(job))
      if (left.length > 0) await this.#findHolders(left, run, answers)
      open = refused.filter((job) => !answers.has(job))
      if (open.length === 0) return
    }
    throw new KhepriError(
      'STORE_BUSY',
      `the unique key of a job was taken and freed ${mostTries} times in ${this.#label}`,
      {
        fix: 'try again',
      },
    )
  }

  async #insertChunk(
    jobs: readonly NewJob[],
    now: number | null,
    run: Run,
    answers: Map<NewJob, Enqueued>,
  ): Promise<void> {
    const rows = await run(this.#statements.enqueue, { now, ...columnsOf(jobs) })
    for (const { place, id, added } of rows) {
      const job = jobs[(place as number) - 1]
      if (job && added) answers.set(job, { id: id as JobId, duplicate: false })
    }
  }

  /** One by one and in their order: of several with one key the last one stays. */
  async #replace(
    refused: readonly NewJob[],
    now: number | null,
    run: Run,
    answers: Map<NewJob, Enqueued>,
  ): Promise<void> {
    for (const job of refused.filter(({ onConflict }) => onConflict === 'replace')) {
      const [row] = await run(this.#statements.replace, { now, ...replacementOf(job) })
      if (row) answers.set(job, { id: row.id as JobId, duplicate: true, replaced: true })
    }
  }

  /** A holder that has gone since is not found; its key is then free for another INSERT. */
  async #findHolders(refused: readonly NewJob[], run: Run, answers: Map<NewJob, Enqueued>): Promise<void> {
    const rows = await run(this.#statements.holders, { keys: texts(refused.map(({ uniqueKey }) => uniqueKey)) })
    const holders = new Map(rows.map((row) => [row.key as string, row.id as JobId]))
    for (const job of refused) {
      const id = holders.get(job.uniqueKey ?? '')
      if (id === undefined) continue
      if (job.onConflict === 'error') throw keyHeld(job, id)
      answers.set(job, { id, duplicate: true, ...(job.onConflict === 'replace' && { replaced: false }) })
    }
  }
}

/** Drivers read whole numbers of 64 bits as texts, unless their owner has said otherwise. */
function withNumbers(row: Row): Row {
  return { ...row, id: Number(row.id), place: Number(row.place) }
}

/** A refused single job has written nothing, and without keys nothing is refused: no transaction is needed, but to wait. */
function isOneStatement(jobs: readonly NewJob[]): boolean {
  const mayBeRefused = jobs.length > 1 && jobs.some(({ uniqueKey }) => uniqueKey !== null)
  return !mayBeRefused && !jobs.some(waits) && chunksOf(jobs).length === 1
}

function chunksOf(jobs: readonly NewJob[]): readonly (readonly NewJob[])[] {
  const chunks: NewJob[][] = []
  let characters = 0
  for (const job of jobs) {
    characters += job.envelope.length
    const last = chunks.at(-1)
    if (last && last.length < mostRows && characters <= mostCharacters) {
      last.push(job)
    } else {
      chunks.push([job])
      characters = job.envelope.length
    }
  }
  return chunks
}

function replacementOf({ job, queue, priority, version, envelope, uniqueKey, due }: NewJob): Values {
  return {
    ...{ job, queue, priority, version, envelope, key: uniqueKey },
    moment: 'at' in due ? due.at : null,
    delay: 'delayMs' in due ? due.delayMs : null,
  }
}

function columnsOf(jobs: readonly NewJob[]): Values {
  return {
    queues: texts(jobs.map(({ queue }) => queue)),
    priorities: bigints(jobs.map(({ priority }) => priority)),
    delays: bigints(jobs.map(({ due }) => ('delayMs' in due ? due.delayMs : null))),
    moments: bigints(jobs.map((job) => (waits(job) ? never : 'at' in job.due ? job.due.at : null))),
    jobs: texts(jobs.map(({ job }) => job)),
    keys: texts(jobs.map(({ uniqueKey }) => uniqueKey)),
    versions: bigints(jobs.map(({ version }) => version)),
    envelopes: texts(jobs.map(({ envelope }) => envelope)),
  }
}
