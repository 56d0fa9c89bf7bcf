import type { Chores, RecoverySteps } from '../recovery.ts'
import type { JobId, Observation, WorkerId } from '../store.ts'
import type { Transaction } from './transaction.ts'

/** A dead worker's row stays so long: what a merely frozen one still commits is found and freed. */
const keepDeadMs = 86_400_000

type Run = <T>(work: (transaction: Transaction) => T) => Promise<T>

/** The steps of recovery in an SQLite file: each is a short transaction, so that the living get the lock in between. */
export class SqliteRecovering implements RecoverySteps {
  readonly #read: Run
  readonly #write: Run

  constructor(read: Run, write: Run) {
    this.#read = read
    this.#write = write
  }

  /** A look does not queue for the write lock. */
  chores(observation: Observation): Promise<Chores> {
    return this.#read(({ connection, statements, now }) => {
      const before = now - keepDeadMs
      const found = connection.statement(statements.chores).get({ ...parametersOf(observation), now, before })
      const { judge, free, end, forget } = found as Record<keyof Chores, number>
      return { judge: judge === 1, free: free === 1, end: end === 1, forget: forget === 1 }
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
      connection.statement(statements.forgetDead).run({ before: now - keepDeadMs })
    })
  }
}

function parametersOf({ observer, gone, rebooted, silent }: Observation) {
  return { observer, gone: JSON.stringify(gone), rebooted: JSON.stringify(rebooted), silent: silent ? 1 : 0 }
}
