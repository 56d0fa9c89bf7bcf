import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { Client, Payload, Peer } from '../peer.ts'

const name = 'bench'
const connect = (database: string): Redis => new Redis(database, { maxRetriesPerRequest: null })

/** BullMQ on Redis, fifty slots: for reference, since nothing of it is on a disk. */
export const peer: Peer = {
  async prepare() {},

  async open({ database }): Promise<Client> {
    const connection = connect(database)
    const queue = new Queue(name, { connection })
    return {
      addOne: async ({ payload, tries, delayMs }) => {
        await queue.add(name, payload, { attempts: tries, delay: delayMs, removeOnComplete: true })
      },
      addMany: async (jobs) => {
        await queue.addBulk(
          jobs.map(({ payload, tries, delayMs }) => ({
            name,
            data: payload,
            opts: { attempts: tries, delay: delayMs, removeOnComplete: true },
          })),
        )
      },
      left: async () => {
        const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized')
        return Object.values(counts).reduce((sum, count) => sum + count, 0)
      },
      async close() {
        await queue.close()
        connection.disconnect()
      },
    }
  },

  async drain({ database }, concurrency, handle) {
    const connection = connect(database)
    const worker = new Worker<Payload>(name, async ({ data, attemptsMade }) => handle(data, attemptsMade + 1), {
      connection,
      concurrency: concurrency ?? 50,
    })
    worker.on('error', () => {})
    await worker.waitUntilReady()
    return {
      async stop() {
        await worker.close()
        connection.disconnect()
      },
    }
  },
}
