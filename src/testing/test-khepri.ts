import { Khepri } from '../app.ts'
import { type ConfigInput, resolveConfig } from '../core/config.ts'
import type {
  DispatchArguments,
  DispatchOptions,
  InstanceIn,
  JobMap,
  PayloadAndOptions,
  PayloadOf,
  ValueIn,
} from '../core/dispatch-call.ts'
import { requestOf } from '../core/dispatch-call.ts'
import { decodeEnvelope, envelopeVersion } from '../core/envelope.ts'
import { KhepriError } from '../core/errors.ts'
import { loneAttempt, runLone, unstored } from '../core/lone-attempt.ts'
import { decide, type Verdict } from '../core/policy.ts'
import type { FailedJob } from '../core/store/admin.ts'
import type { FailReason, Filter, JobId } from '../core/store/store.ts'
import { parseMoment } from '../core/terms.ts'
import { gather } from './conformance/builders.ts'
import { TestClock } from './test-clock.ts'

/** More jobs than any test means to run in one call: what goes on for ever must not hang it. */
const mostJobs = 10_000

/** In the middle of every jitter, so that a test sees the same delays each time. */
const random = (): number => 0.5

const everything: Filter = {
  queues: 'all',
  exceptQueues: [],
  only: null,
  except: [],
  exclude: [],
  maxVersion: envelopeVersion,
  suspects: true,
}

/** How one run of a job ended, and what a worker would make of it. */
export type JobOutcome = RunFacts &
  (
    | { readonly kind: 'done' }
    | { readonly kind: 'retry'; readonly error: unknown; readonly delayMs: number }
    | { readonly kind: 'failed'; readonly error: unknown; readonly reason: FailReason }
    | { readonly kind: 'released'; readonly delayMs: number | null }
    | { readonly kind: 'cancelled' }
  )

/** A slot that has led to a job. */
export interface FiredSlot {
  readonly schedule: string
  /** Epoch milliseconds. */
  readonly slot: number
  readonly id: JobId
}

interface RunFacts {
  /** What the handler gave to `log`, a line each. */
  readonly logged: readonly string[]
  /** What the handler gave to `next`, where it gave anything. */
  readonly next?: readonly { readonly job: string; readonly payload: unknown }[]
}

/** What `testKhepri` takes: a configuration without a database. */
export type TestConfig<Jobs extends JobMap> = Omit<ConfigInput, 'database' | 'jobs'> & {
  readonly jobs: Jobs | ConfigInput['jobs']
}

/**
 * An installation for tests: jobs in memory under a frozen clock.
 *
 * Jobs run when a test says so, on every queue; delays, retries and timeouts follow the clock.
 */
export class TestKhepri<Jobs extends JobMap = JobMap> extends Khepri<Jobs> {
  readonly clock: TestClock
  #ticker: Awaited<ReturnType<Khepri['ticker']>> | null = null

  constructor(config: TestConfig<Jobs>) {
    const clock = new TestClock()
    const input: ConfigInput = { ...(config as ConfigInput), database: 'memory:' }
    super(resolveConfig(input, { root: process.cwd(), file: null, env: {}, flags: {} }), { clock, random })
    this.clock = clock
  }

  /**
   * Runs what is ready, and what that makes ready, until nothing is; answers how many runs it took. The clock stands still.
   *
   * Rejects with MODULE_BROKEN where a job cannot be loaded, and after 10,000 runs.
   */
  async runJobs(): Promise<number> {
    const seen = this.#watch()
    try {
      const worker = await this.work({ queues: 'all', concurrency: 1, stopWhenEmpty: true, maxJobs: mostJobs })
      const { reason } = await worker.finished
      if (seen.broken) throw seen.broken
      if (reason === 'max-jobs') throw endless()
      return seen.started
    } finally {
      seen.stop()
    }
  }

  /** Runs jobs and moves the clock to whatever is due next, until nothing waits any more; answers how many runs it took. */
  async runUntilIdle(): Promise<number> {
    let ran = 0
    for (;;) {
      ran += await this.runJobs()
      if (ran > mostJobs) throw endless()
      const dueInMs = await (await this.store()).nextDue(everything)
      if (dueInMs === null) return ran
      await this.clock.advance(`${dueInMs}ms`)
    }
  }

