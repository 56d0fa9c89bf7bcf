import type { Attempt } from '../core/attempt.ts'
import { KhepriError } from '../core/errors.ts'
import { type LoneSetting, loneAttempt, runLone, unstored } from '../core/lone-attempt.ts'
import { callsFailedHook, decide, type Verdict } from '../core/policy.ts'
import { announce } from '../core/settlement.ts'
import { requireGivenOut } from '../core/store/continuations.ts'
import type { Enqueued, JobId, NewJob } from '../core/store/store.ts'

/** Runs jobs where they are dispatched, one after the other, and keeps nothing of them. */
export class RunAtDispatch {
  readonly #setting: LoneSetting
  #lastId: JobId = 0

  constructor(setting: LoneSetting) {
    this.#setting = setting
  }

  /**
   * Runs each job until it is done, again at once where it fails, as often as it may. Delays are ignored.
   *
   * Rejects with what the last attempt threw; what comes after it in the call does not run.
   */
  async enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    for (const { after = [] } of jobs) requireGivenOut(after, this.#lastId)
    const enqueued: Enqueued[] = []
    for (const job of jobs) enqueued.push({ id: await this.#run(job), duplicate: false })
    return enqueued
  }

  async #run(job: NewJob): Promise<JobId> {
    const id = ++this.#lastId
    for (let failures = 0; ; failures++) {
      const { attempt, verdict } = await this.#attempt(job, id, failures)
      announce({ attempt, verdict, settlement: { id, fence: 0, kind: 'complete', keep: false } }, this.#setting.events)
      if (verdict.kind === 'retry') continue
      if (verdict.kind === 'complete') await this.enqueue(attempt.followUps)
      else await fail(attempt, verdict)
      return id
    }
  }

  async #attempt(job: NewJob, id: JobId, failures: number): Promise<{ attempt: Attempt; verdict: Decided }> {
    const { clock, events } = this.#setting
    const lone = loneAttempt({ ...unstored(job, clock.now()), id, failures }, this.#setting)
    const outcome = await runLone(lone, events, () => {})
    return { attempt: lone.attempt, verdict: decide(outcome, lone.attempt, Math.random()) as Decided }
  }
}

/** Nobody else can hold what no store knows. */
type Decided = Exclude<Verdict, { kind: 'drop' }>

/** Throws why a job has failed for good, after its failed() hook. */
async function fail(attempt: Attempt, verdict: Decided): Promise<never> {
  if (callsFailedHook(verdict)) await attempt.runFailedHook(verdict.error)
  if ('error' in verdict) throw verdict.error
  throw new KhepriError('USAGE', `${attempt.reservation.job} asked to run later, and sync: has no later`, {
    fix: 'use memory: or a database for jobs that call release()',
  })
}
