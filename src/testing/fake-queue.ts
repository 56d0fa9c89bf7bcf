import { AssertionError } from 'node:assert'
import type { Khepri } from '../app.ts'
import type { JobMap, PayloadOf, ValueIn } from '../core/dispatch-call.ts'
import { formatDuration } from '../core/duration.ts'
import { decodeEnvelope } from '../core/envelope.ts'
import { KhepriError } from '../core/errors.ts'
import { Registry } from '../core/registry.ts'
import type { Enqueued, NewJob } from '../core/store/store.ts'
import { keyHeld } from '../core/store/unique-keys.ts'

/** A job that would have been put in. */
export interface PushedJob<Payload = unknown> {
  readonly job: string
  readonly payload: Payload
  readonly queue: string
  readonly priority: number
  /** Milliseconds; 0 where it may run at once, null where a moment was given. */
  readonly delayMs: number | null
  /** Epoch milliseconds; null where no moment was given. */
  readonly at: number | null
  readonly unique: string | null
}

/** A job as assertions name it: its name, or the value that `jobs` holds. */
export type JobNamed<Jobs extends JobMap> = (keyof Jobs & string) | ValueIn<Jobs>

/** The payload of a job that is named in either way. */
export type NamedPayload<Jobs extends JobMap, Named> = Named extends keyof Jobs
  ? PayloadOf<Jobs[Named]>
  : PayloadOf<Named>

/** Tells whether a pushed job is the one that is meant. */
export type PushedTest<Payload> = (payload: Payload, job: PushedJob<Payload>) => boolean

/**
 * Takes what an installation dispatches and writes none of it.
 *
 * Names, payloads, schemas and options are checked as ever. Fails by throwing an AssertionError that lists what was
 * pushed, so any test runner shows it.
 */
export class FakeQueue<Jobs extends JobMap = JobMap> {
  readonly #khepri: Khepri<Jobs>
  readonly #registry: Registry
  readonly #pushed: PushedJob[] = []

