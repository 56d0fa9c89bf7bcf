const closed = 0
const opening = 1
const open = 2
const barred = 3

/**
 * Keeps a thread from being ended while it loads a native module: its registration then finds no JavaScript to throw its
 * errors in, and aborts the whole process. One side opens, the other bars; of the two the first one wins.
 */
export class OpeningGate {
  /** One word, shared by both threads. */
  readonly memory: SharedArrayBuffer
  readonly #state: Int32Array

  constructor(memory = new SharedArrayBuffer(4)) {
    this.memory = memory
    this.#state = new Int32Array(memory)
  }

  /** False: the gate is barred, and nothing may be loaded any more. */
  begin(): boolean {
    const was = Atomics.compareExchange(this.#state, 0, closed, opening)
    return was !== barred
  }

  /** Whatever was loaded is loaded, or has failed. */
  done(): void {
    Atomics.compareExchange(this.#state, 0, opening, open)
  }

  /** True: nothing has been loaded, and nothing will be, so that the thread may be ended at any moment. */
  bar(): boolean {
    const was = Atomics.compareExchange(this.#state, 0, closed, barred)
    return was === closed || was === barred
  }
}
