import type { Watch, Watched } from './beat.ts'

/** Numbers of one entry: whether it is in use, and the members of a Watched. */
const fields = 7

/** Entries for as many attempts at once; more than that are not watched. */
const places = 1_024

/**
 * Memory that the main thread writes and the beat thread reads, also while the main thread is blocked: a counter that
 * shows whether the event loop turns, and the attempts that are bound in time.
 *
 * An entry is read only once the counter stands still, so that nobody is writing it at that moment.
 */
export class WatchBoard implements Watch {
  readonly memory: SharedArrayBuffer
  readonly #ticks: Int32Array
  readonly #entries: Float64Array
  readonly #free: number[] = []
  #used = 0

  /** memory: of a board of another thread; without it the board is new. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(8 + places * fields * 8)) {
    this.memory = memory
    this.#ticks = new Int32Array(memory, 0, 1)
    this.#entries = new Float64Array(memory, 8)
  }

  /** How often the event loop has shown that it turns. */
  get ticks(): number {
    return Atomics.load(this.#ticks, 0)
  }

  tick(): void {
    Atomics.add(this.#ticks, 0, 1)
  }

  enter(watched: Watched): () => void {
    const place = this.#free.pop() ?? (this.#used < places ? this.#used++ : null)
    if (place === null) return () => {}
    const { id, fence, attempt, startedAt, timeoutMs, retryMs } = watched
    this.#entries.set([1, id, fence, attempt, startedAt, timeoutMs, retryMs ?? -1], place * fields)
    return () => {
      this.#entries[place * fields] = 0
      this.#free.push(place)
    }
  }

  /** Every attempt that is watched now. */
  get watched(): readonly Watched[] {
    const found: Watched[] = []
    for (let at = 0; at < this.#entries.length; at += fields) {
      const [isUsed, id, fence, attempt, startedAt, timeoutMs, retryMs] = this.#entries.subarray(at, at + fields)
      if (isUsed !== 1) continue
      found.push({
        id: id as number,
        fence: fence as number,
        attempt: attempt as number,
        startedAt: startedAt as number,
        timeoutMs: timeoutMs as number,
        retryMs: retryMs === -1 ? null : (retryMs as number),
      })
    }
    return found
  }
}
