import { createPostgresBackend, type Job, Queue, Worker } from 'bullmq'
import type { Client, NewJob, Payload, Peer } from '../peer.ts'

const name = 'bench'
const connectionOf = (database: string) => ({ connectionString: database, max: 10 })

function optionsOf({ tries, delayMs, urgent }: NewJob) {
  return {
    attempts: tries,
    removeOnComplete: true,
    ...(delayMs > 0 && { delay: delayMs }),
    ...(urgent && { priority: 1 }),
  }
}

/** BullMQ on its Postgres backend, fifty slots on ten connections. */
export const peer: Peer = {
  async prepare({ database }) {
    const queue = new Queue(name, { connection: { ...connectionOf(database), migrate: true } }, createPostgresBackend)
    await queue.waitUntilReady()
    await queue.close()
  },

  async open({ database }): Promise<Client> {
    const queue = new Queue(name, { connection: connectionOf(database) }, createPostgresBackend)
    await queue.waitUntilReady()
    return {
      addOne: async (job) => {
        await queue.add(name, job.payload, optionsOf(job))
      },
      addMany: async (jobs) => {
        await queue.addBulk(jobs.map((job) => ({ name, data: job.payload, opts: optionsOf(job) })))
      },
      left: async () => {
        const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized')
        return Object.values(counts).reduce((sum, count) => sum + count, 0)
      },
      close: () => queue.close(),
    }
  },

  async drain({ database }, concurrency, handle) {
    const worker = new Worker(
      name,
      async ({ data, attemptsMade }: Job<Payload>) => handle(data, attemptsMade + 1),
      { connection: connectionOf(database), concurrency: concurrency ?? 50 },
      createPostgresBackend,
    )
    worker.on('error', () => {})
    await worker.waitUntilReady()
    return { stop: () => worker.close() }
  },
}
