import type Database from 'better-sqlite3'
import { buildDBClient, Runner, SqliteQueue } from 'liteque'
import type { Client, Payload, Peer, Place } from '../peer.ts'

/**
 * liteque hands the driver's `transaction` a function that answers a promise, which better-sqlite3 refuses from
 * version 12 on. Older ones committed as soon as they had the promise; so does this.
 */
function allowPromises(db: object): void {
  const { client } = (db as { readonly session: { readonly client: Database.Database } }).session
  const transaction = (run: (...parameters: unknown[]) => unknown) => {
    const started = (...parameters: unknown[]): unknown => {
      client.exec('begin')
      try {
        return run(...parameters)
      } finally {
        client.exec('commit')
      }
    }
    return Object.assign(started, { deferred: started, immediate: started, exclusive: started })
  }
  Object.assign(client, { transaction })
}

function open(place: Place): SqliteQueue<Payload> {
  const db = buildDBClient(place.database, { runMigrations: true, walEnabled: true })
  allowPromises(db)
  return new SqliteQueue<Payload>('bench', db, { defaultJobArgs: { numRetries: 0 }, keepFailedJobs: true })
}

/** liteque with its write-ahead log, the shortest poll and ten slots. */
export const peer: Peer = {
  async prepare(place) {
    open(place)
  },

  async open(place): Promise<Client> {
    const queue = open(place)
    return {
      addOne: async ({ payload, tries, delayMs, urgent }) => {
        await queue.enqueue(payload, { numRetries: tries - 1, delayMs, priority: urgent ? -1 : 0 })
      },
      addMany: null,
      async left() {
        const { pending, pending_retry, running } = await queue.stats()
        return pending + pending_retry + running
      },
      close: async () => {},
    }
  },

  async drain(place, concurrency, handle) {
    const run = async ({ data, runNumber }: { readonly data: Payload; readonly runNumber: number }): Promise<void> =>
      handle(data, runNumber + 1)
    const options = { concurrency: concurrency ?? 10, pollIntervalMs: 1, timeoutSecs: 60 }
    const runner = new Runner<Payload>(open(place), { run }, options)
    const finished = runner.run()
    return {
      async stop() {
        runner.stop()
        await finished
      },
    }
  },
}
