import { setTimeout as wait } from 'node:timers/promises'
import { batchesOf, type JobList, jobOf } from './job-list.ts'
import { type Client, now } from './peer.ts'

/** How many of something took how long. */
export interface Timed {
  readonly count: number
  readonly ms: number
}

/** Jobs of one bulk call. */
const bulk = 1_000
/** Where there is no bulk call, so many adds are under way at once to fill a table: fewer than connections. */
const callers = 8

/** What an agent does for the one that started it, over one open client. */
export const calls = {
  /** Puts jobs in, in whatever way is quickest. */
  async fill(client: Client, { list }: { readonly list: JobList }): Promise<void> {
    if (client.addMany) for (const jobs of batchesOf(list, bulk)) await client.addMany(jobs)
    else await addFrom(callers, client, list, Number.POSITIVE_INFINITY)
  },

  /** Adds with so many callers at once, each waiting for its own before the next, until the list or the time is over. */
  add(client: Client, { list, at, boxMs }: { readonly list: JobList; readonly at: number; readonly boxMs: number }) {
    return addFrom(at, client, list, boxMs)
  },

  /** Adds by calls of a thousand. */
  async addBulk(client: Client, { list, boxMs }: { readonly list: JobList; readonly boxMs: number }): Promise<Timed> {
    if (!client.addMany) throw new Error('it has no bulk call')
    const startedAt = now()
    let count = 0
    for (const jobs of batchesOf(list, bulk)) {
      await client.addMany(jobs)
      count += jobs.length
      if (now() - startedAt > boxMs) break
    }
    return { count, ms: now() - startedAt }
  },

  /** Adds one job each `everyMs`, which says when it was asked for. */
  async trickle(
    client: Client,
    { list, everyMs }: { readonly list: JobList; readonly everyMs: number },
  ): Promise<void> {
    const startedAt = now()
    const adds: Promise<void>[] = []
    for (let n = 0; n < list.count; n++) {
      await wait(Math.max(0, startedAt + n * everyMs - now()))
      const job = jobOf(list, n)
      adds.push(client.addOne({ ...job, payload: { ...job.payload, at: now() } }))
    }
    await Promise.all(adds)
  },

  left(client: Client): Promise<number> {
    return client.left()
  },
} as const

export type Calls = typeof calls

async function addFrom(at: number, client: Client, list: JobList, boxMs: number): Promise<Timed> {
  const startedAt = now()
  let next = 0
  const caller = async (): Promise<void> => {
    while (next < list.count && now() - startedAt < boxMs) await client.addOne(jobOf(list, next++))
  }
  await Promise.all(Array.from({ length: at }, caller))
  return { count: next, ms: now() - startedAt }
}
