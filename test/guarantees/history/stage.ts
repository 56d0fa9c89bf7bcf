import { describe, pipeLine } from '../../../src/cli/lines.ts'
import { beatInLoop, unwatched } from '../../../src/core/beat.ts'
import { sleep } from '../../../src/core/clock.ts'
import { defaults } from '../../../src/core/defaults.ts'
import { decodeEnvelope, newJob } from '../../../src/core/envelope.ts'
import { EventBus, type Events } from '../../../src/core/events.ts'
import { defineJob, type JobContext } from '../../../src/core/job.ts'
import type { Fate } from '../../../src/core/process-identity.ts'
import { Registry } from '../../../src/core/registry.ts'
import type { Admin, FailedJob } from '../../../src/core/store/admin.ts'
import type { MemoryState } from '../../../src/core/store/memory/state.ts'
import { openMemoryStore } from '../../../src/core/store/memory/store.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { Worker } from '../../../src/core/worker.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { Seeded } from '../simulation/seeded.ts'
import type { AskedJob, Client, History, LedgerLine, SentSignal, Timing, WorkerProcess } from './history.ts'
import { type Plan, step } from './step.ts'
import { never, VirtualProcess } from './virtual-process.ts'

type WorkOptions = Parameters<typeof Worker.start>[0]

/** The lease of every worker on a stage, and what follows from it. */
const stageTiming: Timing = {
  leaseMs: 2_100,
  beatMs: 700,
  // A beat may lie just before the death, and a look at the neighbours just before the end of the lease.
  recoverMs: 2_100 + 2 * 700,
  recoverSuspectMs: null,
  promptMs: 10,
  slackMs: 100,
}

/** A part of the store that is wrong on purpose. */
export interface Tampering {
  readonly store?: (inner: Store, state: MemoryState) => Store
  readonly admin?: (inner: Admin, state: MemoryState) => Admin
}

/** What is asked of a new job; the rest is usual. */
export type Wanted = Partial<Omit<AskedJob, 'payload' | 'job'>> & {
  readonly key: string
  readonly plan?: Partial<Plan>
}

/** The real kernel on the memory store, several processes of it under one manual clock, watched from outside. */
export class Stage {
  readonly clock = new ManualClock()
  readonly #store: Store
  readonly #admin: Admin
  readonly #ledger: LedgerLine[] = []
  readonly #clients: Client[] = []
  readonly #workers: PlayedWorker[] = []
  readonly #ids = new Map<string, number>()
  readonly #random = new Seeded(1).next

  constructor({ store = (inner) => inner, admin = (inner) => inner }: Tampering = {}) {
    const memory = openMemoryStore({ clock: this.clock })
    this.#store = store(memory.store, memory.state)
    this.#admin = admin(memory.admin, memory.state)
  }

  /** Every worker that was started, in this order. */
  get workers(): readonly PlayedWorker[] {
    return this.#workers
  }

  /** The id that the dispatch of a job was told. */
  idOf(key: string): number {
    return this.#ids.get(key) ?? 0
  }

