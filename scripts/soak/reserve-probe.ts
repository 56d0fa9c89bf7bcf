import { setTimeout as wait } from 'node:timers/promises'
import type { Reservation, Store, Wish } from '../../src/core/store/store.ts'
import { aWish } from '../../src/testing/conformance/builders.ts'

const everyMs = 100

/** Its beats come this often, and its lease is far longer: it must not be taken for dead by the workers of the soak. */
const beatEveryMs = 10_000
const leaseMs = 60_000

/** A worker of its own that reserves one job ten times a second and takes the time of each reservation. */
export class ReserveProbe {
  readonly #store: Store
  readonly #worker = 1 + Math.floor(Math.random() * (2 ** 48 - 1))
  readonly #stopped = new AbortController()
  #times: number[] = []
  #taken: readonly Reservation[] = []
  #batch = 0
  #beatAt = 0
  #running: Promise<void> = Promise.resolve()

  constructor(store: Store) {
    this.#store = store
  }

  async start(): Promise<void> {
    const identity = { host: 'soak', bootId: null, pidNamespace: null, pid: process.pid, pidStart: null }
    const profile = { ...identity, name: 'probe', version: '0.0.0', queues: '*', concurrency: 1, leaseMs }
    await this.#store.beat({ kind: 'joining', worker: this.#worker, profile })
    this.#running = this.#run()
  }

  /** The 99th percentile of the reservations since the last call, milliseconds. */
  p99(): number {
    const sorted = this.#times.toSorted((a, b) => a - b)
    this.#times = []
    return sorted[Math.floor(sorted.length * 0.99)] ?? 0
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#running
    await this.#store.beat({ kind: 'leaving', worker: this.#worker })
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped
    while (!signal.aborted) {
      await this.#beat()
      const startedAt = performance.now()
      await this.#exchange(this.#wish())
      this.#times.push(performance.now() - startedAt)
      await wait(everyMs, undefined, { signal }).catch(() => {})
    }
    await this.#exchange(null)
  }

  async #beat(): Promise<void> {
    if (performance.now() - this.#beatAt < beatEveryMs) return
    this.#beatAt = performance.now()
    await this.#store.beat({ kind: 'working', worker: this.#worker })
  }

  /** Completes the job of the last one in the same round trip, as a worker does. */
  async #exchange(reserve: Wish | null): Promise<void> {
    const settle = this.#taken.map(({ id, fence }) => ({ id, fence, kind: 'complete', keep: false }) as const)
    const nothing = { enqueue: [], start: [], disown: [] }
    this.#taken = (await this.#store.exchange({ worker: this.#worker, settle, ...nothing, reserve })).reserved
  }

  #wish(): Wish {
    // What fails has to fail where its failure is counted.
    return aWish({ queues: 'all', except: ['fail'], limit: 1, maxBytes: 1_000_000, batch: ++this.#batch })
  }
}
