import type { FailedJob } from './store/admin.ts'
import type { JobId } from './store/store.ts'

/** A job in memory that has not ended. */
export interface MemoryJob {
  readonly id: JobId
  readonly job: string
  readonly queue: string
  readonly payload: unknown
}

/** What of a memory store's state is shown. */
interface Shown {
  readonly jobs: ReadonlyMap<JobId, Omit<MemoryJob, 'payload'> & { readonly envelope: string }>
  readonly failed: ReadonlyMap<JobId, FailedJob & { readonly version: number }>
}

/** What is in a memory store, for development and tests. */
export class MemoryQueue {
  readonly #state: Shown
  readonly #drain: () => Promise<number>

  constructor(state: Shown, drain: () => Promise<number>) {
    this.#state = state
    this.#drain = drain
  }

  /** How many jobs have not ended. */
  get size(): number {
    return this.#state.jobs.size
  }

  /** The jobs that have not ended, in the order of their dispatch. */
  get jobs(): readonly MemoryJob[] {
    return [...this.#state.jobs.values()].map(({ id, job, queue, envelope }) => {
      return { id, job, queue, payload: (JSON.parse(envelope) as { payload: unknown }).payload }
    })
  }

  /** The jobs that have failed for good, the first one first. */
  get failed(): readonly FailedJob[] {
    return [...this.#state.failed.values()].map(({ version: _, ...job }) => job)
  }

  /** Runs what is ready, and what that makes ready, on every queue; answers how many runs it took. */
  drain(): Promise<number> {
    return this.#drain()
  }
}