  /** Lets so much time pass. */
  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms)
  }

  /** Lets time pass until this holds, or a minute is over. */
  async until(holds: () => boolean): Promise<void> {
    for (let left = 6_000; left > 0 && !holds(); left--) await this.pass(10)
  }

  startsOf(key: string): readonly LedgerLine[] {
    return this.#ledger.filter((line) => line.event === 'start' && line.key === key)
  }

  /** `dispatch FILE`; with `killed` the command dies before it can say anything, whether or not it has committed. */
  async dispatch(wanted: readonly Wanted[], { killed = false } = {}): Promise<void> {
    const asked = wanted.map(askedFor)
    const rows = asked.map((job) => rowOf(job, this.clock.now()))
    const ids = (await this.#store.enqueue(rows)).map(({ id }) => id)
    for (const [index, { key }] of asked.entries()) this.#ids.set(key, ids[index] ?? 0)
    this.#record(
      ['dispatch', 'jobs.ndjson'],
      killed ? { asked, code: null, signal: 'SIGKILL' } : { asked, stdout: printed(ids) },
    )
  }

  /** `retry ID...` */
  async retry(...ids: readonly number[]): Promise<void> {
    const { retried } = await this.#admin.retryFailed(await this.#admin.selectFailed({ ids }), 0)
    this.#record(['retry', ...ids.map(String)], { code: retried.length === ids.length ? 0 : 1 })
  }

  /** `flush ID...` */
  async flush(...ids: readonly number[]): Promise<void> {
    await this.#admin.deleteFailed(await this.#admin.selectFailed({ ids }))
    this.#record(['flush', ...ids.map(String)], {})
  }

  /** `failed --json`, and `failed ID --json` for each. */
  async listFailed(): Promise<void> {
    const failed: FailedJob[] = []
    for await (const job of this.#admin.failed({}, null)) failed.push(job)
    this.#record(['failed', '--json'], {
      stdout: JSON.stringify(failed.map(({ id, job, queue, reason }) => ({ id, job, queue, reason }))),
    })
    for (const job of failed) this.#record(['failed', String(job.id), '--json'], { stdout: await this.#shown(job) })
  }

  async #shown({ id, job, envelope }: FailedJob): Promise<string> {
    const attempts = (await this.#admin.attempts(id)).map(({ message }) => ({ message }))
    return `{"attempts":${JSON.stringify(attempts)},"payload":${decodeEnvelope(envelope, job).payloadText},"envelope":${envelope}}`
  }

  #record(argv: readonly string[], told: Partial<Client>): void {
    const at = this.clock.now()
    this.#clients.push({
      argv,
      asked: [],
      code: 0,
      signal: null,
      stdout: '',
      stderr: '',
      startedAt: at,
      endedAt: at,
      ...told,
    })
  }

  /** Starts a worker process. */
  async work(options: Partial<WorkOptions> = {}): Promise<PlayedWorker> {
    const name = `w${this.#workers.length + 1}`
    const worker = new PlayedWorker({ name, clock: this.clock, store: this.#store, ledger: this.#ledger })
    this.#workers.push(worker)
    await worker.start({ ...usual, name, ...options }, this.#random)
    await this.clock.advance(0)
    return worker
  }

  /** Stops everybody, works until nothing is left, lists what failed, and hands out what was seen. */
  async end(): Promise<History> {
    for (const worker of this.#workers) worker.term()
    await this.pass(20_000)
    for (let left = 5; left > 0; left--) {
      await this.work({ stopWhenEmpty: true })
      await this.pass(20_000)
    }
    await this.listFailed()
    for (const worker of this.#workers) worker.kill()
    return {
      timing: stageTiming,
      ledger: this.#ledger,
      clients: this.#clients,
      workers: this.#workers.map((worker) => worker.seen),
    }
  }
}

const printed = (ids: readonly number[]): string => ids.map((id) => `${id}\n`).join('')

function askedFor({ key, plan, ...terms }: Wanted): AskedJob {
  const payload = `{"key":"${key}", "b":1,"a":12345678901234567890,${JSON.stringify({ ms: 20, ...plan }).slice(1)}`
  const least = { queue: 'default', priority: 0, tries: 1, backoffMs: 100, delayMs: 0, maxCrashes: 3 }
  return { ...least, ...terms, key, job: 'step', payload }
}

function rowOf({ job, queue, priority, tries, backoffMs, delayMs, maxCrashes, payload }: AskedJob, now: number) {
  const terms = { tries, backoff: { kind: 'fixed', delayMs: backoffMs } as const, timeoutMs: null, maxCrashes }
  const rest = { dispatchedAt: now, unique: null, context: null, trace: null }
  return newJob({ job, payloadText: payload, ...terms, ...rest }, { queue, priority, due: { delayMs } })
}

const usual: Omit<WorkOptions, 'name'> = {
  queues: [['high'], ['default'], ['low']],
  queueLimits: new Map(),
  concurrency: 1,
  sleepMs: 50,
  restMs: 0,
  once: false,
  stopWhenEmpty: false,
  maxJobs: null,
  maxTimeMs: null,
  drainTimeoutMs: null,
  timeoutMs: null,
  tries: 50,
  backoff: { kind: 'none' },
  retryAfterMs: stageTiming.leaseMs,
  unknownJobs: 'fail',
  endsWhenBlocked: false,
  maxPayloadBytes: defaults.maxPayloadBytes,
  keepDoneMs: null,
  only: null,
  except: [],
}

interface Setting {
  readonly name: string
  readonly clock: ManualClock
  readonly store: Store
  readonly ledger: LedgerLine[]
}

/** A worker process on a stage. */
export class PlayedWorker {
  readonly #setting: Setting
  readonly #process: VirtualProcess
  readonly #signals: SentSignal[] = []
  readonly #startedAt: number
  #worker: Worker | null = null
  #options: WorkOptions | null = null
  #readyAt: number | null = null
  #end: Pick<WorkerProcess, 'code' | 'signal' | 'endedAt'> | null = null
  #stdout = ''
  #stderr = ''

  constructor(setting: Setting) {
    this.#setting = setting
    this.#startedAt = setting.clock.now()
    this.#process = new VirtualProcess(setting.clock, setting.store)
  }

  get name(): string {
    return this.#setting.name
  }

  get isOver(): boolean {
    return this.#end !== null
  }

  async start(options: WorkOptions, random: () => number): Promise<void> {
    this.#options = options
    const { clock, store } = this.#process
    const events = new EventBus()
    events.onAny((name, event) => this.#say(name, event))
    const registry = await this.#registry()
    const beats = { startBeat: beatInLoop, watch: unwatched, fateOf: (): Fate => 'unknown' }
    this.#worker = await Worker.start(options, {
      store,
      registry,
      events,
      clock,
      random,
      ...beats,
      profile: this.#profile,
    })
    this.#worker.finished.then(
      () => this.#over({ code: 0, signal: null }),
      (error: Error) => {
        this.#stderr += error.message
        this.#over({ code: 70, signal: null })
      },
    )
  }

  /** Nothing is known of its pid, so that silence alone tells whether it is dead. */
  get #profile() {
    return { version: '1.2.3', host: 'here', bootId: null, pidNamespace: null, pid: 1, pidStart: null }
  }

  #registry(): Promise<Registry> {
    const handle = (plan: Plan, context: JobContext): Promise<void> => this.#step(plan, context)
    return Registry.open({ jobs: [{ kind: 'map', entries: [['step', defineJob({ handle })]] }], root: '/', file: null })
  }

  #step(plan: Plan, context: JobContext): Promise<void> {
    const { clock } = this.#process
    return step(plan, context, {
      worker: this.#setting.name,
      pid: this.#profile.pid,
      now: () => clock.now(),
      wait: async (ms, signal) => {
        await sleep(clock, ms, signal)
        await this.#process.gate()
      },
      block: () => {},
      note: (line) => this.#setting.ledger.push(line),
      crash: () => {
        this.#die()
        return never
      },
    })
  }

  kill(): void {
    if (this.isOver) return
    this.#send('SIGKILL')
    this.#die()
  }

  #die(): void {
    this.#process.kill()
    this.#over({ code: null, signal: 'SIGKILL' })
  }

  stop(): void {
    this.#send('SIGSTOP')
    this.#process.stop()
  }

  continue(): void {
    this.#process.continue()
    this.#send('SIGCONT')
  }

  /** A second time it abandons what runs. */
  term(): void {
    if (this.isOver) return
    if (this.#signals.some(({ signal }) => signal === 'SIGTERM')) this.#worker?.abort()
    else this.#worker?.drain('signal')
    this.#send('SIGTERM')
  }

  #send(signal: string): void {
    this.#signals.push({ signal, at: this.#setting.clock.now() })
  }

  #over(end: Pick<WorkerProcess, 'code' | 'signal'>): void {
    this.#end ??= { ...end, endedAt: this.#setting.clock.now() }
  }

  #say<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    if (this.#process.isDead) return
    if (name === 'worker.started') this.#readyAt = this.#setting.clock.now()
    const shown = describe(name, event, { version: '1.2.3', database: 'memory' })
    if (!shown) return
    const line = pipeLine(shown, this.#setting.clock.now())
    if (shown.kind === 'sentence' && shown.stream === 'err') this.#stderr += `${line}\n`
    else this.#stdout += `${line}\n`
  }

  /** What was seen of it from outside. */
  get seen(): WorkerProcess {
    const { name, clock } = this.#setting
    return {
      name,
      argv: ['work', ...(this.#options?.stopWhenEmpty ? ['--stop-when-empty'] : [])],
      queues: ['high', 'default', 'low'],
      concurrency: this.#options?.concurrency ?? 1,
      startedAt: this.#startedAt,
      readyAt: this.#readyAt,
      signals: this.#signals,
      ...(this.#end ?? { code: null, signal: null, endedAt: clock.now() }),
      stdout: this.#stdout,
      stderr: this.#stderr,
    }
  }
}
