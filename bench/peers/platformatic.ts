import { randomUUID } from 'node:crypto'
import { type Job, PgStorage, Queue } from '@platformatic/job-queue'
import pg from 'pg'
import type { Client, Payload, Peer, Place } from '../peer.ts'

function open(place: Place, concurrency: number): Queue<Payload, null> {
  const storage = new PgStorage({ connectionString: place.database })
  return new Queue<Payload, null>({ storage, concurrency })
}

/** platformatic's job queue on Postgres, fifty slots. It answers no count, so its tables are asked. */
export const peer: Peer = {
  async prepare(place) {
    const queue = open(place, 1)
    await queue.start()
    await queue.stop()
  },

  async open(place): Promise<Client> {
    const queue = open(place, 1)
    await queue.start()
    const looker = new pg.Pool({ connectionString: place.database, max: 1 })
    return {
      addOne: async ({ payload, tries }) => {
        await queue.enqueue(randomUUID(), payload, { maxAttempts: tries })
      },
      addMany: null,
      async left() {
        const { rows } = await looker.query<{ readonly left: string }>(
          'select (select count(*) from jq_queue) + (select count(*) from jq_processing) as left',
        )
        return Number(rows[0]?.left)
      },
      async close() {
        await looker.end()
        await queue.stop()
      },
    }
  },

  async drain(place, concurrency, handle) {
    const queue = open(place, concurrency ?? 50)
    queue.execute(async ({ payload, attempts }: Job<Payload>): Promise<null> => {
      await handle(payload, attempts)
      return null
    })
    queue.on('error', () => {})
    await queue.start()
    return { stop: () => queue.stop() }
  },
}
