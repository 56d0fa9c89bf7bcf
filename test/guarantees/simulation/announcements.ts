import type { EventBus, Events, WorkerReport } from '../../../src/core/events.ts'
import type { JobId } from '../../../src/core/store/store.ts'
import type { Record } from './record.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { Timeline } from './timeline.ts'

const endings = ['job.done', 'job.retry', 'job.failed', 'job.released', 'job.cancelled', 'job.lost'] as const

/** Listens to what one worker tells, and accuses it of silence, of repetition and of false alarms. */
export class Announcements {
  readonly #process: SimulatedProcess
  readonly #record: Record
  readonly #timeline: Timeline
  readonly #told = new Map<string, number>()
  #isLost = false
  /** How often it told of an outage, and how many calls have broken: a thread's calls are heard of late. */
  #outages = 0
  #missed = 0
  /** Calls that broke since it last told that the store is back, and calls that were answered since the first of these. */
  #missedOfLate = 0
  #answered = 0
  #drainingAt = 0
  #lastMissedAt = Number.NEGATIVE_INFINITY

  constructor(process: SimulatedProcess, events: EventBus, record: Record, timeline: Timeline) {
    this.#process = process
    this.#record = record
    this.#timeline = timeline
    events.onAny((name, event) => {
      if (!process.isGone) this.#hear(name, event)
    })
  }

  /** A call of the process broke. */
  missed(): void {
    this.#missed++
    if (this.#missedOfLate++ === 0) this.#answered = 0
    this.#lastMissedAt = this.#timeline.now
  }

  /** A call of the process was answered. */
  reached(): void {
    this.#answered++
  }

  #hear(name: keyof Events, event: Events[keyof Events]): void {
    this.#told.set(name, (this.#told.get(name) ?? 0) + 1)
    if (name !== 'job.log')
      this.#record.note(`${this.#process.name} tells ${name}${'id' in event ? ` ${event.id}` : ''}`)
    if (name === 'worker.draining') this.#draining()
    if (name === 'store.lost') this.#lost()
    if (name === 'store.back') this.#back()
    if ((endings as readonly string[]).includes(name)) this.#ended((event as Events['job.done']).id, name)
    if (name === 'worker.stopped') this.#stopped(event as WorkerReport)
  }

  #draining(): void {
    this.#process.mayGiveBack = true
    this.#drainingAt = this.#timeline.now
  }

  #lost(): void {
    if (this.#isLost) this.#accuse(12, 'told twice that the store is lost')
    if (++this.#outages > this.#missed) this.#accuse(12, 'told that the store is lost, and no call had broken')
    this.#isLost = true
  }

  #back(): void {
    if (!this.#isLost) this.#accuse(12, 'told that the store is back, and it was not lost')
    if (this.#answered === 0) this.#accuse(12, 'told that the store is back, and no call had been answered')
    this.#isLost = false
    this.#missedOfLate = 0
  }

  #ended(id: JobId, name: string): void {
    // Beside the one that was started there may be one whose answer came too late to be begun.
    const untold = this.#process.hands.filter((each) => each.id === id && !each.isTold)
    const hand = untold.find(({ hasStarted }) => hasStarted) ?? untold[0]
    if (hand) hand.isTold = true
    else this.#accuse(4, `told ${name} of job ${id}, whose end it had told before`, [id])
  }

  #stopped(report: WorkerReport): void {
    const started = this.#process.hands.filter(({ hasStarted }) => hasStarted)
    const untold = started.filter((hand) => !hand.isTold && !report.unwritten.includes(hand.id))
    if (untold.length > 0) {
      const ids = untold.map(({ id }) => id)
      this.#accuse(10, `stopped without a word about ${ids.length === 1 ? 'job' : 'jobs'} ${ids.join(', ')}`, ids)
    }
    const hinderedAt = Math.max(this.#lastMissedAt, this.#process.disturbedUntil)
    if (report.unwritten.length > 0 && hinderedAt < this.#drainingAt)
      this.#accuse(10, 'gave up on its results, and the store was there', report.unwritten)
    const { done, retried, failed, released, cancelled, lost } = report
    const said = [done, retried, failed, released, cancelled, lost]
    const told = endings.map((name) => this.#told.get(name) ?? 0)
    if (said.join() !== told.join()) this.#accuse(10, `reported ${said.join('/')} endings, and told ${told.join('/')}`)
  }

  /** In the end: the store has been there for long enough. */
  check(): void {
    if (this.#isLost) this.#accuse(12, 'has never told that the store is back')
  }

  #accuse(promise: number, what: string, jobs: readonly JobId[] = []): void {
    this.#record.accuse(promise, `${this.#process.name} ${what}`, jobs)
  }
}
