import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { AgentProcess, type StartOptions } from './agent-process.ts'
import type { Contestant } from './contestants.ts'
import { Crew } from './crew.ts'
import { type JobList, plain } from './job-list.ts'
import { now, type Place } from './peer.ts'
import type { Venue } from './places.ts'

const run = promisify(execFile)
const bin = join(import.meta.dirname, '../bin/run.cjs')

/** How workers of a measure are started. */
export interface CrewOptions {
  readonly processes?: number
  readonly concurrency?: number | null
  readonly keepsRuns?: boolean
}

/** One contestant in one measure of one round, in a place of its own. */
export class Contest implements AsyncDisposable {
  readonly contestant: Contestant
  readonly place: Place
  readonly #venue: Venue
  readonly #processes: AgentProcess[] = []
  #client: AgentProcess | null = null

  private constructor(contestant: Contestant, venue: Venue, place: Place) {
    this.contestant = contestant
    this.place = place
    this.#venue = venue
  }

  /** Makes a place, and the contestant's tables in it. */
  static async open(contestant: Contestant, venue: Venue): Promise<Contest> {
    const contest = new Contest(contestant, venue, await venue.place())
    try {
      await contest.client.send('prepare')
      return contest
    } catch (error) {
      await contest[Symbol.asyncDispose]()
      throw error
    }
  }

  /** The adding side, in a process of its own. */
  get client(): AgentProcess {
    this.#client ??= this.#start('client', {})
    return this.#client
  }

  /** A list that is no longer than this contestant works off in bearable time. */
  list(parts: Partial<JobList>): JobList {
    const list = { ...plain, ...parts }
    return { ...list, count: Math.min(list.count, this.contestant.mostJobs) }
  }

  /** Puts jobs in; the answer is how many. */
  async fill(parts: Partial<JobList>): Promise<number> {
    const list = this.list(parts)
    await this.client.ask('fill', { list })
    return list.count
  }

  left(): Promise<number> {
    return this.client.ask('left', undefined)
  }

  /** Starts workers that begin together when they are told to. */
  async crew({ processes = 1, ...options }: CrewOptions): Promise<Crew> {
    const { commandLine } = this.contestant
    if (commandLine && processes > 1) await this.#khepri('pause', 'default')
    const role = commandLine && processes === 1 ? 'work' : 'gated'
    const members = commandLine && processes === 1 ? [] : this.#startMany(processes, role, options)
    await Promise.all(members.map((member) => member.ready()))
    if (commandLine && processes > 1) await this.#untilJoined(processes)
    const go = async (): Promise<void> => {
      if (commandLine && processes > 1) await this.#khepri('resume', 'default')
      else if (commandLine) crew.add(this.#start('work', options))
      else await Promise.all(members.map((member) => member.send('go')))
    }
    const crew: Crew = new Crew(members, go)
    return crew
  }

  /** Starts one worker process that begins by itself; answers it at once. */
  worker(options: CrewOptions): AgentProcess {
    return this.#start('work', options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((each) => each.stop()))
    await this.#venue.clear(this.place)
  }

  #startMany(count: number, role: StartOptions['role'], options: CrewOptions): AgentProcess[] {
    return Array.from({ length: count }, () => this.#start(role, options))
  }

  #start(role: StartOptions['role'], { concurrency = null, keepsRuns = false }: CrewOptions): AgentProcess {
    const { contestant, place } = this
    const started = new AgentProcess({ contestant, place, role, concurrency, keepsRuns })
    this.#processes.push(started)
    return started
  }

  async #khepri(...words: readonly string[]): Promise<string> {
    const { stdout } = await run(process.execPath, [bin, ...words], { cwd: this.place.folder })
    return stdout
  }

  /** A worker of the command line has loaded when the store knows it. */
  async #untilJoined(count: number): Promise<void> {
    const deadline = now() + 20_000
    while ((JSON.parse(await this.#khepri('workers', '--json')) as readonly unknown[]).length < count) {
      if (now() > deadline) throw new Error(`${count} workers did not join within 20 s`)
      await wait(100)
    }
  }
}
