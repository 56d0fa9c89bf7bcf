import { defaults } from '../../defaults.ts'
import type { Waiting } from '../continuations.ts'
import type { TableNames } from '../names.ts'
import type { Chores, RecoverySteps } from '../recovery.ts'
import type { JobId, Observation, WorkerId } from '../store.ts'
import { lookAtWaiting, releaseAll } from './continuations.ts'
import type { Transaction } from './transaction.ts'

/** Jobs looked at for what does not belong into their columns, at each call: the file is not to be read whole. */
const lookedAtOnce = 5_000

type Run = <T>(work: (transaction: Transaction) => T) => Promise<T>

/** The steps of recovery in an SQLite file: each is a short transaction, so that the living get the lock in between. */
export class SqliteRecovering implements RecoverySteps {
  readonly #read: Run
  readonly #write: Run
  readonly #texts: ReturnType<typeof textsFor>
  /** The last job that was looked at for what does not belong into its columns. */
  #lookedUpTo: JobId = 0

  constructor(names: TableNames, read: Run, write: Run) {
    this.#texts = textsFor(names)
    this.#read = read
    this.#write = write
  }

  /** A look does not queue for the write lock. */
  chores(observation: Observation): Promise<Chores> {
    return this.#read(({ connection, statements, now }) => {
      const before = now - defaults.keepDeadMs
      const found = connection.statement(statements.chores).get({ ...parametersOf(observation), now, before })
      const { judge, free, end, forget } = found as Record<Exclude<keyof Chores, 'adopt' | 'release'>, number>
      const adopt = connection.statement(this.#texts.isOrphaned).pluck().get() === 1
      const release = connection.statement(statements.anyParents).pluck().get() === 1
      return { judge: judge === 1, free: free === 1, end: end === 1, forget: forget === 1, adopt, release }
    })
  }

  judge(observation: Observation): Promise<readonly WorkerId[]> {
    return this.#write(({ connection, statements, now }) => {
      return connection
        .statement(statements.judge)
        .pluck()
        .all({ ...parametersOf(observation), now }) as WorkerId[]
    })
  }

  dead(): Promise<readonly WorkerId[]> {
    return this.#read(({ connection, statements }) => {
      return connection.statement(statements.dead).pluck().all() as WorkerId[]
    })
  }

  heldByDead(after: JobId): Promise<readonly JobId[]> {
    return this.#read(({ connection, statements }) => {
      return connection.statement(statements.heldByDead).pluck().all({ after }) as JobId[]
    })
  }

  free(ids: readonly JobId[]): Promise<number> {
    return this.#write(({ connection, statements }) => {
      return connection.statement(statements.freeDead).run({ ids: JSON.stringify(ids) }).changes
    })
  }

  abandoned(after: JobId): Promise<readonly JobId[]> {
    return this.#read(({ connection, statements }) => {
      return connection.statement(statements.abandoned).pluck().all({ after }) as JobId[]
    })
  }

  end(ids: readonly JobId[]): Promise<number> {
    return this.#write(({ connection, statements, now }) => {
      const still = connection
        .statement(statements.stillAbandoned)
        .pluck()
        .all({ ids: JSON.stringify(ids) })
      const parameters = { ids: JSON.stringify(still) }
      connection.statement(statements.archive).run({ ...parameters, state: 'cancelled', cost: 0, now })
      return connection.statement(statements.remove).run(parameters).changes
    })
  }

  async forget(): Promise<void> {
    await this.#write(({ connection, statements, now }) => {
      connection.statement(statements.forgetDead).run({ before: now - defaults.keepDeadMs })
    })
  }

  async adopt(observer: WorkerId): Promise<void> {
    await this.#write(({ connection, now }) => {
      connection.statement(this.#texts.adopt).run({ observer, now })
    })
  }

  waiting(after: JobId): Promise<Waiting> {
    return this.#read((transaction) => lookAtWaiting(transaction, after))
  }

  release(ids: readonly JobId[]): Promise<number> {
    return this.#write((transaction) => releaseAll(transaction, ids))
  }

  /** Goes through the jobs in the order of ids, and begins again at the end. */
  malformed(): Promise<readonly JobId[]> {
    return this.#read(({ connection }) => {
      const after = this.#lookedUpTo
      const found = connection.statement(this.#texts.malformed).get({ after }) as { last: JobId | null; bad: string }
      this.#lookedUpTo = found.last ?? 0
      return JSON.parse(found.bad) as JobId[]
    })
  }
}

/** What is held by a worker without a row; what is no number is malformed instead. */
const orphaned = ({ jobs, workers }: TableNames): string =>
  `from "${jobs}" j where j.worker is not null and typeof(j.worker) = 'integer'
    and not exists (select 1 from "${workers}" w where w.id = j.worker)`

/** SQLite keeps a text where a number belongs, and then sorts it above all of them: such a job is never due. */
const numbers = [
  ...['priority', 'available_at', 'worker', 'batch', 'fence', 'started_at', 'failures', 'crashes', 'suspect'],
  ...['cancelled_at', 'version', 'enqueued_at'],
]

function textsFor(names: TableNames) {
  const isMalformed = numbers.map((column) => `typeof("${column}") in ('text', 'blob')`).join(' or ')
  return {
    isOrphaned: `select exists (select 1 ${orphaned(names)})`,
    /** As draining: nobody knows whether it was the job that ended its worker. */
    adopt: `insert into "${names.workers}" (id, name, version, host, pid, queues, concurrency, lease_ms, state, started_at, beat_at)
      select distinct j.worker, 'unknown', '', '', 0, '', 0,
        (select o.lease_ms from "${names.workers}" o where o.id = :observer), 'draining', :now, :now
      ${orphaned(names)} and exists (select 1 from "${names.workers}" o where o.id = :observer)`,
    malformed: `select max(id) as last, json_group_array(id) filter (where is_malformed) as bad
      from (select id, ${isMalformed} as is_malformed from "${names.jobs}" where id > :after order by id limit ${lookedAtOnce})`,
  }
}

function parametersOf({ observer, gone, rebooted, silent }: Observation) {
  return { observer, gone: JSON.stringify(gone), rebooted: JSON.stringify(rebooted), silent: silent ? 1 : 0 }
}
