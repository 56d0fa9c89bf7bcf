import { defaults } from './defaults.ts'
import type { Filter } from './store/store.ts'

/** How many of a queue's jobs a worker may run at once; a queue that is not in it has no limit but the worker's slots. */
export type QueueLimits = ReadonlyMap<string, number>

/** What the limits of its queues leave a worker to reserve. */
export interface QueueRoom {
  /** Queues that are at their limit. */
  readonly full: readonly string[]
  /** A reservation of so many breaks no limit, whichever queues it comes from. */
  readonly most: number
}

const unlimited: QueueRoom = { full: [], most: Number.POSITIVE_INFINITY }

/** Compares what runs with the limits. running: jobs of a queue that take a slot. */
export function queueRoom(
  limits: QueueLimits,
  queues: Filter['queues'],
  running: (queue: string) => number,
): QueueRoom {
  if (limits.size === 0) return unlimited
  const served = queues === 'all' ? null : new Set(queues.flat())
  const rooms = [...limits]
    .filter(([queue]) => served?.has(queue) ?? true)
    .map(([queue, limit]) => ({ queue, room: limit - running(queue) }))
  const full = rooms.filter(({ room }) => room <= 0).map(({ queue }) => queue)
  if (served !== null && full.length === served.size) return { full, most: 0 }
  const open = rooms.filter(({ room }) => room > 0).map(({ room }) => room)
  return { full, most: Math.min(Number.POSITIVE_INFINITY, ...open) }
}

/** The slots of a worker whose concurrency nobody has set: what its limited queues may run, and one for the others. */
export function slotsFor(limits: QueueLimits, queues: Filter['queues']): number {
  const served = queues === 'all' ? null : [...new Set(queues.flat())]
  const limited = served === null ? [...limits.keys()] : served.filter((queue) => limits.has(queue))
  const hasOthers = served === null || limited.length < served.length
  const sum = limited.reduce((slots, queue) => slots + (limits.get(queue) ?? 0), 0)
  return sum + (hasOthers ? defaults.concurrency : 0)
}