  constructor(khepri: Khepri<Jobs>) {
    if (Object.hasOwn(khepri, 'enqueue'))
      throw new KhepriError('USAGE', 'the queue of this khepri is a fake already', { fix: 'call restoreQueue() first' })
    this.#khepri = khepri
    this.#registry = Registry.read(khepri.config)
    Object.defineProperty(khepri, 'enqueue', {
      value: async (jobs: readonly NewJob[]) => jobs.map((job) => this.#push(job)),
      configurable: true,
    })
    Object.defineProperty(khepri, 'enlist', {
      value: (_into: unknown, job: NewJob) => this.#push(job),
      configurable: true,
    })
  }

  /** Fails unless the job was pushed, and where there is a predicate, unless it holds for one of them. */
  assertPushed<Named extends JobNamed<Jobs>>(job: Named, predicate?: PushedTest<NamedPayload<Jobs, Named>>): void {
    const found = this.pushedJobs(job)
    if (found.length === 0) this.#fail(`expected ${this.#nameOf(job)} to be pushed`, this.assertPushed)
    if (predicate && !found.some((each) => predicate(each.payload, each)))
      this.#fail(`${this.#nameOf(job)} was pushed, but the predicate holds for none`, this.assertPushed)
  }

  /** Fails unless exactly so many jobs were pushed, of this one or in all. */
  assertPushedCount(count: number, job?: JobNamed<Jobs>): void {
    const found = job === undefined ? this.#pushed : this.pushedJobs(job)
    const what = job === undefined ? 'jobs' : `of ${this.#nameOf(job)}`
    if (found.length !== count)
      this.#fail(`expected ${count} ${what} to be pushed, got ${found.length}`, this.assertPushedCount)
  }

  /** Fails where the job was pushed; with a predicate, where it holds for one of them. */
  assertNotPushed<Named extends JobNamed<Jobs>>(job: Named, predicate?: PushedTest<NamedPayload<Jobs, Named>>): void {
    const found = this.pushedJobs(job).filter((each) => predicate?.(each.payload, each) ?? true)
    if (found.length > 0) this.#fail(`expected ${this.#nameOf(job)} not to be pushed`, this.assertNotPushed)
  }

  /** Fails where anything was pushed. */
  assertNothingPushed(): void {
    if (this.#pushed.length > 0) this.#fail('expected nothing to be pushed', this.assertNothingPushed)
  }

  /** What was pushed of this job, or of all, in the order of dispatch. */
  pushedJobs<Named extends JobNamed<Jobs>>(job?: Named): readonly PushedJob<NamedPayload<Jobs, Named>>[] {
    const name = job === undefined ? undefined : this.#nameOf(job)
    const found = this.#pushed.filter((each) => name === undefined || each.job === name)
    return found as readonly PushedJob<NamedPayload<Jobs, Named>>[]
  }

  /** Lets the installation write again. */
  restoreQueue(): void {
    for (const name of ['enqueue', 'enlist']) Reflect.deleteProperty(this.#khepri, name)
  }

  [Symbol.dispose](): void {
    this.restoreQueue()
  }

  /** Ids count from 1. Nothing ever ends here, so a unique key stays taken. */
  #push(row: NewJob): Enqueued {
    const holder = this.#pushed.findIndex(({ unique }) => unique !== null && unique === row.uniqueKey)
    if (holder !== -1) return this.#meet(holder, row)
    return { id: this.#pushed.push(pushedJob(row)), duplicate: false }
  }

  #meet(holder: number, row: NewJob): Enqueued {
    const kept: Enqueued = { id: holder + 1, duplicate: true }
    if (row.onConflict === 'error') throw keyHeld(row, kept.id)
    if (row.onConflict !== 'replace') return kept
    this.#pushed[holder] = pushedJob(row)
    return { ...kept, replaced: true }
  }

  #nameOf(job: unknown): string {
    const name = typeof job === 'string' ? job : this.#registry.nameOf(job)
    if (name !== undefined && this.#registry.get(name)) return name
    if (typeof job === 'string') throw this.#registry.unknown(job)
    throw new KhepriError('JOB_UNKNOWN', 'the job that was asserted is not one of the values in jobs', {
      fix: 'name it, or put the value itself into jobs',
    })
  }

  #fail(what: string, stackStartFn: (...parameters: never[]) => unknown): never {
    throw new AssertionError({ message: `${what}; ${described(this.#pushed)}`, stackStartFn })
  }
}

/** Replaces the queue of an installation by a fake, until `restoreQueue()`. */
export function fakeQueue<Jobs extends JobMap>(khepri: Khepri<Jobs>): FakeQueue<Jobs> {
  return new FakeQueue(khepri)
}

function pushedJob({ job, envelope, queue, priority, due, uniqueKey }: NewJob): PushedJob {
  return {
    ...{ job, payload: decodeEnvelope(envelope, job).payload, queue, priority, unique: uniqueKey },
    delayMs: 'delayMs' in due ? due.delayMs : null,
    at: 'at' in due ? due.at : null,
  }
}

const mostShown = 20

function described(pushed: readonly PushedJob[]): string {
  if (pushed.length === 0) return 'nothing was pushed'
  const more = pushed.length > mostShown ? [`  and ${pushed.length - mostShown} more`] : []
  return ['pushed was:', ...pushed.slice(0, mostShown).map(line), ...more].join('\n')
}

function line({ job, payload, queue, delayMs, at, unique }: PushedJob): string {
  const parts = [`  ${job} ${JSON.stringify(payload)} on ${queue}`]
  if (delayMs !== null && delayMs > 0) parts.push(`in ${formatDuration(delayMs)}`)
  if (at !== null) parts.push(`at ${new Date(at).toISOString()}`)
  if (unique !== null) parts.push(`unique ${unique}`)
  return parts.join(', ')
}
