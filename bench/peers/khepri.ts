import type { createKhepri as CreateKhepri, DispatchOptions, Khepri } from '../../src/index.ts'
import type { Client, Handle, NewJob, Payload, Peer, Place } from '../peer.ts'

type Jobs = Readonly<Record<string, (payload: Payload, context: { readonly attempt: number }) => unknown>>

/** The build, as a user's program would find it. */
const { createKhepri } = (await import(new URL('../../dist/index.js', import.meta.url).href)) as {
  createKhepri: typeof CreateKhepri
}

const isPostgres = (place: Place): boolean => place.database.startsWith('postgres:')

/** What khepri's setting `database` says of this place. */
export function databaseOf(place: Place): string {
  return isPostgres(place) ? place.database : `sqlite:${place.database}`
}

function open(place: Place, handle: Handle): Khepri<Jobs> {
  const jobs: Jobs = { bench: (payload, { attempt }) => handle(payload, attempt) }
  return createKhepri<Jobs>({ database: databaseOf(place), jobs }, { root: place.folder })
}

function optionsOf({ tries, delayMs, urgent }: NewJob): DispatchOptions {
  return {
    ...(tries > 1 && { tries, backoff: { kind: 'none' } }),
    ...(delayMs > 0 && { delay: delayMs }),
    ...(urgent && { priority: -1 }),
  }
}

/** khepri through its public library, in its defaults; failing jobs are tried again at once. */
export const peer: Peer = {
  async prepare(place) {
    const khepri = open(place, () => {})
    await khepri.migrate()
    await khepri.close()
  },

  async open(place): Promise<Client> {
    const khepri = open(place, () => {})
    return {
      addOne: async (job) => {
        await khepri.dispatch('bench', job.payload, optionsOf(job))
      },
      addMany: async (jobs) => {
        await khepri.dispatchMany(jobs.map((job) => ({ job: 'bench', payload: job.payload, ...optionsOf(job) })))
      },
      async left() {
        const counts = await (await khepri.admin()).counts()
        return counts.reduce((sum, { ready, running, scheduled }) => sum + ready + running + scheduled, 0)
      },
      close: () => khepri.close(),
    }
  },

  async drain(place, concurrency, handle) {
    const khepri = open(place, handle)
    await khepri.work(concurrency === null ? {} : { concurrency })
    return { stop: () => khepri.close() }
  },
}
