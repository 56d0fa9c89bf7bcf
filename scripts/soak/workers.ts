import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Live } from '../../test/support/live.ts'

const lookMs = 50

/** The workers of a soak, each a process of its own that is replaced when it goes. */
export class Workers implements AsyncDisposable {
  readonly #folder: string
  readonly #database: string
  /** The processes that have joined, as the store sees them. */
  readonly #joined: () => Promise<ReadonlySet<number>>
  readonly #crew: Live[] = []
  #deploys = 0
  #kills = 0

  constructor(folder: string, database: string, joined: () => Promise<ReadonlySet<number>>) {
    this.#joined = joined
    this.#folder = folder
    this.#database = database
    mkdirSync(join(folder, 'jobs'))
    writeFileSync(join(folder, 'package.json'), '{}')
    writeFileSync(join(folder, 'jobs/noop.mjs'), 'export default () => {}')
    writeFileSync(join(folder, 'jobs/fail.mjs'), "export default () => { throw new Error('planned') }")
  }

  get tally(): Readonly<Record<string, number>> {
    return { deploys: this.#deploys, kills: this.#kills }
  }

  /** Starts workers, and waits until they have joined: before, a signal would simply end them. */
  async hire(count: number): Promise<void> {
    const flags = [`--database=${this.#database}`, '--concurrency=20', '--retry-after=30s', '--log=none']
    const hired = Array.from({ length: count }, () => Live.start(['work', ...flags], { cwd: this.#folder }))
    this.#crew.push(...hired)
    for (const { child } of hired) while (!(await this.#joined()).has(child.pid ?? 0)) await wait(lookMs)
  }

  /** Starts new workers, and lets the old ones drain. Throws where one does not end well. */
  async deploy(): Promise<void> {
    this.#deploys += 1
    const old = this.#crew.splice(0)
    await this.hire(old.length)
    await Promise.all(old.map((worker) => dismiss(worker)))
  }

  /** Kills the oldest one and starts another. */
  async killOne(): Promise<void> {
    this.#kills += 1
    this.#crew.shift()?.kill('SIGKILL')
    await this.hire(1)
  }

  /** Resident memory by pid, bytes; without those that are gone, or where the system does not tell. */
  rss(): ReadonlyMap<number, number> {
    const sizes = this.#crew.map(({ child: { pid = 0 } }) => [pid, rssOf(pid)] as const)
    return new Map(sizes.filter(([, bytes]) => bytes > 0))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.#crew) await worker[Symbol.asyncDispose]()
  }
}

async function dismiss(worker: Live): Promise<void> {
  worker.kill('SIGTERM')
  const { code, signal, stderr } = await worker.ended
  if (code !== 0) throw new Error(`a worker ended with ${code ?? signal}: ${stderr}`)
}

function rssOf(pid: number): number {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kib ?? 0) * 1_024
  } catch {
    return 0
  }
}
