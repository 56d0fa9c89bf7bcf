import type { Clock, Timer } from '../../../src/core/clock.ts'
import type { Store } from '../../../src/core/store/store.ts'

/**
 * Is a process that a test plays: it can be stopped, continued and killed as a real one.
 *
 * While it stands still its timers and the answers of its store wait; once it is dead they never come. What it has sent
 * to the store is done all the same, as it would be.
 */
export class VirtualProcess {
  readonly clock: Clock
  readonly store: Store
  #isDead = false
  #paused: PromiseWithResolvers<void> | null = null

  constructor(clock: Clock, store: Store) {
    this.clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (ms, run): Timer => clock.after(ms, () => void this.gate().then(run)),
    }
    this.store = through(store, (send) => this.#call(send))
  }

  get isDead(): boolean {
    return this.#isDead
  }

  stop(): void {
    this.#paused ??= Promise.withResolvers()
  }

  continue(): void {
    this.#paused?.resolve()
    this.#paused = null
  }

  kill(): void {
    this.#isDead = true
    this.continue()
  }

  /** Resolves when the process runs; never once it is dead. */
  async gate(): Promise<void> {
    while (this.#paused) await this.#paused.promise
    if (this.#isDead) await never
  }

  async #call<T>(send: () => Promise<T>): Promise<T> {
    await this.gate()
    const answer = await send()
    await this.gate()
    return answer
  }
}

/** What a dead process waits for. */
export const never: Promise<never> = new Promise(() => {})

/** The same object, with every call of a method led through `call`. */
function through<T extends object>(inner: T, call: (send: () => Promise<unknown>) => Promise<unknown>): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (...words: unknown[]) => call(async () => Reflect.apply(method, target, words))
    },
  })
}
