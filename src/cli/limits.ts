import { formatDuration } from '../core/duration.ts'
import { KhepriError } from '../core/errors.ts'
import type { QueueCounts } from '../core/store/admin.ts'
import { countFlag, durationFlag } from './flags.ts'
import { count } from './words.ts'

/** The limits that `status --check` holds the queues to. */
export const limitFlags = {
  'max-ready': countFlag({ min: 0, summary: 'with --check: at most so many ready jobs in all queues together' }),
  'max-wait': durationFlag({ helpValue: '5m', summary: 'with --check: no ready job has waited longer' }),
  'max-failed': countFlag({ min: 0, summary: 'with --check: at most so many failed jobs in all queues together' }),
}

/** The values of `limitFlags`. */
export type Limits = Readonly<Record<keyof typeof limitFlags, number | undefined>>

/** A limit that does not hold. Waits are milliseconds. */
export interface Excess {
  readonly limit: keyof Limits
  readonly allowed: number
  readonly found: number
  /** The queue that has most of it, and how much. */
  readonly queue: string
  readonly most: number
}

/** How long the longest waiting ready job of a queue has waited, in milliseconds; null: none is ready. */
export function oldestWaitMs({ oldestReadyAt }: QueueCounts, now: number): number | null {
  return oldestReadyAt === null ? null : Math.max(0, now - oldestReadyAt)
}

/** The limits that the queues exceed at a moment, epoch ms. A paused queue counts like any other. */
export function excesses(queues: readonly QueueCounts[], limits: Limits, now: number): readonly Excess[] {
  const waitOf = (queue: QueueCounts): number => oldestWaitMs(queue, now) ?? 0
  return [
    measured('max-ready', queues, { of: ({ ready }) => ready, together: sum }),
    measured('max-wait', queues, { of: waitOf, together: greatest }),
    measured('max-failed', queues, { of: ({ failed }) => failed, together: sum }),
  ].flatMap((found) => {
    const allowed = limits[found.limit]
    return allowed !== undefined && found.found > allowed ? [{ ...found, allowed }] : []
  })
}

interface Measure {
  readonly of: (queue: QueueCounts) => number
  readonly together: (numbers: readonly number[]) => number
}

function measured(limit: keyof Limits, queues: readonly QueueCounts[], { of, together }: Measure) {
  const worst = queues.toSorted((a, b) => of(b) - of(a))[0]
  const [queue, most] = worst === undefined ? ['', 0] : [worst.queue, of(worst)]
  return { limit, found: together(queues.map(of)), queue, most }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
const greatest = (numbers: readonly number[]): number => Math.max(0, ...numbers)

/** The error that names an exceeded limit, with its value and what was found. */
export function excessError(excess: Excess): KhepriError {
  const { found, queue } = excess
  const most = `${excess.most.toLocaleString('en-US')} on ${queue}`
  switch (excess.limit) {
    case 'max-ready':
      return overLimit(excess, `${count(found, 'job')} ${found === 1 ? 'is' : 'are'} ready (${most})`, whoServes)
    case 'max-wait':
      return overLimit(excess, `a job on ${queue} has been ready for ${formatDuration(found)}`, whoServes)
    case 'max-failed':
      return overLimit(excess, `${count(found, 'job')} ${found === 1 ? 'has' : 'have'} failed (${most})`, whatFailed)
  }
}

const whoServes = 'khepri workers shows who serves which queue'
const whatFailed = 'khepri failed --by=error counts them by error'

function overLimit({ limit, allowed }: Excess, found: string, fix: string): KhepriError {
  const bound = limit === 'max-wait' ? formatDuration(allowed) : allowed.toLocaleString('en-US')
  return new KhepriError('OVER_LIMIT', `--${limit} allows ${bound}: ${found}`, { fix })
}
