import { AsyncLocalStorage } from 'node:async_hooks'
import { sleep } from '../../../src/core/clock.ts'
import { KhepriError } from '../../../src/core/errors.ts'
import { type Handler, handlerOf } from '../../../src/core/handler.ts'
import { defineJob, type JobContext, NonRetryable, RetryAfter } from '../../../src/core/job.ts'
import type { RegisteredJob } from '../../../src/core/registry.ts'
import type { WorkerParts } from '../../../src/core/work.ts'
import type { Run } from './account.ts'
import type { Diary } from './diary.ts'
import type { Act, JobPlan, WorkerPlan } from './plan.ts'
import type { SimulatedProcess } from './simulated-process.ts'

type Payload = Pick<JobPlan, 'n' | 'hook'>

/** A new one each time: whoever waits for it is forgotten with it. */
const never = (): Promise<never> => new Promise(() => {})

/** The jobs of one process: each run does what the plan of its job says, and writes in the diary. */
export function registryFor(process: SimulatedProcess, plan: WorkerPlan, diary: Diary): WorkerParts['registry'] {
  const scripts = new Scripts(process, plan, diary)
  const plain = handlerOf(defineJob<Payload>({ handle: scripts.handle }), 'plain', '/')
  const hooked = handlerOf(defineJob<Payload>({ handle: scripts.handle, failed: scripts.failed }), 'hooked', '/')
  const jobs = new Map<string, RegisteredJob>([
    ['plain', plan.isBroken ? registered('plain', brokenModule) : registered('plain', async () => plain)],
    ['hooked', registered('hooked', async () => hooked)],
  ])
  if (plan.knowsRare)
    jobs.set(
      'rare',
      registered('rare', async () => plain),
    )
  return { get: (name) => jobs.get(name), names: () => [...jobs.keys()].sort() }
}

const registered = (name: string, handler: () => Promise<Handler>): RegisteredJob => ({
  name,
  source: `./jobs/${name}.ts`,
  terms: async () => ({}),
  mayHaveSchema: false,
  ready: null,
  mayBePrefetched: true,
  handler,
  handlerNow: () => null,
  termsNow: () => ({}),
})

async function brokenModule(): Promise<never> {
  throw new KhepriError('MODULE_BROKEN', './jobs/plain.ts:1: cannot be imported')
}

class Scripts {
  readonly #process: SimulatedProcess
  readonly #plan: WorkerPlan
  readonly #diary: Diary

  constructor(process: SimulatedProcess, plan: WorkerPlan, diary: Diary) {
    this.#process = process
    this.#plan = plan
    this.#diary = diary
  }

  readonly handle = async (_: Payload, context: JobContext): Promise<void> => {
    const begun = this.#diary.begin(this.#process, context)
    if (!begun) return never()
    const { run, act } = begun
    try {
      await this.#perform(run, act, context)
      this.#diary.ended(run, 'returned')
    } catch (error) {
      this.#diary.ended(run, act.kind === 'release' && !isAborted(context, error) ? 'released' : 'threw')
      throw error
    }
  }

  readonly failed = async (_: unknown, context: JobContext, { hook }: Payload): Promise<void> => {
    this.#diary.hook(this.#process, context)
    await sleep(this.#process.userClock, hook.ms)
    if (hook.throws) throw new Error('the hook has failed')
  }

  async #perform(run: Run, { kind, ms, obeys }: Act, context: JobContext): Promise<void> {
    if (kind === 'throw aside') this.#throwAside(run, ms / 2)
    if (kind === 'throw late') this.#throwAside(run, ms + 50)
    if (kind === 'block') this.#process.blockFor(ms, this.#plan.beatsFromThread)
    await this.#wait(kind === 'block' ? 0 : ms, context.signal, obeys)
    if (kind === 'crash') return this.#crash()
    if (kind === 'throw') throw new Error('not yet')
    if (kind === 'final') throw new NonRetryable('never')
    if (kind === 'retry after') throw new RetryAfter('1s')
    if (kind === 'release') context.release('500ms')
  }

  async #wait(ms: number, signal: AbortSignal, obeys: boolean): Promise<void> {
    await sleep(this.#process.userClock, ms, obeys ? signal : undefined)
    if (obeys) signal.throwIfAborted()
  }

  #crash(): Promise<never> {
    this.#process.kill()
    return never()
  }

  /** What Node does with an error that a timer of the handler throws. */
  #throwAside(run: Run, ms: number): void {
    const inContext = AsyncLocalStorage.snapshot()
    this.#process.userClock.after(ms, () => {
      if (run.end === null) run.isCharged = true
      inContext(() => this.#process.worker?.attribute(new Error('from a timer')))
    })
  }
}

const isAborted = ({ signal }: JobContext, error: unknown): boolean => signal.aborted && error === signal.reason
