import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

/** The file is told of before its change can be seen, so it is looked at again a little later. */
const lookAgainMs = [1, 5] as const

/**
 * Hears of commits of others in an SQLite file, while armed, and then once: an optimisation, polling is the truth.
 *
 * Every commit writes to the log beside the file; whether it was somebody else's, `PRAGMA data_version` tells. The folder
 * is watched and not the log, which goes and comes with its last connection. Where nothing can be watched (too many
 * watches, some network and container file systems) nothing is heard.
 */
export class WalWatch {
  readonly #log: string
  readonly #version: () => number
  readonly #onChange: () => void
  #watcher: FSWatcher | null = null
  #timers: NodeJS.Timeout[] = []
  /** The version that was seen when it was armed; null: nobody sleeps. */
  #armedAt: number | null = null

  /** version: reads `data_version` of the connection that reserves; -1 where it cannot be read just now. */
  constructor(path: string, version: () => number, onChange: () => void) {
    this.#log = `${basename(path)}-wal`
    this.#version = version
    this.#onChange = onChange
    try {
      this.#watcher = watch(dirname(path), { persistent: false }, (_, name) => {
        if (name === this.#log) this.#onEvent()
      }).on('error', () => this.close())
    } catch {
      this.#watcher = null
    }
  }

  /** From now on the next commit of somebody else is told. */
  arm(): void {
    this.#armedAt = this.#version()
  }

  close(): void {
    this.#armedAt = null
    this.#stopLooking()
    this.#watcher?.close()
    this.#watcher = null
  }

  #onEvent(): void {
    if (this.#armedAt === null || this.#timers.length > 0) return
    if (this.#look()) return
    this.#timers = lookAgainMs.map((ms, index) =>
      setTimeout(() => {
        if (this.#look() || index === lookAgainMs.length - 1) this.#stopLooking()
      }, ms).unref(),
    )
  }

  /** True: somebody else has committed, and it was told. */
  #look(): boolean {
    const armedAt = this.#armedAt
    if (armedAt === null) return true
    if (this.#version() === armedAt) return false
    this.#armedAt = null
    this.#onChange()
    return true
  }

  #stopLooking(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers = []
  }
}
