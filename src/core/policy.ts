import { type Backoff, backoffDelay } from './backoff.ts'
import { defaults } from './defaults.ts'
import { parseDuration } from './duration.ts'
import { isNonRetryable, retryAfterOf } from './job.ts'
import type { FailReason } from './store/store.ts'

/** How one attempt ended, before anybody has decided what follows from it. */
export type Outcome =
  | { readonly kind: 'done' }
  /** Thrown by the handler, from a timer of its own, or at its timeout. */
  | { readonly kind: 'threw'; readonly error: unknown }
  /** The handler asked to be given back; `delay` as it gave it, null for none. */
  | { readonly kind: 'released'; readonly delay: unknown }
  /** Somebody cancelled the job, and the handler did not return as if nothing had happened; the error it threw, if any. */
  | { readonly kind: 'cancelled'; readonly error: unknown }
  /** Our own shutdown ended it. */
  | { readonly kind: 'interrupted' }
  /** This process cannot import the job's module. */
  | { readonly kind: 'unloadable'; readonly source: string; readonly message: string }
  /** It can never run: unreadable, unknown, or over its crash limit. */
  | { readonly kind: 'refused'; readonly reason: Exclude<FailReason, 'tries' | 'refused'>; readonly error: unknown }
  /** Somebody else holds the job by now; nothing may be written. */
  | { readonly kind: 'lost' }

/** The terms an attempt is judged by: the envelope's, filled in with the worker's. */
export interface AttemptTerms {
  /** 1 on the first run. */
  readonly attempt: number
  readonly tries: number
  readonly backoff: Backoff
}

/** What follows from an outcome. */
export type Verdict =
  | { readonly kind: 'complete' }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly error: unknown }
  | { readonly kind: 'fail'; readonly reason: FailReason; readonly error: unknown }
  | { readonly kind: 'release'; readonly delayMs: number | null; readonly why: 'asked' | 'interrupted' | 'module' }
  | { readonly kind: 'cancel'; readonly error: unknown }
  | { readonly kind: 'drop' }

/**
 * Decides what an outcome means for its job: every rule about tries, backoff and endings stands here.
 *
 * random: a number in [0, 1), for the jitter of the backoff.
 */
export function decide(outcome: Outcome, terms: AttemptTerms, random: number): Verdict {
  switch (outcome.kind) {
    case 'done':
      return { kind: 'complete' }
    case 'lost':
      return { kind: 'drop' }
    case 'cancelled':
      return { kind: 'cancel', error: outcome.error }
    case 'interrupted':
      return { kind: 'release', delayMs: null, why: 'interrupted' }
    case 'unloadable':
      return { kind: 'release', delayMs: null, why: 'module' }
    case 'released':
      return decideRelease(outcome.delay, terms, random)
    case 'refused':
      return { kind: 'fail', reason: outcome.reason, error: outcome.error }
    case 'threw':
      return decideFailure(outcome.error, terms, random)
  }
}

/** Tells whether the failed() hook follows: not where the job was never understood, so that nobody knows its hook. */
export function callsFailedHook(verdict: Verdict): verdict is Verdict & { readonly kind: 'fail' } {
  return verdict.kind === 'fail' && verdict.reason !== 'poison' && verdict.reason !== 'unknown'
}

function decideRelease(delay: unknown, terms: AttemptTerms, random: number): Verdict {
  if (delay === null) return { kind: 'release', delayMs: defaults.releaseMs, why: 'asked' }
  try {
    return {
      kind: 'release',
      delayMs: parseDuration(delay, 'the delay of release()', defaults.maxDelayMs),
      why: 'asked',
    }
  } catch (error) {
    return decideFailure(error, terms, random)
  }
}

function decideFailure(error: unknown, terms: AttemptTerms, random: number): Verdict {
  if (isNonRetryable(error)) return { kind: 'fail', reason: 'refused', error }
  if (terms.attempt >= terms.tries) return { kind: 'fail', reason: 'tries', error }
  return { kind: 'retry', delayMs: delayAfter(error, terms, random), error }
}

/** RetryAfter outranks the backoff; where its delay is nonsense the backoff holds. */
function delayAfter(error: unknown, terms: AttemptTerms, random: number): number {
  const asked = retryAfterOf(error)
  if (asked !== undefined) {
    try {
      return parseDuration(asked, 'the delay of RetryAfter', defaults.maxDelayMs)
    } catch {
      // The attempt has failed either way, and what the handler meant cannot be known.
    }
  }
  return backoffDelay(terms.backoff, terms.attempt, random)
}
