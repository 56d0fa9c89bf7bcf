import { watch } from 'node:fs'
import { join } from 'node:path'
import { Ledger } from '../../support/installation.ts'
import { type Ended, khepri } from '../../support/live.ts'
import { TempProject } from '../../support/temp-project.ts'
import { CrewMember } from './crew-member.ts'
import { judge } from './judge.ts'
import { type Asked, Load, stint } from './load.ts'

/** Something that befalls a database while khepri uses it. */
export interface Fault {
  readonly name: string
  /** Lets it happen, and resolves as soon as the database can be used again. */
  readonly strike: () => Promise<void>
  /** How long it lasts. */
  readonly ms: number
  /** How often the database goes away in it: a worker says so once each time, and once when it is back. */
  readonly outages: number
  /** So long after the database every worker has begun another job. */
  readonly resumeMs: number
}

/** How khepri came through a fault. */
export interface Passage {
  readonly fault: string
  /** Until the first worker, and until the last one, had begun a job after the database was back. */
  readonly firstMs: number
  readonly lastMs: number
  /** Lines that the most talkative worker has written about it. */
  readonly lines: number
}

export interface ShiftOptions {
  /** As in the configuration. */
  readonly database: string
  readonly settings: Readonly<Record<string, unknown>>
  /** For every process. */
  readonly env?: Readonly<Record<string, string>>
}

/** What a worker is given beyond what the promise allows, before it counts as wedged: other processes want the machine too. */
const patienceMs = 20_000

/** A drain takes as long as what runs, and a little. */
const drainMs = 20_000

/** So many violations are described; whatever is wrong shows in these. */
const mostDescribed = 10

/** Two workers and a client, on one database that faults befall. */
export class Shift implements AsyncDisposable {
  readonly #project: TempProject
  readonly #env: Readonly<Record<string, string>>
  readonly #ledger: Ledger
  readonly #load: Load
  readonly #crew: CrewMember[] = []
  readonly #wrong: string[] = []

