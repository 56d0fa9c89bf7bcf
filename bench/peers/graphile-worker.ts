import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import type { Client, NewJob, Payload, Peer } from '../peer.ts'

const logger = new Logger(() => () => {})

/** Settings of its workers, as its documentation calls them. */
type Tuning = Pick<
  NonNullable<GraphileConfig.Preset['worker']>,
  'localQueue' | 'completeJobBatchDelay' | 'failJobBatchDelay'
>

function specOf({ tries, delayMs, urgent }: NewJob) {
  return {
    maxAttempts: tries,
    ...(delayMs > 0 && { runAt: new Date(Date.now() + delayMs) }),
    ...(urgent && { priority: -1 }),
  }
}

/** graphile-worker with ten slots and a connection for each. */
export function graphileWorker(tuning: Tuning): Peer {
  return {
    async prepare({ database }) {
      const utils = await makeWorkerUtils({ connectionString: database, logger })
      await utils.migrate()
      await utils.release()
    },

    async open({ database }): Promise<Client> {
      const utils = await makeWorkerUtils({ connectionString: database, logger })
      return {
        addOne: async (job) => {
          await utils.addJob('bench', job.payload, specOf(job))
        },
        addMany: async (jobs) => {
          await utils.addJobs(jobs.map((job) => ({ identifier: 'bench', payload: job.payload, ...specOf(job) })))
        },
        left: () =>
          utils.withPgClient(async (client) => {
            const { rows } = await client.query<{ readonly left: string }>(
              'select count(*) as left from graphile_worker._private_jobs where attempts < max_attempts or locked_at is not null',
            )
            return Number(rows[0]?.left)
          }),
        close: async () => {
          await utils.release()
        },
      }
    },

    async drain({ database }, concurrency, handle) {
      const runner = await run({
        noHandleSignals: true,
        taskList: { bench: async (payload, { job }) => handle(payload as Payload, job.attempts) },
        preset: {
          worker: {
            maxPoolSize: 10,
            ...tuning,
            connectionString: database,
            concurrentJobs: concurrency ?? tuning.localQueue?.size ?? 10,
            logger,
          },
        },
      })
      return { stop: () => runner.stop() }
    },
  }
}

/** As it comes. */
export const peer = graphileWorker({})
