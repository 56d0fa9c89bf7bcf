import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { StoreKind } from '../../support/installation.ts'
import { TempProject } from '../../support/temp-project.ts'
import type { Plan, Struck } from './faults.ts'
import type { Order } from './host.ts'
import { type Answer, Host } from './host-process.ts'

/** Jobs that write down what they do, in a file that outlives every process. `k` of the payload names a job. */
const jobs = {
  'jobs/_note.mjs': `
    import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
    const folder = new URL('../', import.meta.url)
    // One write of one line to a file opened for appending: no line is ever half, whoever is killed.
    export const note = (what, { k }, { attempt, crashes }) =>
      appendFileSync(new URL('ledger', folder), JSON.stringify({ what, k, attempt, crashes }) + '\\n')
    export const exists = (name) => existsSync(new URL(name, folder))
    export const mark = (name) => writeFileSync(new URL(name, folder), '')`,
  'jobs/done.mjs': `
    import { note } from './_note.mjs'
    export default (payload, context) => { note('start', payload, context); note('end', payload, context) }`,
  // Fails on its first attempt.
  'jobs/retry.mjs': `
    import { note } from './_note.mjs'
    export default (payload, context) => {
      note('start', payload, context)
      if (context.attempt === 1) throw new Error('not yet')
      note('end', payload, context)
    }`,
  // Fails until a file named "mended" is there.
  'jobs/fail.mjs': `
    import { defineJob } from 'khepri'
    import { exists, note } from './_note.mjs'
    export default defineJob({
      handle: (payload, context) => {
        note('start', payload, context)
        if (!exists('mended')) throw new Error('it broke')
        note('end', payload, context)
      },
      failed: (error, context, payload) => note('hook', payload, context),
    })`,
  // Gives itself back when it runs for the first time.
  'jobs/release.mjs': `
    import { exists, mark, note } from './_note.mjs'
    export default (payload, context) => {
      note('start', payload, context)
      if (!exists('released')) { mark('released'); context.release(0) }
      note('end', payload, context)
    }`,
}

/** What a handler wrote down. hook: its failed() ran. */
export interface Line {
  readonly what: 'start' | 'end' | 'hook'
  readonly k: number
  readonly attempt: number
  readonly crashes: number
}

/** How one act under a fault ended. */
export interface Act {
  readonly answer: Answer
  /** The statement that the fault befell; null where the act ended before, or where nothing was to befall it. */
  readonly struck: Struck | null
}

/** Where one store is tried: a project with a database that can be put back to a known state, and a process to run in. */
export abstract class Site {
  abstract readonly store: StoreKind
  /** The setting that names the database. */
  abstract readonly database: string
  protected readonly project: TempProject
  protected readonly host: Host
  readonly #marks = ['ledger', 'mended', 'released'] as const

  constructor() {
    this.project = new TempProject({ ...jobs, 'package.json': '{}' })
    this.host = new Host(this.project.path)
  }

  /** Lets the database be as it was kept under this name; null: there is none. */
  protected abstract restore(name: string | null): Promise<void>
  /** Keeps the database as it is now, for every site of this store. */
  abstract keep(name: string): Promise<void>
  abstract ask(query: string): Promise<readonly Record<string, unknown>[]>
  protected abstract act(order: Order): Promise<Act>

  /** Starts from a known state: nothing is written down, and nothing of an earlier try is left. */
  async begin(state: string | null): Promise<void> {
    for (const name of this.#marks) rmSync(join(this.project.path, name), { force: true })
    await this.restore(state)
  }

  /** Runs a command line. */
  run(argv: readonly string[], plan: Plan | null = null): Promise<Act> {
    return this.act({ argv, plan })
  }

  /** Runs a command line that has to succeed. */
  async must(...argv: readonly string[]): Promise<string> {
    const { answer } = await this.run(argv)
    if (answer === 'killed') throw new Error(`khepri ${argv.join(' ')} was killed`)
    if (answer.exit !== 0) throw new Error(`khepri ${argv.join(' ')} ended with ${answer.exit}: ${answer.stderr}`)
    return answer.stdout
  }

  /** Frees what dead workers hold, as a neighbour does it once an hour has passed without a beat. */
  recover(plan: Plan | null = null): Promise<Act> {
    return this.act({ recover: { database: this.database, aheadMs: 3_600_000 }, plan })
  }

  /** Writes a file, and answers its path. */
  write(name: string, text: string): string {
    return this.project.write(name, text)
  }

  ledger(): readonly Line[] {
    const path = join(this.project.path, 'ledger')
    if (!existsSync(path)) return []
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Line)
  }

  async close(): Promise<void> {
    await this.host.close()
    this.project[Symbol.dispose]()
  }
}
