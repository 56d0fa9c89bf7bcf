import { fstatSync } from 'node:fs'
import type { Clock } from '../core/clock.ts'
import type { EventBus, Events } from '../core/events.ts'
import {
  describe,
  isProblem,
  isShown,
  journalLine,
  jsonLine,
  type LogLevel,
  pipeLine,
  type Shown,
  type WorkerFacts,
} from './lines.ts'
import type { Screen } from './screen.ts'

/** How a worker's lines are written: for eyes, for pipes and files, for the journal, or as NDJSON. */
export type LineMode = 'terminal' | 'pipe' | 'journal' | 'json'

export interface LogOptions {
  readonly mode: LineMode
  readonly log: LogLevel
  /** No banner and no sentences; only what happens to jobs and to the store. */
  readonly quiet: boolean
  /** Stacks in NDJSON. */
  readonly stacks: boolean
  readonly worker: WorkerFacts
  readonly clock: Clock
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Takes the lines where the mode is `terminal`. */
  readonly screen: Screen | null
}

/** So much text is written without waiting for the turn of the event loop to end. */
const mostBuffered = 64 * 1024

/** Hears a worker's events and writes their lines. Lines of one turn of the event loop are one write. */
export class WorkerLog {
  readonly #options: LogOptions
  /** The worker's name; its first event brings it. */
  #name = ''
  #buffer = ''
  #flushing = false

  constructor(options: LogOptions) {
    this.#options = options
  }

  /** Shows everything that happens on a bus from now on; the result ends it. */
  follow(events: EventBus): () => void {
    return events.onAny((name, event) => this.#hear(name, event))
  }

  /** Writes what waits: somebody else is about to write, and the order should be that of the events. */
  makeRoom(): void {
    this.#options.screen?.makeRoom()
    this.#flush()
  }

  /** Writes what waits. */
  close(): void {
    this.#options.screen?.close()
    this.#flush()
  }

  #hear<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    const { log, mode, worker, stacks, clock, quiet } = this.#options
    if ('worker' in event) this.#name = event.worker
    if (!isShown(name, log)) return
    const at = clock.now()
    if (mode === 'json') {
      const about = name === 'worker.started' ? { ...event, version: worker.version, database: worker.database } : event
      this.#write(jsonLine(name, about, { at, worker: this.#name, stacks }))
    } else if (!quiet || !name.startsWith('worker.')) {
      const shown = describe(name, event, worker)
      if (shown !== null) this.#show(shown, at, isProblem(name))
    }
  }

  /** Prose has no time in a pipe, but a problem is looked up later. */
  #show(shown: Shown, at: number, isDated: boolean): void {
    const { mode, screen, err } = this.#options
    if (screen !== null) screen.show(shown, at)
    else if (shown.kind === 'sentence' && shown.stream === 'err')
      err(`${mode === 'journal' ? journalLine(shown) : isDated ? pipeLine(shown, at) : shown.text}\n`)
    else this.#write(mode === 'journal' ? journalLine(shown) : pipeLine(shown, at))
  }

  #write(line: string): void {
    this.#buffer += `${line}\n`
    if (this.#buffer.length > mostBuffered) this.#flush()
    if (this.#buffer === '' || this.#flushing) return
    this.#flushing = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#flushing = false
    const text = this.#buffer
    this.#buffer = ''
    if (text !== '') this.#options.out(text)
  }
}

/** Tells whether a file descriptor leads to the journal: JOURNAL_STREAM names its device and inode. */
export function isJournal(fd: number, env: NodeJS.ProcessEnv): boolean {
  const stream = env.JOURNAL_STREAM
  if (stream === undefined) return false
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true })
    return stream === `${dev}:${ino}`
  } catch {
    return false
  }
}
