import { never } from '../continuations.ts'
import { survivor } from '../recovery.ts'
import type { Filter, Reservation, Wish } from '../store.ts'
import type { Connection } from './connection.ts'
import { filterParameters, type Statements } from './statements.ts'

/** A job that could be reserved, as it was read: the fence it has now, the suspect flag as a number. */
export interface Candidate extends Omit<Reservation, 'suspect' | 'envelope'> {
  readonly suspect: number
  /** Of its envelope. */
  readonly bytes: number
  /** null: too long to be read before it is clear that it is wanted. */
  readonly envelope: string | null
}

/** What `level` and `beyond` answer: an array costs a third less than an object with names. */
type FoundRow = readonly [
  id: number,
  fence: number,
  job: string,
  queue: string,
  priority: number,
  availableAt: number,
  enqueuedAt: number,
  failures: number,
  crashes: number,
  suspect: number,
  bytes: number,
  envelope: string | null,
]

/** So many priorities of a queue are looked at one by one; whatever lies beyond is one ordered scan. */
const mostLevels = 64

/** Below every priority. */
const bottom = Number.MIN_SAFE_INTEGER

/** One queue on its walk up the priorities that exist in it; null: no more. */
interface Cursor {
  readonly queue: string
  priority: number | null
}

/**
 * Finds what a worker could take, without taking it.
 *
 * It walks from one existing priority to the next and reads the due jobs of each in order. One range of the index per
 * level costs the same however many jobs of a better priority are not due yet; a single ordered scan would read them all.
 */
export class Selection {
  readonly #connection: Connection
  readonly #statements: Statements
  readonly #now: number

  constructor(connection: Connection, statements: Statements, now: number) {
    this.#connection = connection
    this.#statements = statements
    this.#now = now
  }

  /** The jobs that fulfil the wish, in the order in which they should run. A suspect comes alone or not at all. */
  candidates(wish: Wish): readonly Candidate[] {
    const taken = this.#haul(wish)
    if (taken.jobs[0]?.suspect === 1) return taken.jobs.slice(0, 1)
    const jobs = taken.hasMetSuspect ? this.#haul({ ...wish, suspects: false }).jobs : taken.jobs
    // A survivor comes to be started, or not at all; nor does what stands behind it.
    const first = jobs.findIndex((job, place) => job.suspect === survivor && place >= wish.started)
    return first === -1 ? jobs : jobs.slice(0, first)
  }

  /** When the earliest job that the filter could take is due, epoch milliseconds; at most now means at once. */
  earliestDue(filter: Filter): number | null {
    let earliest: number | null = null
    for (const queue of this.#groups(filter).flat())
      for (const dueAt of this.#dueTimes(queue, filter)) {
        if (dueAt <= this.#now) return dueAt
        earliest = Math.min(dueAt, earliest ?? dueAt)
      }
    return earliest
  }

  #haul(wish: Wish): Haul {
    const taken = new Haul(wish.limit, wish.maxBytes)
    for (const group of this.#groups(wish)) {
      if (taken.isFull) break
      this.#takeFrom(group, wish, taken)
    }
    return taken
  }

  /** The groups of the filter without paused, excepted and repeated queues. */
  #groups(filter: Filter): readonly (readonly string[])[] {
    const paused = this.#pluck(this.#statements.pausedQueues, { now: this.#now })
    const skipped = new Set([...paused, ...filter.exceptQueues])
    const groups = filter.queues === 'all' ? [this.#pluck(this.#statements.freeQueues, {})] : filter.queues
    return groups.map((group) => group.filter((queue) => !skipped.has(queue) && skipped.add(queue)))
  }

  #takeFrom(group: readonly string[], wish: Wish, taken: Haul): void {
    const cursors = group.map((queue): Cursor => ({ queue, priority: this.#nextLevel(queue, bottom) }))
    for (let levels = 0; levels < mostLevels; levels++) {
      const priority = lowest(cursors)
      if (priority === null) return
      const level = cursors.filter((cursor) => cursor.priority === priority)
      taken.add(this.#level(level, { wish, taken, priority }))
      if (taken.isFull) return
      for (const cursor of level) cursor.priority = this.#nextLevel(cursor.queue, priority)
    }
    const priority = lowest(cursors)
    if (priority === null) return
    const rest = cursors.filter((cursor) => cursor.priority !== null)
    taken.add(this.#beyond(rest, { wish, taken, priority: priority - 1 }))
  }

  /** Reads one level of several queues as if they were one. What comes after the last that fits is not read at all. */
  #level(cursors: readonly Cursor[], { wish, taken, priority }: LevelRead): readonly Candidate[] {
    const text = this.#statements.level(wish)
    let merged: readonly Candidate[] = []
    for (const { queue } of cursors) {
      const last = merged.length === taken.room ? merged.at(-1) : undefined
      const parameters = { queue, priority, due: last?.availableAt ?? this.#now }
      merged = this.#merge(merged, text, { wish, taken, parameters })
    }
    return merged
  }

  #beyond(cursors: readonly Cursor[], { wish, taken, priority }: LevelRead): readonly Candidate[] {
    const text = this.#statements.beyond(wish)
    let merged: readonly Candidate[] = []
    for (const { queue } of cursors) {
      const parameters = { queue, priority, due: this.#now }
      merged = this.#merge(merged, text, { wish, taken, parameters })
    }
    return merged
  }

  #merge(merged: readonly Candidate[], text: string, { wish, taken, parameters }: Merge): readonly Candidate[] {
    const limit = taken.room
    // However many they are, what they bring along stays within the bytes that are wanted.
    const inlineBytes = Math.floor(wish.maxBytes / limit)
    const all = { ...filterParameters(wish), ...parameters, limit, inlineBytes }
    const rows = this.#connection.statement(text).raw().all(all) as FoundRow[]
    const read = taken.within(rows.map(candidateOf))
    return merged.length === 0 ? read : taken.within([...merged, ...read].sort(inRunOrder))
  }

  *#dueTimes(queue: string, filter: Filter): Generator<number> {
    const parameters = filterParameters(filter)
    let priority = this.#nextLevel(queue, bottom)
    for (let levels = 0; levels < mostLevels && priority !== null; levels++) {
      yield* this.#dueTime(this.#statements.levelDue(filter), { ...parameters, queue, priority })
      priority = this.#nextLevel(queue, priority)
    }
    if (priority === null) return
    yield* this.#dueTime(this.#statements.beyondDue(filter), { ...parameters, queue, priority: priority - 1 })
  }

  #dueTime(text: string, parameters: object): readonly number[] {
    const dueAt = this.#connection.statement(text).pluck().get(parameters) as number | null | undefined
    return typeof dueAt === 'number' && dueAt !== never ? [dueAt] : []
  }

  #nextLevel(queue: string, above: number): number | null {
    return this.#connection.statement(this.#statements.nextLevel).pluck().get({ queue, above }) as number | null
  }

  #pluck(text: string, parameters: object): string[] {
    return this.#connection.statement(text).pluck().all(parameters) as string[]
  }
}

