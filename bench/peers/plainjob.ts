import Database from 'better-sqlite3'
import { better, defineQueue, defineWorker, type Logger } from 'plainjob'
import type { Client, Payload, Peer, Place } from '../peer.ts'

const logger: Logger = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} }
const statusDone = 2
/** Of its worker: the least that keeps pick-up near what it can do; its default is a second. */
const pollMs = 1

function open(place: Place, synchronous: 'NORMAL' | 'FULL') {
  const db = new Database(place.database)
  const queue = defineQueue({ connection: better(db), logger })
  db.pragma(`synchronous = ${synchronous}`)
  return { db, queue }
}

/** plainjob; synchronous: it sets NORMAL itself, where a power cut may lose the last commits. */
export function plainjob(synchronous: 'NORMAL' | 'FULL'): Peer {
  return {
    async prepare(place) {
      open(place, synchronous).queue.close()
    },

    async open(place): Promise<Client> {
      const { db, queue } = open(place, synchronous)
      return {
        addOne: async ({ payload, delayMs }) => {
          queue.add('bench', payload, { delay: delayMs })
        },
        addMany: async (jobs) => {
          queue.addMany(
            'bench',
            jobs.map(({ payload }) => payload),
            { delay: jobs[0]?.delayMs ?? 0 },
          )
        },
        left: async () =>
          db.prepare<[], number>(`select count(*) from plainjob_jobs where status < ${statusDone}`).pluck().get() ?? 0,
        close: async () => queue.close(),
      }
    },

    async drain(place, _concurrency, handle) {
      const { queue } = open(place, synchronous)
      const worker = defineWorker('bench', ({ data }) => handle(JSON.parse(data) as Payload, 1), {
        queue,
        logger,
        pollIntervall: pollMs,
      })
      void worker.start()
      return {
        async stop() {
          await worker.stop()
          queue.close()
        },
      }
    },
  }
}

/** As it comes: a power cut may lose the last commits. */
export const peer = plainjob('NORMAL')
