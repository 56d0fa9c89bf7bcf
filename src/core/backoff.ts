import { defaults } from './defaults.ts'
import { type DurationInput, parseDuration } from './duration.ts'
import { KhepriError } from './errors.ts'

/** How long a failed attempt waits for the next, as data; it travels in the envelope. */
export type Backoff =
  | { readonly kind: 'none' }
  | { readonly kind: 'fixed'; readonly delayMs: number }
  /** One delay after each failure; the last one repeats. */
  | { readonly kind: 'list'; readonly delaysMs: readonly number[] }
  | {
      readonly kind: 'linear' | 'exponential'
      readonly baseMs: number
      readonly maxMs: number
      readonly jitter: boolean
    }

/** Backoff as users write it: a duration, a list of durations, or an object. */
export type BackoffInput =
  | DurationInput
  | readonly DurationInput[]
  | { readonly kind: 'none' }
  | { readonly kind: 'fixed'; readonly delay: DurationInput }
  | {
      readonly kind: 'linear' | 'exponential'
      readonly base?: DurationInput
      readonly max?: DurationInput
      readonly jitter?: boolean
    }

const keysOf: Readonly<Record<Backoff['kind'], readonly string[]>> = {
  none: [],
  fixed: ['delay'],
  list: ['delays'],
  linear: ['base', 'max', 'jitter'],
  exponential: ['base', 'max', 'jitter'],
}

const longestList = 100

/** Reads a backoff policy. `what` names it in messages. Throws DATA_INVALID. */
export function parseBackoff(input: unknown, what: string): Backoff {
  if (typeof input === 'string' || typeof input === 'number') return { kind: 'fixed', delayMs: delay(input, what) }
  if (Array.isArray(input)) return listOf(input, what)
  if (typeof input !== 'object' || input === null)
    throw invalid(what, 'a duration, a list of durations or an object with a kind')
  const { kind, ...rest } = input as Record<string, unknown>
  if (typeof kind !== 'string' || !Object.hasOwn(keysOf, kind))
    throw invalid(`${what}.kind`, `one of ${Object.keys(keysOf).join(', ')}`)
  const known = keysOf[kind as Backoff['kind']]
  const stranger = Object.keys(rest).find((key) => !known.includes(key))
  if (stranger !== undefined)
    throw new KhepriError('DATA_INVALID', `${what} of kind ${kind} has no ${JSON.stringify(stranger)}`)
  return build(kind as Backoff['kind'], rest, what)
}

function build(kind: Backoff['kind'], rest: Record<string, unknown>, what: string): Backoff {
  if (kind === 'none') return { kind }
  if (kind === 'fixed') return { kind, delayMs: delay(rest.delay, `${what}.delay`) }
  if (kind === 'list') return listOf(rest.delays, `${what}.delays`)
  const jitter = rest.jitter ?? defaults.backoff.jitter
  if (typeof jitter !== 'boolean') throw invalid(`${what}.jitter`, 'true or false')
  const baseMs = rest.base === undefined ? defaults.backoff.baseMs : delay(rest.base, `${what}.base`)
  const maxMs = rest.max === undefined ? defaults.backoff.maxMs : delay(rest.max, `${what}.max`)
  return { kind, baseMs, maxMs, jitter }
}

function listOf(input: unknown, what: string): Backoff {
  if (!Array.isArray(input) || input.length === 0 || input.length > longestList)
    throw invalid(what, `a list of 1 to ${longestList} durations`)
  return { kind: 'list', delaysMs: input.map((each, index) => delay(each, `${what}[${index}]`)) }
}

const delay = (input: unknown, what: string): number => parseDuration(input, what, defaults.maxDelayMs)

const invalid = (what: string, wanted: string): KhepriError =>
  new KhepriError('DATA_INVALID', `${what} must be ${wanted}`)

/**
 * Milliseconds from a failed attempt to the next.
 *
 * attempt: the attempt that just failed, 1-based. random: a number in [0, 1), for jitter.
 * The result is a whole number in [0, maxMs] of the policy, and never beyond ten years, so that a stored policy cannot
 * name a time that is none. With jitter it lies anywhere between 0 and the plain delay.
 * Throws RangeError when attempt < 1. Source: "Exponential Backoff and Jitter" (full jitter), AWS Architecture Blog, 2015.
 */
export function backoffDelay(policy: Backoff, attempt: number, random: number): number {
  if (!(attempt >= 1)) throw new RangeError(`attempt must be at least 1, got ${attempt}`)
  switch (policy.kind) {
    case 'none':
      return 0
    case 'fixed':
      return capped(policy.delayMs)
    case 'list':
      return capped(policy.delaysMs[Math.min(attempt, policy.delaysMs.length) - 1] ?? 0)
    case 'linear':
      return jittered(policy, Math.min(policy.baseMs * attempt, policy.maxMs), random)
    case 'exponential':
      // 2 ** 1023 is the last finite power; clamped far below, so that no product overflows.
      return jittered(policy, Math.min(policy.baseMs * 2 ** Math.min(attempt - 1, 60), policy.maxMs), random)
  }
}

const capped = (delayMs: number): number => Math.min(delayMs, defaults.maxDelayMs)

const jittered = (policy: { readonly jitter: boolean }, delayMs: number, random: number): number =>
  policy.jitter ? Math.floor(random * (capped(delayMs) + 1)) : capped(delayMs)
