import { type JobInsert, PgBoss, type SendOptions, type WorkOptions } from 'pg-boss'
import type { Client, NewJob, Payload, Peer, Place } from '../peer.ts'

/** How its workers look for jobs. */
export interface Tuning {
  readonly notify: boolean
  readonly work: WorkOptions
}

function open(place: Place, { notify }: Tuning): PgBoss {
  const boss = new PgBoss({ connectionString: place.database, useListenNotify: notify })
  boss.on('error', () => {})
  return boss
}

function optionsOf({ tries, delayMs, urgent }: NewJob): SendOptions & Omit<JobInsert, 'data'> {
  return {
    retryLimit: tries - 1,
    retryDelay: 0,
    priority: urgent ? 1 : 0,
    ...(delayMs > 0 && { startAfter: new Date(Date.now() + delayMs) }),
  }
}

/** pg-boss: a handler gets a batch, and its jobs end with their own results. */
export function pgBoss(tuning: Tuning): Peer {
  return {
    async prepare(place) {
      const boss = await open(place, tuning).start()
      await boss.createQueue('bench', { notify: tuning.notify })
      await boss.stop({ graceful: false })
    },

    async open(place): Promise<Client> {
      const boss = await open(place, tuning).start()
      return {
        addOne: async (job) => {
          await boss.send('bench', job.payload, optionsOf(job))
        },
        addMany: async (jobs) => {
          await boss.insert(
            'bench',
            jobs.map((job) => ({ data: job.payload, ...optionsOf(job) })),
          )
        },
        async left() {
          const text = "select count(*) as left from pgboss.job where name = 'bench' and state < 'completed'"
          const { rows } = await boss.getDb().executeSql(text)
          return Number((rows[0] as { readonly left: string }).left)
        },
        close: () => boss.stop({ graceful: false }),
      }
    },

    async drain(place, concurrency, handle) {
      const boss = await open(place, tuning).start()
      const options = {
        ...tuning.work,
        includeMetadata: true,
        perJobResults: true,
        ...(concurrency && { batchSize: concurrency, localConcurrency: 1 }),
      } as const
      await boss.work<Payload, unknown, typeof options>('bench', options, (jobs) =>
        Promise.all(
          jobs.map(async ({ id, data, retryCount }) => {
            try {
              await handle(data, retryCount + 1)
              return { id, status: 'completed' as const }
            } catch (error) {
              return { id, status: 'failed' as const, output: { message: String(error) } }
            }
          }),
        ),
      )
      return { stop: () => boss.stop({ graceful: true, timeout: 5_000 }) }
    },
  }
}

/** As it comes: one job at a time, polled for. */
export const peer = pgBoss({ notify: false, work: { localConcurrency: 10 } })