  static async begin(options: ShiftOptions): Promise<Shift> {
    const shift = new Shift(options)
    try {
      await shift.#must('migrate')
      for (let hired = 0; hired < 2; hired++) shift.#crew.push(await CrewMember.hire(shift.#place))
      shift.#load.start()
      return shift
    } catch (error) {
      await shift[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor({ database, settings, env = {} }: ShiftOptions) {
    this.#project = new TempProject({
      'package.json': '{}',
      'jobs/stint.mjs': stint,
      'khepri.config.json': JSON.stringify({ database, sleep: '100ms', ...settings }),
    })
    this.#env = env
    this.#ledger = new Ledger(join(this.#project.path, 'ledger'))
    this.#load = new Load(this.#project, env)
  }

  get jobs(): number {
    return this.#ledger.ended.size
  }

  get dispatches(): number {
    return this.#load.batches.length
  }

  /** Lets a fault befall the database while jobs run, one of them for longer than the fault lasts. */
  async pass(fault: Fault): Promise<Passage> {
    await this.#until(0, 'before a fault', patienceMs)
    await this.#load.add([...longJob(fault), ...dueAfter(fault)])
    const before = this.#crew.map(({ told }) => told.length)
    await fault.strike()
    const backAt = Date.now()
    const [firstMs = 0, lastMs = 0] = await this.#until(backAt, `after ${fault.name}`, fault.resumeMs + patienceMs)
    if (firstMs > fault.resumeMs) this.#wrong.push(`work went on ${firstMs} ms after ${fault.name}`)
    const lines = this.#crew.map(({ told }, index) => told.slice(before[index]))
    for (const told of lines) this.#judgeLines(fault, told)
    return { fault: fault.name, firstMs, lastMs, lines: Math.max(...lines.map(({ length }) => length)) }
  }

  /** Ends the shift: every job ends, every worker drains. Throws with whatever was wrong since its beginning. */
  async end(): Promise<void> {
    await this.#load.stop()
    const rest = await khepri(['work', '--stop-when-empty', '--log=none'], this.#place)
    if (rest.code !== 0) this.#wrong.push(`a worker for what was left exited ${rest.code}: ${rest.stderr}`)
    for (const member of this.#crew) this.#judgeEnd(member, await member.dismiss(drainMs))
    const failed = JSON.parse(await this.#must('failed', '--json')) as readonly { readonly id: number }[]
    const account = { batches: this.#load.batches, lines: this.#ledger.lines, failed: failed.map(({ id }) => id) }
    this.#wrong.push(...judge(account))
    if (this.#wrong.length > 0)
      throw new Error(`${this.#wrong.length} violations:\n${this.#wrong.slice(0, mostDescribed).join('\n')}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#load.stop()
    for (const { live } of this.#crew) await live[Symbol.asyncDispose]()
    this.#project[Symbol.dispose]()
  }

  get #place() {
    return { cwd: this.#project.path, env: this.#env }
  }

  async #must(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await khepri(args, this.#place)
    if (code !== 0) throw new Error(`khepri ${args.join(' ')} exited ${code}: ${stderr}`)
    return stdout
  }

  /** Waits until every worker has begun a job at that moment or later; answers how long after it, sorted. */
  async #until(at: number, when: string, ms: number): Promise<readonly number[]> {
    const begun = (): readonly number[] =>
      this.#crew.flatMap(({ pid }) => this.#ledger.starts.find((line) => line.pid === pid && line.at >= at)?.at ?? [])
    const isSo = (): boolean => begun().length === this.#crew.length
    await holdsWithin(ms, join(this.#project.path, 'ledger'), isSo)
    const moments = begun()
    const wedged = this.#crew.filter(
      ({ pid }) => !this.#ledger.starts.some((line) => line.pid === pid && line.at >= at),
    )
    for (const { pid, told } of wedged)
      this.#wrong.push(`worker ${pid} began no job within ${ms / 1_000} s ${when}; it said: ${told.join(' | ')}`)
    return moments.map((moment) => moment - at).toSorted((a, b) => a - b)
  }

  #judgeLines({ name, outages }: Fault, told: readonly string[]): void {
    const strange = told.filter((line) => !/^\S+Z store (lost: .+|back after .+)$/.test(line))
    const lost = told.filter((line) => line.includes('Z store lost')).length
    if (strange.length > 0) this.#wrong.push(`in ${name} a worker said: ${strange.slice(0, 3).join(' | ')}`)
    if (lost > outages)
      this.#wrong.push(`in ${name} a worker told ${lost} times of ${outages} outages: ${told.join(' | ')}`)
  }

  #judgeEnd({ pid }: CrewMember, ended: Ended | null): void {
    if (ended === null) this.#wrong.push(`worker ${pid} did not drain within ${drainMs / 1_000} s`)
    else if (ended.code !== 0) this.#wrong.push(`worker ${pid} exited ${ended.code ?? ended.signal}: ${ended.stderr}`)
    else if (/ LOST \d/.test(ended.stdout))
      this.#wrong.push(`worker ${pid} lost jobs: ${ended.stdout.match(/ LOST \d.*/g)}`)
  }
}

/** It runs for longer than the fault lasts, and so for longer than a lease. */
function longJob({ name, ms }: Fault): readonly Asked[] {
  return [{ key: `through ${name}`, ms: ms + 2_000, fails: 0, tries: 1 }]
}

/** Enough for every slot; without them there might be nothing to do when the database is back. */
function dueAfter({ name, ms }: Fault): readonly Asked[] {
  return Array.from({ length: 12 }, (_, n) => ({ key: `${n} after ${name}`, ms: 200, fails: 0, tries: 1, delayMs: ms }))
}

/** Looks each time a file grows; answers whether it came to hold before so much time had passed. */
function holdsWithin(ms: number, file: string, holds: () => boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (answer: boolean): void => {
      clearTimeout(timer)
      watcher.close()
      resolve(answer)
    }
    const watcher = watch(file, () => {
      if (holds()) end(true)
    })
    const timer = setTimeout(() => end(false), ms)
    if (holds()) end(true)
  })
}
