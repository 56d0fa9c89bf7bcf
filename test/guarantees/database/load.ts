import { setTimeout as wait } from 'node:timers/promises'
import { type Ended, khepri } from '../../support/live.ts'
import type { TempProject } from '../../support/temp-project.ts'

/** A job as a client asked for it. Its key tells it from all others, before it has an id and after. */
export interface Asked {
  readonly key: string
  readonly ms: number
  /** It throws in so many attempts, the first ones. */
  readonly fails: number
  readonly tries: number
  /** It waits so long before it may run. */
  readonly delayMs?: number
}

/** One dispatch: a file of jobs, which is one transaction, and what came of it. */
export interface Batch {
  readonly jobs: readonly Asked[]
  readonly ended: Ended
}

/** Writes down what it does, in a file that outlives every worker and every database. */
export const stint = `
import { appendFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
const ledger = new URL('../ledger', import.meta.url)
// One write of one line to a file opened for appending: lines of several processes never mix, and none is half.
const note = (what, { id, attempt, crashes, payloadText }) =>
  appendFileSync(ledger, JSON.stringify({ what, id, attempt, crashes, payload: payloadText, pid: process.pid, at: Date.now() }) + '\\n')
export default async ({ key, ms, fails }, context) => {
  note('start', context)
  await wait(ms)
  if (context.attempt <= fails) throw new Error('planned failure of ' + key)
  note('end', context)
}`

/** Between two dispatches: enough work for two workers, and time for them on a small machine. */
const restMs = 250

/** A client that dispatches one file after another, whatever the database does meanwhile. */
export class Load {
  readonly batches: Batch[] = []
  readonly #project: TempProject
  readonly #env: Readonly<Record<string, string>>
  readonly #stopped = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #dispatches = 0

  constructor(project: TempProject, env: Readonly<Record<string, string>>) {
    this.#project = project
    this.#env = env
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Resolves when the last dispatch has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }

  /** Dispatches jobs besides. */
  async add(jobs: readonly Asked[]): Promise<void> {
    await this.#dispatch(jobs)
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped
    for (let number = 0; !signal.aborted; number++) {
      await this.#dispatch(batch(number))
      await wait(restMs, undefined, { signal }).catch(() => {})
    }
  }

  async #dispatch(jobs: readonly Asked[]): Promise<Ended> {
    const name = `batches/${this.#dispatches++}.ndjson`
    const file = this.#project.write(name, jobs.map((job) => `${JSON.stringify(jobObject(job))}\n`).join(''))
    const ended = await khepri(['dispatch', file], { cwd: this.#project.path, env: this.#env })
    this.batches.push({ jobs, ended })
    return ended
  }
}

function jobObject({ tries, delayMs, ...payload }: Asked): object {
  return { job: 'stint', payload, tries, backoff: '100ms', ...(delayMs !== undefined && { delay: `${delayMs}ms` }) }
}

/** Ten jobs that go well, one that is mended by its second attempt and, in every fourth batch, one that fails for good. */
function batch(number: number): readonly Asked[] {
  const key = (name: string | number): string => `${number}-${name}`
  const good = Array.from({ length: 10 }, (_, n) => ({ key: key(n), ms: (n * 37) % 200, fails: 0, tries: 1 }))
  const mended = { key: key('mended'), ms: 20, fails: 1, tries: 2 }
  const doomed = { key: key('doomed'), ms: 20, fails: 2, tries: 2 }
  return number % 4 === 0 ? [...good, mended, doomed] : [...good, mended]
}
