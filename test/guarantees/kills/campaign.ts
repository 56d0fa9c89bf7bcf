import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { TempProject } from '../../support/temp-project.ts'
import { foundNothing, type History } from '../history/history.ts'
import { LedgerFile, stepModule } from '../history/ledger.ts'
import { type RecordedWorker, Recorder } from '../history/recorder.ts'
import type { Print } from '../part.ts'
import { Seeded } from '../simulation/seeded.ts'
import { Progress } from './progress.ts'
import { timingFor } from './timing.ts'
import { fileOf, queues, Workload } from './workload.ts'

/** What one campaign does, on one store. */
export interface CampaignTerms {
  readonly seed: number
  /** So many processes are killed while they live. */
  readonly kills: number
  /** At least so many jobs are dispatched. */
  readonly jobs: number
  /** Of Postgres; null: an SQLite file of the campaign's own. */
  readonly url: string | null
  readonly print: Print
}

/** What happened in it. */
export interface CampaignTally {
  readonly workersKilled: number
  readonly commandsKilled: number
  readonly stopsBeyondLease: number
  readonly jobs: number
}

/** As many workers live at any time, but for the moment in which one is replaced. */
const crewSize = 3
/** So many jobs wait for their end before more are dispatched. */
const backlog = 150
/** So many failed jobs are looked at one by one in the end. */
const shownFailures = 4
/** A file with fewer than 1,000 jobs is answered with their ids. */
const largestFile = 900

/**
 * Runs khepri as its users have it, real processes on a real store, and kills them at random.
 *
 * Every decision comes from the seed. What the processes make of it depends on the machine, so that a seed narrows a
 * failure down rather than replays it; the history of a failed campaign is kept.
 */
export class Campaign implements Disposable {
  readonly #terms: CampaignTerms
  readonly #project: TempProject
  readonly #recorder: Recorder
  readonly #ledger: LedgerFile
  readonly #seeded: Seeded
  readonly #workload: Workload
  readonly #progress = new Progress()
  readonly #pauses = new Set<Promise<void>>()
  #crew: RecordedWorker[] = []
  #files = 0
  #timing = timingFor(0)
  #tally = { workersKilled: 0, commandsKilled: 0, stopsBeyondLease: 0 }

