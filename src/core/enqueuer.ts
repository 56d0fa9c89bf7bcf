import { isKhepriError } from './errors.ts'
import type { Enqueued, NewJob, Store } from './store/store.ts'

/** Statements under way at once: while one commits the next gathers. */
const mostFlights = 2

/** A shared statement holds no more rows than this, and a call that has more goes alone. */
const mostRows = 1_000

interface Waiting {
  readonly jobs: readonly NewJob[]
  readonly resolve: (enqueued: readonly Enqueued[]) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets concurrent dispatches of one process share statements, and so commits: each caller still waits for its own.
 *
 * No timer: a call goes at once unless two statements are under way, and whatever comes meanwhile goes with the next one.
 * Unique keys and jobs that wait for others never share: who waits for the holder of a key, or names a parent that there
 * never was, would make strangers wait, or fail.
 */
export class Enqueuer {
  readonly #store: Pick<Store, 'enqueue'>
  #waiting: Waiting[] = []
  #flights = 0
  #isScheduled = false

  constructor(store: Pick<Store, 'enqueue'>) {
    this.#store = store
  }

  /** Writes the jobs of one call, all or none; answers in their order. Rejects with what the store says of this call. */
  enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    if (jobs.length > mostRows || jobs.some(goesAlone)) return this.#store.enqueue(jobs)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ jobs, resolve, reject })
      this.#schedule()
    })
  }

  /** Calls of the same moment go together: all of them have come by the next microtask. */
  #schedule(): void {
    if (this.#isScheduled || this.#flights >= mostFlights || this.#waiting.length === 0) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      void this.#send(this.#next())
      this.#schedule()
    })
  }

  /** The calls of the next statement, in the order in which they came. */
  #next(): readonly Waiting[] {
    let rows = 0
    const tooMany = this.#waiting.findIndex(({ jobs }, index) => {
      rows += jobs.length
      return index > 0 && rows > mostRows
    })
    return this.#waiting.splice(0, tooMany === -1 ? this.#waiting.length : tooMany)
  }

  async #send(calls: readonly Waiting[]): Promise<void> {
    this.#flights++
    try {
      const enqueued = await this.#store.enqueue(calls.flatMap(({ jobs }) => jobs))
      let from = 0
      for (const { jobs, resolve } of calls) {
        resolve(enqueued.slice(from, from + jobs.length))
        from += jobs.length
      }
    } catch (error) {
      if (calls.length > 1 && isRefusal(error)) await this.#sendAlone(calls)
      else for (const { reject } of calls) reject(error)
    } finally {
      this.#flights--
      this.#schedule()
    }
  }

  /** One of them was refused, and nobody else is to suffer from it. */
  async #sendAlone(calls: readonly Waiting[]): Promise<void> {
    for (const { jobs, resolve, reject } of calls) await this.#store.enqueue(jobs).then(resolve, reject)
  }
}

/** It may be refused, or have to wait. */
const goesAlone = ({ uniqueKey, after = [] }: NewJob): boolean => uniqueKey !== null || after.length > 0

/** The store is there and has written nothing, because it does not want what it was given. */
function isRefusal(error: unknown): boolean {
  return isKhepriError(error) && error.code === 'STORE_FAILED'
}
