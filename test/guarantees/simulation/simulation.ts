import { beatInLoop, unwatched } from '../../../src/core/beat.ts'
import { isKhepriError } from '../../../src/core/errors.ts'
import { EventBus } from '../../../src/core/events.ts'
import type { Fate, ProcessTrace } from '../../../src/core/process-identity.ts'
import type { Admin } from '../../../src/core/store/admin.ts'
import { MemoryState } from '../../../src/core/store/memory/state.ts'
import { openMemoryStore } from '../../../src/core/store/memory/store.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { Worker } from '../../../src/core/worker.ts'
import type { Account } from './account.ts'
import { Announcements } from './announcements.ts'
import { beatInThread } from './beat-thread.ts'
import { Census } from './census.ts'
import { Clients } from './clients.ts'
import { Diary } from './diary.ts'
import { checkEnd } from './final-check.ts'
import { Link, type StoreEnd } from './link.ts'
import { Network } from './network.ts'
import { type Happening, type Plan, planFor, queues, steady, type WorkerPlan } from './plan.ts'
import { Record, type Violation } from './record.ts'
import { RecoveryCheck } from './recovery.ts'
import { registryFor } from './scripted-jobs.ts'
import { Seeded } from './seeded.ts'
import { Host, SimulatedProcess } from './simulated-process.ts'
import { Timeline } from './timeline.ts'
import { Witness } from './witness.ts'

/** A store with a fault in it: what it is asked goes to the real one, changed. */
export type Plant = (store: Store, admin: Admin, state: MemoryState) => { readonly store: Store; readonly admin: Admin }

/** What one seed came to. */
export interface Outcome {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly lines: readonly string[]
  readonly hash: string
  readonly figures: { readonly jobs: number; readonly runs: number; readonly steps: number; readonly virtualMs: number }
}

/** Plays the run of one seed to its end, or to the first promise that does not hold. */
export async function simulate(seed: number, plant: Plant = (store, admin) => ({ store, admin })): Promise<Outcome> {
  return new Simulation(planFor(seed), plant).run()
}

const profile = { version: '1.2.3', bootId: 'boot', pidNamespace: 'namespace', pidStart: null }

/** Time in which everything must have ended once the faults are over. */
const patienceMs = 2 * 3_600_000

/** In which, after a lease, every loop of every worker has found the store again. */
const calmMs = 8_000

class Simulation {
  readonly #plan: Plan
  readonly #random: Seeded
  readonly #timeline = new Timeline()
  readonly #record = new Record(this.#timeline)
  readonly #storeHost = new Host(this.#timeline)
  readonly #hosts: readonly Host[]
  readonly #end: StoreEnd
  readonly #diary: Diary
  readonly #recovery: RecoveryCheck
  readonly #clients: Clients
  /** What runs at each worker's place at the moment. */
  readonly #places: SimulatedProcess[] = []
  readonly #processes: SimulatedProcess[] = []
  #started = 0
  #isOver = false

