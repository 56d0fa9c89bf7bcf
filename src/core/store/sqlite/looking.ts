import type { Look, Neighbour, Sight } from '../store.ts'
import { filterParameters } from './statements.ts'
import type { Transaction } from './transaction.ts'

/** Looks around for one worker, on one view of the database. */
export function lookIn({ connection, statements, now }: Transaction, { worker, host, held, filter }: Look): Sight {
  const paused = connection.statement(statements.pausedQueues).pluck().all({ now })
  const passed = JSON.stringify([...paused, ...filter.exceptQueues])
  const queues = filter.queues === 'all' ? {} : { queues: JSON.stringify(filter.queues.flat()) }
  const waiting = { ...filterParameters(filter), ...queues, passed, now }
  const dueAt = connection.statement(statements.suspectDue(filter)).pluck().get(waiting) as number | null
  return {
    known: connection.statement(statements.known).get({ worker }) !== undefined,
    restart: connection.statement(statements.restart).get({ worker }) !== undefined,
    cancelled: connection
      .statement(statements.cancelled)
      .pluck()
      .all({ held: JSON.stringify(held) }) as number[],
    neighbours: connection.statement(statements.neighbours).all({ host, worker }) as Neighbour[],
    suspectWaitMs: dueAt === null ? null : now - dueAt,
    newer: connection.statement(statements.newer(filter)).get(waiting) !== undefined,
    waiting: connection.statement(statements.anyParents).pluck().get() === 1,
  }
}