  constructor(terms: CampaignTerms) {
    const settings = {
      ...(terms.url !== null && { database: terms.url }),
      sleep: '100ms',
    }
    this.#terms = terms
    this.#project = new TempProject({
      'package.json': '{}',
      'khepri.config.json': JSON.stringify(settings),
      'jobs/step.mjs': stepModule,
    })
    this.#recorder = new Recorder(this.#project.path)
    this.#ledger = new LedgerFile(join(this.#project.path, 'ledger'))
    this.#seeded = new Seeded(terms.seed)
    this.#workload = new Workload(this.#seeded.fork())
  }

  get tally(): CampaignTally {
    return { ...this.#tally, jobs: this.#workload.count }
  }

  async run(): Promise<History> {
    try {
      await this.#begin()
      await this.#openInOrder()
      while (this.#kills < this.#terms.kills) await this.#storm()
      await this.#calm()
      await this.#conclude()
    } finally {
      for (const worker of this.#recorder.workers) worker.send('SIGKILL')
      await Promise.all(this.#recorder.workers.map(({ ended }) => ended))
    }
    const { clients, workers } = this.#recorder
    return { timing: this.#timing, ledger: this.#ledger.lines, clients, workers: workers.map(({ seen }) => seen) }
  }

  [Symbol.dispose](): void {
    this.#project[Symbol.dispose]()
  }

  get #kills(): number {
    return this.#tally.workersKilled + this.#tally.commandsKilled
  }

  async #begin(): Promise<void> {
    await this.#recorder.client(['migrate'])
    const { startedAt, endedAt } = await this.#recorder.client(['failed', '--json'])
    this.#timing = timingFor(endedAt - startedAt)
  }

  /** Everything waits before the first worker comes, so that its order can be told. */
  async #openInOrder(): Promise<void> {
    await this.#dispatch(this.#workload.drawPlain(90, 20))
    this.#fillCrew()
    await this.#until(() => this.#progress.open === 0)
  }

  /** Feeds the queues, does one thing to somebody, and waits a moment. */
  async #storm(): Promise<void> {
    this.#fillCrew()
    await this.#feed()
    await this.#strike()
    await wait(this.#seeded.between(20, 300))
  }

  async #feed(): Promise<void> {
    const share = Math.ceil((this.#terms.jobs * (this.#kills + 1)) / this.#terms.kills)
    const count = Math.min(largestFile, share - this.#workload.count)
    if (count > 0 && (this.#progress.open < backlog || count === largestFile))
      await this.#dispatch(this.#workload.draw(count))
  }

  async #strike(): Promise<void> {
    this.#takeNew()
    const dice = this.#seeded.next()
    const victim = this.#pickWorker()
    if (dice < 0.4) await this.#killCommand()
    else if (!victim) return
    else if (dice < 0.8) this.#killWorker(victim)
    else if (dice < 0.88) victim.send('SIGTERM')
    else if (dice < 0.94) this.#pause(victim, 200)
    else if (this.#pauses.size === 0) this.#pause(victim, 1.5 * this.#timing.leaseMs)
  }

  /** One that has a job in hand, most of the time: whoever dies idle, or before it has begun, proves little. */
  #pickWorker(): RecordedWorker | undefined {
    const free = this.#crew.filter(({ isPaused, isLeaving }) => !isPaused && !isLeaving)
    const busy = free.filter(({ name }) => this.#progress.isBusy(name))
    const choice = busy.length > 0 && this.#seeded.chance(0.8) ? busy : free
    return choice[this.#seeded.whole(0, Math.max(0, choice.length - 1))]
  }

  #killWorker(victim: RecordedWorker): void {
    victim.send('SIGKILL')
    this.#tally.workersKilled++
  }

  #pause(victim: RecordedWorker, ms: number): void {
    if (ms > this.#timing.leaseMs) this.#tally.stopsBeyondLease++
    victim.send('SIGSTOP')
    const over = wait(ms).then(() => {
      victim.send('SIGCONT')
      this.#pauses.delete(over)
    })
    this.#pauses.add(over)
  }

  async #killCommand(): Promise<void> {
    const afterMs = this.#seeded.between(50, 600)
    const dice = this.#seeded.next()
    const failed = dice < 0.6 ? [] : await this.#failedIds()
    const some = failed.slice(0, this.#seeded.whole(1, 20)).map(String)
    if (some.length === 0) await this.#dispatch(this.#workload.draw(this.#seeded.whole(1, 40)), afterMs)
    else if (dice < 0.9) await this.#command(['retry', ...some], afterMs)
    else await this.#command(['flush', some[0] as string], afterMs)
  }

  async #command(argv: readonly string[], killAfterMs: number): Promise<void> {
    const { signal } = await this.#recorder.client(argv, [], killAfterMs)
    if (signal === 'SIGKILL') this.#tally.commandsKilled++
  }

  async #failedIds(): Promise<readonly number[]> {
    const { code, stdout } = await this.#recorder.client(['failed', '--json'])
    return code === 0 ? (JSON.parse(stdout) as { readonly id: number }[]).map(({ id }) => id) : []
  }

  async #dispatch(jobs: ReturnType<Workload['draw']>, killAfterMs: number | null = null): Promise<void> {
    const file = `${++this.#files}.ndjson`
    this.#project.write(file, fileOf(jobs))
    const { code, signal } = await this.#recorder.client(['dispatch', file], jobs, killAfterMs)
    if (code === 0) this.#progress.expect(jobs)
    if (signal === 'SIGKILL') this.#tally.commandsKilled++
    if (this.#files % 50 === 0)
      this.#terms.print(`${this.#kills} kills, ${this.#workload.count} jobs, ${this.#progress.open} open`)
  }

  #fillCrew(): void {
    this.#crew = this.#crew.filter(({ isLeaving }) => !isLeaving)
    while (this.#crew.length < crewSize) this.#crew.push(this.#work(this.#seeded.chance(0.6) ? 1 : 4))
  }

  /** Its own tries must mean nothing to jobs that bring theirs. */
  #work(concurrency: number, ...flags: readonly string[]): RecordedWorker {
    const retryAfter = `--retry-after=${this.#timing.leaseMs}ms`
    return this.#recorder.work({ queues, concurrency, flags: ['--log=results', '--tries=50', retryAfter, ...flags] })
  }

  /** Faults are over; what can end ends. Dead workers are found within a lease, and their jobs run to their end. */
  async #calm(): Promise<void> {
    await Promise.all(this.#pauses)
    this.#fillCrew()
    const { leaseMs, beatMs } = this.#timing
    await wait(leaseMs + 3 * beatMs)
    await this.#until(() => this.#progress.open === 0)
  }

  /** Stops everybody gently, shows that nothing is left, and asks what has failed. */
  async #conclude(): Promise<void> {
    for (const worker of this.#crew) if (!worker.isLeaving) worker.send('SIGTERM')
    await Promise.all(this.#recorder.workers.map(({ ended }) => ended))
    for (let left = 10; left > 0; left--) {
      const last = this.#work(1, '--stop-when-empty')
      const { stdout } = await last.ended
      if (foundNothing.test(stdout)) break
      await wait(this.#timing.beatMs)
    }
    const failed = await this.#failedIds()
    for (const id of failed.slice(0, shownFailures)) await this.#recorder.client(['failed', String(id), '--json'])
  }

  #takeNew(): void {
    this.#progress.take(this.#ledger.takeNew())
  }

  /** Waits for something that the ledger will show, keeping the crew alive; gives up after a while, and the checker tells why. */
  async #until(holds: () => boolean): Promise<void> {
    for (let left = 1_200; left > 0 && !holds(); left--) {
      await wait(50)
      this.#fillCrew()
      this.#takeNew()
    }
  }
}
