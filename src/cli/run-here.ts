import { constants } from 'node:os'
import type { Khepri } from '../app.ts'
import type { Attempt } from '../core/attempt.ts'
import { systemClock } from '../core/clock.ts'
import { type LoneSetting, loneAttempt, runLone } from '../core/lone-attempt.ts'
import { decide, type Outcome, type Verdict } from '../core/policy.ts'
import type { Reservation } from '../core/store/store.ts'

/** How a job that was run here ended. */
export interface RanHere {
  readonly outcome: Outcome
  /** What a worker would make of it. */
  readonly verdict: Verdict
  readonly attempt: number
  readonly tries: number
  readonly ms: number
  /** What a job that is a process of its own wrote, its end at least; null: it wrote nothing, or to our stdout. */
  readonly output: string | null
  /** The exit status that a signal asks for; null: there was none. */
  readonly signalled: number | null
}

/** Runs one job in this process as a worker would, and writes nothing to any store. onLog: hears what the job logs. */
export async function runHere(app: Khepri, job: Reservation, onLog: (text: string) => void): Promise<RanHere> {
  const lone = loneAttempt(job, await settingOf(app))
  const { attempt } = lone
  const listening = listenFor(attempt)
  const outcome = await runLone(lone, app.events, onLog)
  const signalled = listening.stop()
  const { tries, ms, output } = attempt
  const verdict = decide(outcome, attempt, Math.random())
  return { outcome, verdict, attempt: attempt.attempt, tries, ms, output, signalled }
}

async function settingOf(app: Khepri): Promise<LoneSetting> {
  const { tries, backoff, timeoutMs, maxPayloadBytes } = app.config
  return {
    ...{ registry: await app.registry(), clock: systemClock, events: app.events },
    ...{ tries, backoff, timeoutMs, maxPayloadBytes, prepare: app.prepare, openScope: app.config.scope },
  }
}

/** A first signal aborts the job's own, a second one ends the process as signals do; a late error is the job's. */
function listenFor(attempt: Attempt): { stop(): number | null } {
  let signalled: number | null = null
  const interrupt = (signal: 'SIGINT' | 'SIGTERM'): void => {
    signalled ??= 128 + constants.signals[signal]
    attempt.interrupt()
  }
  const charge = (error: unknown): void => void attempt.charge(error)
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  process.on('uncaughtException', charge).on('unhandledRejection', charge)
  return {
    stop() {
      process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
      process.off('uncaughtException', charge).off('unhandledRejection', charge)
      return signalled
    },
  }
}