  /**
   * Lets the schedules see the time until `at`: the clock moves on, and at each slot that comes its job runs, with all else
   * that is ready. Answers the slots. The first call plans them from the clock's now.
   *
   * at: a Date, ISO 8601 with an offset, or epoch milliseconds. Rejects with DATA_INVALID for one that is past.
   */
  async runSchedule(at: Date | string | number): Promise<readonly FiredSlot[]> {
    const until = parseMoment(at instanceof Date ? at.getTime() : at, 'at')
    if (until < this.clock.now()) throw past(until, this.clock.now())
    const fired: FiredSlot[] = []
    const stop = this.events.on('schedule.fired', ({ schedule, slot, id }) => void fired.push({ schedule, slot, id }))
    this.#ticker ??= await this.ticker({ name: 'test', tellsOutages: true })
    for (;;) {
      const { fired: count, nextAt } = await this.#ticker.tick()
      if (count > 0) await this.runJobs()
      const now = this.clock.now()
      if (now === until) break
      await this.clock.advance(`${Math.min(Math.max(nextAt ?? until, now), until) - now}ms`)
    }
    stop()
    return fired
  }

  /** Runs one handler with a real context and writes nothing: no retry follows, its failed() hook does not run. */
  runJob(job: InstanceIn<Jobs>, options?: DispatchOptions): Promise<JobOutcome>
  runJob<Value extends ValueIn<Jobs>>(job: Value, ...rest: PayloadAndOptions<PayloadOf<Value>>): Promise<JobOutcome>
  runJob<Name extends keyof Jobs & string>(
    job: Name,
    ...rest: PayloadAndOptions<PayloadOf<Jobs[Name]>>
  ): Promise<JobOutcome>
  async runJob(...call: DispatchArguments): Promise<JobOutcome> {
    const registry = await this.registry()
    const row = await (await this.dispatcher()).prepare(requestOf(call, registry))
    const { clock, events } = this
    const { tries, backoff, timeoutMs, maxPayloadBytes } = this.config
    const setting = {
      registry,
      clock,
      events,
      tries,
      backoff,
      timeoutMs,
      maxPayloadBytes,
      prepare: this.prepare,
      openScope: this.config.scope,
    }
    const lone = loneAttempt(unstored(row, clock.now()), setting)
    const logged: string[] = []
    const outcome = await runLone(lone, events, (text) => logged.push(text))
    const next = lone.attempt.followUps.map(({ job, envelope }) => ({
      job,
      payload: decodeEnvelope(envelope, job).payload,
    }))
    return { ...outcomeOf(decide(outcome, lone.attempt, random())), logged, ...(next.length > 0 && { next }) }
  }

  /** The jobs that have failed for good, newest first. */
  async failedJobs(): Promise<readonly FailedJob[]> {
    return gather((await this.admin()).failed({}, null))
  }

  #watch(): { started: number; broken: KhepriError | null; stop(): void } {
    const stopCounting = this.events.on('job.started', () => seen.started++)
    const stopLooking = this.events.on('module.broken', ({ message }) => {
      seen.broken = new KhepriError('MODULE_BROKEN', message)
    })
    const seen = {
      started: 0,
      broken: null as KhepriError | null,
      stop: () => {
        stopCounting()
        stopLooking()
      },
    }
    return seen
  }
}

/** Opens an installation for tests. jobs: as in a configuration. Throws CONFIG_INVALID. */
export function testKhepri<const Jobs extends JobMap = JobMap>(config: TestConfig<Jobs>): TestKhepri<Jobs> {
  return new TestKhepri<Jobs>(config)
}

type Ending = JobOutcome extends infer Outcome
  ? Outcome extends RunFacts
    ? Omit<Outcome, keyof RunFacts>
    : never
  : never

function outcomeOf(verdict: Verdict): Ending {
  switch (verdict.kind) {
    case 'complete':
      return { kind: 'done' }
    case 'retry':
      return { kind: 'retry', error: verdict.error, delayMs: verdict.delayMs }
    case 'fail':
      return { kind: 'failed', error: verdict.error, reason: verdict.reason }
    case 'release':
      return { kind: 'released', delayMs: verdict.delayMs }
    case 'cancel':
    // Nobody can take a job away that no store knows.
    case 'drop':
      return { kind: 'cancelled' }
  }
}

const past = (at: number, now: number): KhepriError =>
  new KhepriError(
    'DATA_INVALID',
    `at must not be past: it is ${new Date(at).toISOString()}, and the clock stands at ${new Date(now).toISOString()}`,
  )

const endless = (): KhepriError =>
  new KhepriError('USAGE', `${mostJobs.toLocaleString('en')} jobs ran and there are more`, {
    fix: 'does a job dispatch itself? runJob runs one handler and nothing that it dispatches',
  })
