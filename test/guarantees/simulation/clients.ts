import { newJob } from '../../../src/core/envelope.ts'
import { isKhepriError } from '../../../src/core/errors.ts'
import type { NewJob } from '../../../src/core/store/store.ts'
import { Link, type StoreEnd } from './link.ts'
import type { JobPlan } from './plan.ts'
import type { Record } from './record.ts'
import type { Seeded } from './seeded.ts'
import type { SimulatedProcess } from './simulated-process.ts'

export interface ClientParts {
  readonly end: StoreEnd
  readonly record: Record
  readonly random: Seeded
  /** Each command is a process of its own. */
  readonly newProcess: (name: string) => SimulatedProcess
}

/** People and programs beside the workers: they dispatch, retry, cancel and pause, and are told how it went, or not. */
export class Clients {
  /** The envelopes of the jobs whose dispatch has told its caller that they are written. */
  readonly acknowledged: string[] = []
  readonly #parts: ClientParts

  constructor(parts: ClientParts) {
    this.#parts = parts
  }

  /** dies: within a few milliseconds, whatever has been written by then. */
  async dispatch(jobs: readonly JobPlan[], dies: boolean): Promise<void> {
    const { end, random, newProcess } = this.#parts
    const client = newProcess('client')
    const rows = jobs.map((job) => rowOf(job, client.now()))
    for (const [index, row] of rows.entries()) end.witness.plans.set(row.envelope, jobs[index] as JobPlan)
    if (dies) end.timeline.after(random.next() * 3, () => client.kill())
    await this.#told('dispatch', async () => {
      const answers = await new Link(client, end).enqueue(rows)
      const written = rows.filter((_, index) => answers[index]?.duplicate === false)
      this.acknowledged.push(...written.map(({ envelope }) => envelope))
    })
  }

  retryFailed(): Promise<void> {
    const link = this.#link()
    return this.#told('retry', async () => link.retryFailed(await link.selectFailed()))
  }

  cancel(queue: string): Promise<void> {
    return this.#told('cancel', () => this.#link().cancel(queue))
  }

  setPaused(queue: string, isPaused: boolean): Promise<void> {
    return this.#told(isPaused ? 'pause' : 'resume', () => this.#link().setPaused(queue, isPaused))
  }

  #link(): Link {
    return new Link(this.#parts.newProcess('operator'), this.#parts.end)
  }

  async #told(command: string, run: () => Promise<unknown>): Promise<void> {
    const { record } = this.#parts
    try {
      await run()
      record.note(`${command} was told that it is done`)
    } catch (error) {
      record.note(`${command} was told ${isKhepriError(error) ? error.code : String(error)}`)
      if (!isKhepriError(error)) record.accuse(12, `${command} failed with ${String(error)}`)
    }
  }
}

function rowOf(plan: JobPlan, now: number): NewJob {
  const { n, job, queue, priority, delayMs, hook, isPoison, tries, backoff, timeoutMs, maxCrashes, unique } = plan
  const terms = { tries, backoff, timeoutMs, maxCrashes, unique }
  const payloadText = JSON.stringify({ n, hook })
  const row = newJob(
    { job, payloadText, dispatchedAt: now, context: null, trace: null, ...terms },
    { queue, priority, due: { delayMs } },
  )
  return isPoison ? { ...row, envelope: `${row.envelope}}` } : row
}
