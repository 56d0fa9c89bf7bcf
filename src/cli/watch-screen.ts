import type { Admin } from '../core/store/admin.ts'
import { asKhepriError } from './report.ts'
import type { Snapshot } from './snapshots.ts'
import type { Stdout } from './stdout.ts'
import type { Paint } from './style.ts'
import { firstView, type Order, press } from './watch-keys.ts'
import { frameLines, targetsOf, type View } from './watch-view.ts'

export interface WatchScreenOptions {
  /** The database as messages show it. */
  readonly label: string
  readonly admin: Admin
  readonly stdout: Stdout
  readonly stdin: NodeJS.ReadStream
  readonly paint: Paint
  /** Called when the person wants to leave. */
  readonly onQuit: () => void
}

/** Another screen, without a cursor, and back. */
const enter = '\u001b[?1049h\u001b[?25l'
const leave = '\u001b[?25h\u001b[?1049l'

/** So many snapshots a sparkline goes back. */
const trendLength = 20

/** The live screen of `khepri watch`: draws each snapshot, and does what keys ask for. */
export class WatchScreen {
  readonly #options: WatchScreenOptions
  readonly #trends = new Map<string, number[]>()
  readonly #onKey = (key: Buffer): void => this.#press(key.toString())
  readonly #onResize = (): void => this.#draw()
  #view: View = firstView
  #snapshot: Snapshot | null = null

  constructor(options: WatchScreenOptions) {
    this.#options = options
    const { stdin, stdout } = options
    if (stdin.isTTY) stdin.setRawMode(true).resume().on('data', this.#onKey)
    stdout.stream.on('resize', this.#onResize)
    this.#write(enter)
  }

  /** Draws a snapshot. */
  show(snapshot: Snapshot): void {
    for (const { queue, ready, scheduled } of snapshot.queues)
      this.#trends.set(queue, [...(this.#trends.get(queue) ?? []), ready + scheduled].slice(-trendLength))
    this.#snapshot = snapshot
    this.#draw()
  }

  /** Says something below the tables. */
  note(text: string): void {
    this.#view = { ...this.#view, note: text }
    this.#draw()
  }

  /** Gives the terminal back as it was. */
  close(): void {
    const { stdin, stdout } = this.#options
    stdout.stream.off('resize', this.#onResize)
    if (stdin.isTTY) stdin.off('data', this.#onKey).setRawMode(false).pause()
    this.#write(leave)
  }

  #press(key: string): void {
    const targets = this.#snapshot === null ? [] : targetsOf(this.#snapshot, this.#view.filter)
    const { view, order } = press(this.#view, key, targets)
    this.#view = view
    if (order?.kind === 'quit') return this.#options.onQuit()
    if (order !== null) void this.#obey(order)
    this.#draw()
  }

  async #obey(order: Exclude<Order, { readonly kind: 'quit' }>): Promise<void> {
    try {
      this.note(await done(this.#options.admin, order))
    } catch (error) {
      this.note(`error: ${asKhepriError(error).message}`)
    }
  }

  #draw(): void {
    const { label, stdout, paint } = this.#options
    if (this.#snapshot === null) return
    const lines = frameLines({
      ...{ label, paint, snapshot: this.#snapshot, trends: this.#trends, view: this.#view },
      width: stdout.width,
      height: stdout.stream.rows || 24,
    })
    this.#write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join('\r\n')}\u001b[J`)
  }

  /** A terminal that has gone ends the command by its next look. */
  #write(text: string): void {
    this.#options.stdout.write(text).catch(() => this.#options.onQuit())
  }
}

/** Does what was ordered; the result says what that was. */
async function done(admin: Admin, { kind, target }: Exclude<Order, { readonly kind: 'quit' }>): Promise<string> {
  switch (kind) {
    case 'retry': {
      const { retried, blocked } = await admin.retryFailed([target], 0)
      if (retried.length > 0) return `retried ${target.id}`
      return blocked.length > 0
        ? `${target.id} stays failed: a live job holds its unique key`
        : `${target.id} is not failed any more`
    }
    case 'cancel': {
      const { cancelled, marked } = await admin.cancel([target.id])
      return cancelled.length + marked.length > 0 ? `cancelled ${target.id}` : `${target.id} has ended already`
    }
    case 'pause':
      await admin.pause([target.queue], null, 'paused from khepri watch')
      return `paused ${target.queue}`
    case 'resume':
      await admin.resume([target.queue])
      return `resumed ${target.queue}`
  }
}
