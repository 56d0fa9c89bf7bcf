import { onTestFinished } from 'vitest'
import { beatInLoop, unwatched } from '../../../src/core/beat.ts'
import { type Envelope, newJob } from '../../../src/core/envelope.ts'
import { KhepriError } from '../../../src/core/errors.ts'
import { EventBus, type Events, type WorkerReport } from '../../../src/core/events.ts'
import { type Handler, handlerBrand } from '../../../src/core/handler.ts'
import { defineJob, type JobOptions } from '../../../src/core/job.ts'
import type { Fate } from '../../../src/core/process-identity.ts'
import { Registry } from '../../../src/core/registry.ts'
import type { Admin } from '../../../src/core/store/admin.ts'
import type { MemoryState } from '../../../src/core/store/memory/state.ts'
import { openMemoryStore } from '../../../src/core/store/memory/store.ts'
import type { AttemptRecord, Due, JobId, Store } from '../../../src/core/store/store.ts'
import type { WorkerParts, WorkOptions } from '../../../src/core/work.ts'
import { Worker } from '../../../src/core/worker.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

/** Jobs by name: a handler, a whole definition, or what `brokenModule` and `module` make. */
export type ShopJobs = Readonly<Record<string, JobOptions<never>['handle'] | Partial<JobOptions<never>> | object>>

/** What a test says of a new job; the rest is usual. */
export interface NewWork extends Partial<Envelope> {
  readonly payload?: unknown
  readonly queue?: string
  readonly priority?: number
  readonly due?: Due
  /** Instead of a proper envelope. */
  readonly text?: string
}

const usual: WorkOptions = {
  queues: 'all',
  queueLimits: new Map(),
  concurrency: 1,
  sleepMs: 1_000,
  restMs: 0,
  once: false,
  stopWhenEmpty: false,
  maxJobs: null,
  maxTimeMs: null,
  drainTimeoutMs: null,
  timeoutMs: null,
  tries: 1,
  backoff: { kind: 'exponential', baseMs: 1_000, maxMs: 3_600_000, jitter: false },
  retryAfterMs: 90_000,
  unknownJobs: 'fail',
  maxPayloadBytes: 1024 * 1024,
  keepDoneMs: null,
  endsWhenBlocked: false,
  name: 'alpha',
  only: null,
  except: [],
}

type Heard = {
  readonly [Name in keyof Events]: { readonly name: Name; readonly at: number; readonly event: Events[Name] }
}[keyof Events]

/** One memory store under one manual clock, the jobs it knows, and everything that its workers said. */
export class Workshop {
  readonly clock: ManualClock
  readonly state: MemoryState
  readonly store: Store
  readonly events = new EventBus()
  readonly heard: Heard[] = []
  readonly #registry: Registry
  readonly #workers: Worker[] = []
  readonly #startedAt: number

  private constructor(registry: Registry) {
    this.clock = new ManualClock()
    this.#startedAt = this.clock.now()
    const { store, state } = openMemoryStore({ clock: this.clock })
    this.store = store
    this.state = state
    this.#registry = registry
    this.events.onAny((name, event) => this.heard.push({ name, at: this.elapsedMs, event } as Heard))
  }

