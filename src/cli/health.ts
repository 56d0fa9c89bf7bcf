import { readFileSync } from 'node:fs'
import { KhepriError } from '../core/errors.ts'
import type { WorkCounts } from '../core/work.ts'

/** What a worker says of itself, in its health file and over HTTP. */
export interface Health {
  readonly worker: string
  readonly pid: number
  /** starting until the store has answered the first reservation; stuck where the loop that reserves does not turn. */
  readonly state: 'starting' | 'working' | 'draining' | 'stuck'
  readonly counts: WorkCounts
  /** Epoch milliseconds until which this may be believed. */
  readonly validUntil: number
}

/** Tells whether a worker that says this of itself is well at a moment, epoch ms. */
export function isWell({ state, validUntil }: Health, now: number): boolean {
  return (state === 'working' || state === 'draining') && now <= validUntil
}

/** Reads what a worker wrote with --health-file. Throws UNHEALTHY where nobody has, or it is no such file. */
export function readHealth(path: string): Health {
  try {
    const health = JSON.parse(readFileSync(path, 'utf8')) as Health
    if (typeof health.state === 'string' && typeof health.validUntil === 'number') return health
  } catch (cause) {
    throw unhealthy(`${path} cannot be read: no worker keeps it`, cause)
  }
  throw unhealthy(`${path} is not a health file`)
}

/** The error of a probe that found no worker that is well. */
export function unhealthy(message: string, cause?: unknown): KhepriError {
  return new KhepriError('UNHEALTHY', message, {
    fix: 'khepri workers lists the workers, khepri doctor looks for what keeps one from working',
    ...(cause !== undefined && { cause }),
  })
}