interface LevelRead {
  readonly wish: Wish
  readonly taken: Haul
  readonly priority: number
}

interface Merge {
  readonly wish: Wish
  readonly taken: Haul
  readonly parameters: object
}

/** What has been found so far, within the limits on number and bytes. */
class Haul {
  readonly jobs: Candidate[] = []
  readonly #limit: number
  readonly #maxBytes: number
  #bytes = 0
  #full: boolean
  #hasMetSuspect = false

  constructor(limit: number, maxBytes: number) {
    this.#limit = limit
    this.#maxBytes = maxBytes
    this.#full = limit <= 0
  }

  get isFull(): boolean {
    return this.#full
  }

  /** Whether a suspect was among the jobs, the first that did not fit included. */
  get hasMetSuspect(): boolean {
    return this.#hasMetSuspect
  }

  /** How many more jobs may come. */
  get room(): number {
    return this.#limit - this.jobs.length
  }

  /** The first of these jobs that still fit. One more than fits in bytes is kept, as the sign that it did not. */
  within(jobs: Iterable<Candidate>): Candidate[] {
    const fitting: Candidate[] = []
    let bytes = this.#bytes
    for (const job of jobs) {
      fitting.push(job)
      bytes += job.bytes
      if (fitting.length >= this.room || bytes > this.#maxBytes) break
    }
    return fitting
  }

  /** Adds jobs in order, up to the first that does not fit; the very first always does. */
  add(jobs: readonly Candidate[]): void {
    for (const job of jobs) {
      this.#hasMetSuspect ||= job.suspect === 1
      this.#bytes += job.bytes
      if (this.#bytes > this.#maxBytes && this.jobs.length > 0) this.#full = true
      if (this.#full) return
      this.jobs.push(job)
      this.#full = this.jobs.length >= this.#limit
    }
  }
}

function candidateOf(row: FoundRow): Candidate {
  const [id, fence, job, queue, priority, availableAt, enqueuedAt, failures, crashes, suspect, bytes, envelope] = row
  return { id, fence, job, queue, priority, availableAt, enqueuedAt, failures, crashes, suspect, bytes, envelope }
}

function lowest(cursors: readonly Cursor[]): number | null {
  const priorities = cursors.flatMap(({ priority }) => (priority === null ? [] : [priority]))
  return priorities.length === 0 ? null : priorities.reduce((least, priority) => Math.min(least, priority))
}

function inRunOrder(a: Candidate, b: Candidate): number {
  return a.priority - b.priority || a.availableAt - b.availableAt || a.id - b.id
}
