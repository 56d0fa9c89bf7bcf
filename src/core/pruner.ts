import type { Clock, Random, Timer } from './clock.ts'
import { defaults } from './defaults.ts'
import { prune, type Retention } from './retention.ts'
import type { Admin } from './store/admin.ts'

/** What pruning beside a worker needs. */
export interface PrunerParts {
  /** Opened at the first time, so that a worker of minutes never loads the cold side. */
  readonly admin: () => Promise<Admin>
  readonly retention: Retention
  readonly clock: Clock
  readonly random: Random
}

/**
 * Prunes once an hour as long as a worker works, so that retention holds without anybody thinking of it.
 *
 * The first time comes after ten to twenty minutes, drawn at random: a fleet that was started at once does not come at
 * once. Whatever goes wrong is left to the next time; the worker itself tells of a store that is lost.
 */
export class Pruner {
  readonly #parts: PrunerParts
  #timer: Timer
  #isStopped = false

  constructor(parts: PrunerParts) {
    this.#parts = parts
    this.#timer = this.#after(defaults.firstPruneMs * (1 + parts.random()))
  }

  /** Prunes no more; a batch that is under way comes to its end. */
  stop(): void {
    this.#isStopped = true
    this.#timer.cancel()
  }

  #after(ms: number): Timer {
    return this.#parts.clock.after(ms, () => void this.#prune())
  }

  async #prune(): Promise<void> {
    try {
      await prune(await this.#parts.admin(), this.#parts.retention, () => this.#refuseStopped())
    } catch {
      // What is old today is old in an hour, too.
    }
    if (!this.#isStopped) this.#timer = this.#after(defaults.pruneEveryMs)
  }

  #refuseStopped(): void {
    if (this.#isStopped) throw new Error('the worker has stopped')
  }
}