  constructor(plan: Plan, plant: Plant) {
    this.#plan = plan
    this.#random = new Seeded(plan.seed).fork()
    const { isOneHost, workers, leaseMs } = plan
    this.#hosts = workers.map(() => (isOneHost ? this.#storeHost : new Host(this.#timeline)))
    const timeline = this.#timeline
    const record = this.#record
    const network = new Network(timeline, this.#random.fork(), leaseMs)
    const accounts = new Map<number, Account>()
    this.#diary = new Diary({ timeline, record, accounts })
    const census = new Census({ timeline, record, network })
    const storeClock = this.#storeHost
    const witness = new Witness({ record, census, accounts, storeClock, diary: this.#diary })
    const processes = this.#processes
    this.#recovery = new RecoveryCheck({ timeline, record, network, accounts, processes, leaseMs })
    const state = new MemoryState(this.#storeHost)
    const opened = openMemoryStore({ clock: this.#storeHost, state })
    this.#end = { ...plant(opened.store, opened.admin, state), witness, network, timeline }
    const newProcess = (name: string): SimulatedProcess => this.#newProcess(name, this.#storeHost)
    this.#clients = new Clients({ end: this.#end, record, random: this.#random.fork(), newProcess })
  }

  async run(): Promise<Outcome> {
    for (const [place, plan] of this.#plan.workers.entries()) this.#startAt(place, plan)
    for (const happening of this.#plan.happenings) this.#timeline.after(happening.at, () => this.#happen(happening))
    await this.#until(() => false, this.#plan.faultsMs)
    if (!this.#isBroken) await this.#settleDown()
    if (!this.#isBroken) await this.#drainAll()
    if (!this.#isBroken) await checkEnd(this.#end, this.#clients.acknowledged, this.#record)
    return this.#outcome()
  }

  get #isBroken(): boolean {
    return this.#record.violations.length > 0
  }

  #until(isDone: () => boolean, forMs: number): Promise<boolean> {
    return this.#timeline.runUntil(() => this.#isBroken || isDone(), this.#timeline.now + forMs)
  }

  #startAt(place: number, plan: WorkerPlan): void {
    const host = this.#hosts[place % this.#hosts.length] as Host
    const process = this.#newProcess(`${plan.options.name}.${++this.#started}`, host)
    this.#places[place] = process
    process.isBroken = plan.isBroken
    const events = new EventBus()
    const hostName = `host-${this.#hosts.indexOf(host)}`
    process.announcements = new Announcements(process, events, this.#record, this.#timeline)
    const parts = {
      store: new Link(process, this.#end, { flights: plan.flights }),
      registry: registryFor(process, plan, this.#diary),
      events,
      clock: process,
      random: this.#random.fork().next,
      startBeat: plan.beatsFromThread
        ? beatInThread(process, new Link(process, this.#end, { of: 'thread' }))
        : beatInLoop,
      watch: unwatched,
      fateOf: (neighbour: ProcessTrace) => this.#fateOf(neighbour),
      profile: { ...profile, host: hostName, pid: process.pid },
    }
    const again = (): void => this.#startAgain(place, plan)
    process.onGone = () => {
      this.#recovery.killed(process)
      again()
    }
    Worker.start({ ...plan.options, name: process.name }, parts).then(
      (worker) => this.#watch(process, worker, again),
      (error: unknown) => this.#notStarted(process, error, again),
    )
  }

  /** What the operating system of a worker's own host would say: asked only about neighbours there. */
  #fateOf({ pid }: ProcessTrace): Fate {
    return this.#processes[pid]?.isGone === false ? 'alive' : 'gone'
  }

  #watch(process: SimulatedProcess, worker: Worker, again: () => void): void {
    process.worker = worker
    if (this.#isOver) worker.drain('signal')
    worker.finished.then(
      () => {
        process.worker = null
        this.#checkTimers(process)
        again()
      },
      (error: unknown) => this.#record.accuse(7, `${process.name} could not go on: ${String(error)}`),
    )
  }

  #notStarted(process: SimulatedProcess, error: unknown, again: () => void): void {
    this.#record.note(`${process.name} could not start`)
    if (isKhepriError(error) && error.code !== 'BUG') again()
    else this.#record.accuse(7, `${process.name} could not start: ${String(error)}`)
  }

  #checkTimers(process: SimulatedProcess): void {
    if (process.pendingTimers > 0)
      this.#record.accuse(10, `${process.name} has stopped and left ${process.pendingTimers} timers`)
  }

  /** A supervisor: what ends is started again. */
  #startAgain(place: number, plan: WorkerPlan): void {
    if (this.#isOver) return
    this.#timeline.after(this.#random.between(100, 3_000), () => {
      if (!this.#isOver) this.#startAt(place, plan)
    })
  }

  #newProcess(name: string, host: Host): SimulatedProcess {
    const pid = this.#processes.length
    const process = new SimulatedProcess({ name, host, pid, timeline: this.#timeline, random: this.#random.fork() })
    this.#processes.push(process)
    return process
  }

  #happen(happening: Happening): void {
    const { kind } = happening
    if (kind !== 'dispatch') this.#record.note(JSON.stringify(happening))
    const process = 'worker' in happening && happening.worker !== null ? this.#places[happening.worker] : undefined
    switch (kind) {
      case 'dispatch':
        void this.#clients.dispatch(happening.jobs, happening.dies)
        break
      case 'storm':
        this.#end.network.storm(happening.weather, happening.forMs, process ?? null)
        break
      case 'set clock':
        this.#setClock(this.#hosts[happening.worker] as Host, happening.byMs)
        break
      case 'retry failed':
        void this.#clients.retryFailed()
        break
      case 'cancel':
        void this.#clients.cancel(happening.queue)
        break
      case 'pause queue':
      case 'resume queue':
        void this.#clients.setPaused(happening.queue, kind === 'pause queue')
        break
      default:
        if (process && !process.isGone) this.#tell(process, happening)
    }
  }

  #setClock(host: Host, byMs: number): void {
    host.offsetMs += byMs
    this.#end.network.clockSets.push(this.#timeline.now)
  }

  #tell(process: SimulatedProcess, happening: Happening & { readonly worker: number | null }): void {
    const { worker } = process
    switch (happening.kind) {
      case 'kill':
        return process.kill()
      case 'stop':
        return process.stopFor(happening.forMs)
      case 'drain':
      case 'abort':
        if (worker) process.isToldToDrain = true
        return worker?.[happening.kind]()
      case 'quiet':
        process.isQuiet = worker !== null
        process.mayGiveBack = true
        return worker?.quiet()
      case 'resume':
        process.isQuiet = false
        return worker?.resume()
    }
  }

  /** The faults are over: the network is there, clocks are right, and a worker that knows every job joins the others. */
  async #settleDown(): Promise<void> {
    this.#record.note('the faults are over')
    const { leaseMs } = this.#plan
    this.#end.network.calm()
    for (const host of new Set([this.#storeHost, ...this.#hosts])) this.#setClock(host, -host.offsetMs)
    for (const process of this.#places) {
      process.isQuiet = false
      process.worker?.resume()
    }
    for (const queue of queues) void this.#clients.setPaused(queue, false)
    this.#startAt(this.#plan.workers.length, {
      options: steady('finisher', leaseMs),
      knowsRare: true,
      isBroken: false,
      beatsFromThread: false,
      flights: 1,
    })
    const { witness } = this.#end
    const deadline = this.#timeline.now + patienceMs
    // Again, when the last late commit of an operator has come.
    this.#timeline.after(leaseMs, () => {
      for (const queue of queues) void this.#clients.setPaused(queue, false)
    })
    await this.#until(() => this.#timeline.now > this.#hinderedUntil + calmMs + leaseMs, patienceMs)
    for (let isDone = false; !isDone && this.#timeline.now < deadline && !this.#isBroken; ) {
      isDone = await this.#until(() => witness.live.length === 0, 5 * leaseMs)
      if (!isDone) this.#skipAhead()
    }
    for (const { id, plan, holding } of witness.live)
      this.#record.accuse(
        2,
        `job ${id} (n=${plan.n}) has not ended; ${holding ? `${holding.process.name} holds it` : 'nobody holds it'}`,
        [id],
      )
  }

  /** When the last process goes on that is frozen or blocks its event loop; the end of the faults at the least. */
  get #hinderedUntil(): number {
    const alive = this.#places.filter(({ isGone }) => !isGone)
    return Math.max(this.#plan.faultsMs, ...alive.map(({ heldUntil }) => heldUntil))
  }

  /** Where everything waits for a time far ahead, the clocks of all go there. */
  #skipAhead(): void {
    const { witness } = this.#end
    const waitMs = Math.min(
      ...witness.live.map(({ availableAt, holding }) => (holding ? 0 : availableAt - witness.now)),
    )
    if (waitMs > 0) for (const host of new Set([this.#storeHost, ...this.#hosts])) this.#setClock(host, waitMs)
  }

  async #drainAll(): Promise<void> {
    this.#record.note('all are told to drain')
    this.#isOver = true
    for (const process of this.#places) if (!process.isGone && process.worker) process.announcements?.check()
    for (const process of this.#places) {
      process.isToldToDrain = true
      process.worker?.drain('signal')
    }
    const working = (): SimulatedProcess[] => this.#places.filter(({ isGone, worker }) => !isGone && worker !== null)
    await this.#until(() => working().length === 0, patienceMs)
    for (const { name } of working()) this.#record.accuse(10, `${name} does not end its drain`)
  }

  #outcome(): Outcome {
    const { violations, lines, hash } = this.#record
    const { now, steps } = this.#timeline
    const jobs = this.#end.witness.accounts.size
    const figures = { jobs, runs: this.#diary.count, steps, virtualMs: Math.round(now) }
    return { seed: this.#plan.seed, violations, lines, hash, figures }
  }
}
