import type { Timer } from '../../../src/core/clock.ts'

interface Entry {
  readonly at: number
  /** Of two entries at one moment the earlier one runs first. */
  readonly order: number
  run: (() => void) | null
}

/** The one true time of a simulation: a queue of what happens when. It stands still but inside `runUntil`. */
export class Timeline {
  /** Milliseconds since the simulation began. */
  now = 0
  steps = 0
  /** A binary heap: the next entry first. */
  readonly #heap: Entry[] = []
  #order = 0

  /** Runs something so many milliseconds from now. */
  after(ms: number, run: () => void): Timer {
    const entry: Entry = { at: this.now + Math.max(0, ms), order: this.#order++, run }
    this.#push(entry)
    return {
      cancel: () => {
        entry.run = null
      },
    }
  }

  /** Lets things happen until the condition holds; false where it does not by then. */
  async runUntil(isDone: () => boolean, deadline: number): Promise<boolean> {
    await settled()
    while (!isDone()) {
      const next = this.#heap[0]
      if (!next || next.at > deadline) {
        this.now = deadline
        return false
      }
      this.#pop()
      if (!next.run) continue
      this.now = next.at
      this.steps++
      next.run()
      await settled()
    }
    return true
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let index = heap.push(entry) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(entry, heap[parent] as Entry)) break
      heap[index] = heap[parent] as Entry
      index = parent
    }
    heap[index] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (!last || heap.length === 0) return
    let index = 0
    for (let child = 1; child < heap.length; child = 2 * index + 1) {
      const other = heap[child + 1]
      if (other && isBefore(other, heap[child] as Entry)) child++
      if (!isBefore(heap[child] as Entry, last)) break
      heap[index] = heap[child] as Entry
      index = child
    }
    heap[index] = last
  }
}

const isBefore = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Resolves when no promise can settle any more without an entry: Node runs a tick only after the last microtask. */
function settled(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)))
}
