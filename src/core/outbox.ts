import type { Finished } from './settlement.ts'
import type { Held } from './store/store.ts'

/** What became of results that were offered to the store. */
export interface Delivery {
  readonly settled: readonly Finished[]
  /** Refused: somebody else holds these jobs by now. */
  readonly lost: readonly Finished[]
}

/**
 * Results that wait to be written. Nothing is dropped: what the store did not take is offered again, until it is
 * written or the fence refuses it.
 */
export class Outbox {
  #waiting: Finished[] = []
  /** Results whose first offer may have been committed without our hearing of it. */
  readonly #uncertain = new Set<Finished>()

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  get size(): number {
    return this.#waiting.length
  }

  get contents(): readonly Finished[] {
    return this.#waiting
  }

  add(finished: Finished): void {
    this.#waiting.push(finished)
  }

  /** Takes everything out, to be offered. */
  take(): readonly Finished[] {
    const offered = this.#waiting
    this.#waiting = []
    return offered
  }

  /** The offer failed; its results go back in front. mayBeWritten: it may have been committed all the same. */
  putBack(offered: readonly Finished[], mayBeWritten: boolean): void {
    if (mayBeWritten) for (const finished of offered) this.#uncertain.add(finished)
    this.#waiting = [...offered, ...this.#waiting]
  }

  /** Sorts an offer by the store's answer. One that may have been written before is refused because it was. */
  sort(offered: readonly Finished[], lost: readonly Held[]): Delivery {
    const refused = new Set(lost.map(({ id }) => id))
    const delivery = { settled: [] as Finished[], lost: [] as Finished[] }
    for (const finished of offered) {
      const mayBeWritten = this.#uncertain.delete(finished)
      const isLost = refused.has(finished.settlement.id) && !mayBeWritten
      delivery[isLost ? 'lost' : 'settled'].push(finished)
    }
    return delivery
  }

  /** Others may hold these jobs by now: a refusal says that they do, whatever may have been written before. */
  forgetDoubts(): void {
    this.#uncertain.clear()
  }

  /** Gives everything up: the worker was declared dead, and these jobs are somebody else's. */
  abandon(): readonly Finished[] {
    this.#uncertain.clear()
    return this.take()
  }
}