  /** Opens a workshop that is torn down with its test: a worker or a timer that is left over fails it. */
  static async open(jobs: ShopJobs = {}): Promise<Workshop> {
    const entries = Object.entries(jobs).map(([name, job]) => [name, asJob(job)] as const)
    const registry = await Registry.open({ jobs: [{ kind: 'map', entries }], root: '/', file: null })
    const shop = new Workshop(registry)
    onTestFinished(() => shop.#close())
    return shop
  }

  get elapsedMs(): number {
    return this.clock.now() - this.#startedAt
  }

  async add(job: string, work: NewWork = {}): Promise<JobId> {
    const { payload = {}, queue = 'default', priority = 0, due = { delayMs: 0 }, text, ...terms } = work
    const row = newJob(
      { ...plain, job, payloadText: JSON.stringify(payload), dispatchedAt: this.clock.now(), ...terms },
      { queue, priority, due },
    )
    const [enqueued] = await this.store.enqueue([text === undefined ? row : { ...row, envelope: text }])
    return (enqueued as { id: JobId }).id
  }

  /** Starts a worker and lets it do all it can without time passing. */
  async work(
    options: Partial<WorkOptions> = {},
    store: Store = this.store,
    parts: Partial<Pick<WorkerParts, 'fateOf' | 'watch' | 'startBeat'>> = {},
  ): Promise<Worker> {
    const { clock, events } = this
    const worker = await Worker.start(
      { ...usual, ...options },
      {
        ...{ store, registry: this.#registry, events, clock, random: pseudoRandom(), startBeat: beatInLoop, profile },
        ...alone,
        ...parts,
      },
    )
    this.#workers.push(worker)
    await clock.advance(0)
    return worker
  }

  /** Works until nothing is ready, letting so much time pass at most. */
  async workUntilEmpty(
    options: Partial<WorkOptions> = {},
    { withinMs = 0, store = this.store } = {},
  ): Promise<WorkerReport> {
    const worker = await this.work({ stopWhenEmpty: true, ...options }, store)
    return this.finished(worker, withinMs)
  }

  /** The report of a worker that stops within so much time; fails where it does not. */
  async finished(worker: Worker, withinMs = 0): Promise<WorkerReport> {
    let report: WorkerReport | undefined
    void worker.finished.then((value) => {
      report = value
    })
    await this.clock.advance(withinMs)
    if (!report) throw new Error(`the worker has not finished within ${withinMs} ms`)
    return report
  }

  /** Drains a worker and waits for its end. */
  async drain(worker: Worker, withinMs = 0): Promise<WorkerReport> {
    worker.drain()
    return this.finished(worker, withinMs)
  }

  /** The events of one kind so far. */
  all<Name extends keyof Events>(name: Name): readonly Events[Name][] {
    return this.heard.filter((each) => each.name === name).map(({ event }) => event as Events[Name])
  }

  /** When events of one kind were heard, in milliseconds since the workshop was opened. */
  timesOf(name: keyof Events): readonly number[] {
    return this.heard.filter((each) => each.name === name).map(({ at }) => at)
  }

  /** What an operator would use. */
  get admin(): Admin {
    return openMemoryStore({ clock: this.clock, state: this.state }).admin
  }

  attempts(id: JobId): readonly AttemptRecord[] {
    return this.state.attempts.get(id) ?? []
  }

  async #close(): Promise<void> {
    for (const worker of this.#workers) worker.abort()
    await this.clock.advance(300_000)
    await Promise.allSettled(this.#workers.map(({ finished }) => finished))
    if (this.clock.pending > 0) throw new Error(`${this.clock.pending} timers were left behind`)
    // Not one that went while a call of its hung: its row is left to grow silent on purpose.
    const ghosts = [...this.state.workers.values()].filter(({ death, state }) => death === null && state === 'working')
    // After an answer that was lost, a row is left to grow silent, so that others find what may yet be committed.
    const mayLeaveRows = this.all('store.lost').length > 0
    if (ghosts.length > 0 && !mayLeaveRows) throw new Error(`${ghosts.length} workers have left their rows behind`)
  }
}

const plain: Omit<Envelope, 'job' | 'payloadText' | 'dispatchedAt'> = {
  tries: null,
  backoff: null,
  timeoutMs: null,
  maxCrashes: 3,
  unique: null,
  context: null,
  trace: null,
}

/** Nobody watches, and nothing is known of other processes. */
const alone = { watch: unwatched, fateOf: (): Fate => 'unknown' }

const profile = { version: '1.2.3', host: 'here', bootId: null, pidNamespace: null, pid: 4_321, pidStart: null }

function asJob(job: object): unknown {
  if (typeof job === 'function' || handlerBrand in job) return job
  return defineJob({ handle: () => {}, ...job })
}

/** A job whose module is looked at when it is first needed; `load` may throw like an import. */
export function module(load: () => JobOptions<unknown>): object {
  return {
    terms: {},
    [handlerBrand]: (): Handler => {
      const { handle, failed } = load()
      return {
        terms: {},
        hasSchema: false,
        check: (value) => ({ ok: true, value }),
        run: async (payload, context) => handle(payload, context),
        failed: failed ? async (error, context, payload) => failed(error, context, payload) : null,
        toPayload: null,
      }
    },
  }
}

/** A job whose module cannot be imported. */
export function brokenModule(message = './jobs/broken.ts:1: cannot be imported'): object {
  return module(() => {
    throw new KhepriError('MODULE_BROKEN', message)
  })
}

let seeds = 0

/** Different for each worker, the same in each run: Lehmer's generator with the multiplier of Park and Miller. */
function pseudoRandom(): () => number {
  let state = 1 + ((++seeds * 7_919) % 2_147_483_646)
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** A handler that stays until the test opens it; `started` resolves when it runs. */
export class Gate {
  readonly #entered = Promise.withResolvers<AbortSignal>()
  readonly #opened = Promise.withResolvers<unknown>()
  readonly entered: Promise<AbortSignal> = this.#entered.promise
  runs = 0

  /** Waits whatever its signal says. */
  readonly ignoring = (_: unknown, { signal }: { readonly signal: AbortSignal }): Promise<unknown> => {
    this.runs++
    this.#entered.resolve(signal)
    return this.#opened.promise
  }

  /** Waits, and throws its signal's reason when that aborts. */
  readonly obeying = (payload: unknown, context: { readonly signal: AbortSignal }): Promise<unknown> => {
    const aborted = new Promise<never>((_, reject) => {
      context.signal.addEventListener('abort', () => reject(context.signal.reason))
    })
    return Promise.race([this.ignoring(payload, context), aborted])
  }

  open(): void {
    this.#opened.resolve(undefined)
  }

  breakWith(error: unknown): void {
    this.#opened.reject(error)
  }
}
