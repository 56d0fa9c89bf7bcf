import { createHash } from 'node:crypto'
import type { JobId } from '../../../src/core/store/store.ts'
import type { Timeline } from './timeline.ts'

/** A promise of DESIGN.md, section 3, that did not hold. */
export interface Violation {
  readonly promise: number
  readonly what: string
  readonly jobs: readonly JobId[]
  /** Milliseconds since the simulation began. */
  readonly at: number
}

/** What happened, line by line, and what should not have. */
export class Record {
  readonly violations: Violation[] = []
  readonly #timeline: Timeline
  readonly #lines: string[] = []

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  note(text: string): void {
    this.#lines.push(`${this.#timeline.now.toFixed(3)} ${text}`)
  }

  accuse(promise: number, what: string, jobs: readonly JobId[] = []): void {
    this.violations.push({ promise, what, jobs, at: this.#timeline.now })
    this.note(`VIOLATION of promise ${promise}: ${what}`)
  }

  get lines(): readonly string[] {
    return this.#lines
  }

  /** The same for two runs in which the same things happened at the same times in the same order. */
  get hash(): string {
    return createHash('sha256').update(this.#lines.join('\n')).digest('hex')
  }
}
