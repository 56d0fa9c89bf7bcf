import { Attempt, type AttemptSetting } from './attempt.ts'
import type { EventBus } from './events.ts'
import type { Outcome } from './policy.ts'
import type { NewJob, Reservation } from './store/store.ts'

/** What an attempt without a worker needs. */
export type LoneSetting = Pick<
  AttemptSetting,
  'registry' | 'clock' | 'events' | 'tries' | 'backoff' | 'timeoutMs' | 'maxPayloadBytes' | 'prepare' | 'openScope'
>

/** One attempt for nobody's worker: nothing about it is written to any store. */
export interface LoneAttempt {
  readonly attempt: Attempt
  /** How it ended. A handler that ignores its signal never returns: its outcome is waited for, not its end. */
  readonly decided: Promise<Outcome>
}

/** Prepares one run of one job as a worker would do it; `runLone` begins it. */
export function loneAttempt(job: Reservation, setting: LoneSetting): LoneAttempt {
  const { promise: decided, resolve } = Promise.withResolvers<Outcome>()
  const attempt = new Attempt(job, {
    ...setting,
    gaveUp: new AbortController().signal,
    onDecided: (_, outcome) => resolve(outcome),
    onReturned: () => {},
    // No worker of any store.
    workerId: () => 0,
    onStuck: () => {},
    onBound: () => () => {},
  })
  return { attempt, decided }
}

/** Begins it, and waits until it is clear how it ended. onLog: hears what the job logs. */
export async function runLone(
  { attempt, decided }: LoneAttempt,
  events: EventBus,
  onLog: (text: string) => void,
): Promise<Outcome> {
  const stopLogging = events.on('job.log', ({ text }) => onLog(text))
  void attempt.run()
  const outcome = await decided
  attempt.dismiss()
  stopLogging()
  return outcome
}

/** A job that no store knows: its id is 0. now: epoch milliseconds. */
export function unstored({ job, queue, priority, envelope }: NewJob, now: number): Reservation {
  return {
    ...{ id: 0, fence: 0, job, queue, priority, envelope },
    ...{ failures: 0, crashes: 0, suspect: false, availableAt: now, enqueuedAt: now },
  }
}
