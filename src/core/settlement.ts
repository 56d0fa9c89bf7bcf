import type { Attempt } from './attempt.ts'
import { defaults } from './defaults.ts'
import type { ErrorFacts, EventBus } from './events.ts'
import type { Verdict } from './policy.ts'
import type { AttemptRecord, FollowUp, JobId, Settlement } from './store/store.ts'
import { clean, describeError } from './text.ts'

/** An attempt that has ended and waits to be written. */
export interface Finished {
  readonly attempt: Attempt
  readonly verdict: Exclude<Verdict, { kind: 'drop' }>
  readonly settlement: Settlement
}

/** How long done jobs stay; null: they are deleted at once. */
export interface Keeping {
  readonly keepDoneMs: number | null
}

/** What the store is asked to write for a verdict. `worker` is the name that people will read beside the error. */
export function settlementOf(
  attempt: Attempt,
  verdict: Finished['verdict'],
  worker: string,
  keeping: Keeping,
): Settlement {
  const { id, fence } = attempt.reservation
  switch (verdict.kind) {
    case 'complete':
      return { id, fence, kind: 'complete', keep: keeping.keepDoneMs !== null }
    case 'release':
      return { id, fence, kind: 'release', delayMs: verdict.delayMs }
    case 'cancel':
      return { id, fence, kind: 'cancel', attempt: recordOf(attempt, verdict.error, worker) }
    case 'retry':
      return { id, fence, kind: 'retry', delayMs: verdict.delayMs, attempt: recordOf(attempt, verdict.error, worker) }
    case 'fail':
      return { id, fence, kind: 'fail', reason: verdict.reason, attempt: recordOf(attempt, verdict.error, worker) }
  }
}

/** What commits together with the completions among these. */
export function followUpsOf(finished: readonly Finished[]): readonly FollowUp[] {
  const leading = finished.filter(({ attempt, verdict }) => verdict.kind === 'complete' && attempt.followUps.length > 0)
  return leading.flatMap(({ attempt }) => attempt.followUps.map((row) => ({ ...row, parent: attempt.reservation.id })))
}

/** Tells this process of follow-ups that were written. */
export function announceFollowUps(jobs: readonly FollowUp[], ids: readonly (JobId | null)[], events: EventBus): void {
  for (const [index, { job, queue }] of jobs.entries()) {
    const id = ids[index]
    if (typeof id === 'number') events.emit('job.enqueued', { id, job, queue })
  }
}

function recordOf(attempt: Attempt, error: unknown, worker: string): AttemptRecord {
  const { type, message, stack }: ErrorFacts = describeError(error)
  return {
    attempt: attempt.attempt,
    worker,
    startedAt: attempt.startedAt,
    endedAt: attempt.startedAt + attempt.ms,
    errorType: type,
    message,
    stack,
    output: attempt.output === null ? null : clean(attempt.output, defaults.maxOutputLength),
  }
}

/** Tells the world about a settlement that the store has accepted. */
export function announce({ attempt, verdict }: Finished, events: EventBus): void {
  if (!events.isHeard) return
  const { facts, ms } = attempt
  switch (verdict.kind) {
    case 'complete':
      events.emit('job.done', { ...facts, ms, waitMs: attempt.waitMs })
      break
    case 'cancel':
      events.emit('job.cancelled', { ...facts, ms })
      break
    case 'release':
      events.emit('job.released', { ...facts, ms, delayMs: verdict.delayMs, why: verdict.why })
      break
    case 'retry':
      events.emit('job.retry', { ...facts, ms, delayMs: verdict.delayMs, error: describeError(verdict.error) })
      break
    case 'fail':
      events.emit('job.failed', { ...facts, ms, reason: verdict.reason, error: describeError(verdict.error) })
      break
  }
}
