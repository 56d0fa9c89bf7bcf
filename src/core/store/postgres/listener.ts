import { systemClock, type Timer } from '../../clock.ts'
import { defaults } from '../../defaults.ts'
import type { Connection } from './connection.ts'
import { identifier } from './statement.ts'

/** Opens a session of its own: `onNotify` hears notifications, `onClose` its end, whatever the reason. */
export type OpenSession = (hooks: {
  readonly onNotify: () => void
  readonly onClose: () => void
}) => Promise<Connection>

/**
 * Listens on one channel, over a session of its own: an optimisation, polling is the truth.
 *
 * A session that breaks is opened again after a second and then ever later, up to half a minute. What was told meanwhile
 * is lost, so that the listener hears a wake-up as soon as it listens again.
 */
export class Listener {
  readonly #open: OpenSession
  readonly #channel: string
  readonly #onWake: () => void
  #connection: Connection | null = null
  #timer: Timer | null = null
  #failures = 0
  #isClosed = false

  constructor(open: OpenSession, channel: string, onWake: () => void) {
    this.#open = open
    this.#channel = channel
    this.#onWake = onWake
    void this.#listen()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#connection?.destroy()
  }

  async #listen(): Promise<void> {
    let connection: Connection | null = null
    try {
      connection = await this.#open({ onNotify: this.#onWake, onClose: () => this.#onClose() })
      await connection.run(`listen ${identifier(this.#channel)}`, [])
      this.#connection = connection
      this.#failures = 0
      if (this.#isClosed) connection.destroy()
      else this.#onWake()
    } catch {
      // Whoever works hears of the outage by its own statements.
      connection?.destroy()
      this.#later()
    }
  }

  #onClose(): void {
    if (this.#connection === null) return
    this.#connection = null
    this.#later()
  }

  #later(): void {
    if (this.#isClosed) return
    const pauseMs = Math.min(defaults.longestListenPauseMs, 1_000 * 2 ** this.#failures++)
    this.#timer = systemClock.after(pauseMs, () => void this.#listen())
  }
}
