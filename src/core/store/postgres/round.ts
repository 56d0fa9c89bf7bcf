import type {
  AttemptRecord,
  Exchanged,
  Filter,
  FollowUp,
  Held,
  JobId,
  Reservation,
  Round,
  Settlement,
  Wish,
} from '../store.ts'
import type { Row } from './connection.ts'
import type { Values } from './connections.ts'
import { heldOf, keyOf, withoutRepeats } from './held.ts'
import type { Mark } from './marks.ts'
import type { Scope } from './reserving.ts'
import { bigints, texts } from './statement.ts'

/** Translates a round into the parameters of one statement, and the rows of its answer back. */

const noFilter: Filter = {
  queues: [],
  exceptQueues: [],
  only: null,
  except: [],
  exclude: [],
  maxVersion: 0,
  suspects: false,
}
const noWish: Wish = { ...noFilter, sleepMs: null, limit: 0, maxBytes: 0, batch: 0, started: 0 }

/** How the filter names its queues; the texts differ only in that. */
export function scopeOf({ queues }: Filter): Scope {
  if (queues === 'all') return 'all'
  return queues.every((group) => group.length <= 1) ? 'strict' : 'merged'
}

/** Tells whether a round needs the long text. */
export function isFull({ settle, enqueue }: Round): boolean {
  return enqueue.length > 0 || !settle.every(isPlain)
}

function isPlain(settlement: Settlement): boolean {
  return settlement.kind === 'complete' && !settlement.keep
}

/**
 * Tells whether a round could reserve what it has just made free.
 *
 * All parts of one statement see the same moment, so such a round takes a transaction of two.
 */
export function needsTwoSteps({ settle, enqueue, disown, reserve }: Round): boolean {
  if (disown.length > 0) return true
  return reserve !== null && (enqueue.length > 0 || settle.some(isFreedAtOnce))
}

function isFreedAtOnce(settlement: Settlement): boolean {
  if (settlement.kind !== 'retry' && settlement.kind !== 'release') return false
  return settlement.delayMs === null || settlement.delayMs <= 0
}

/** The parameters of a filter, of nextDue and of a reservation alike. */
export function filterValues(filter: Filter): Values {
  const named = inGroups(filter.queues === 'all' ? [] : filter.queues)
  return {
    queues: texts([...named.keys()]),
    groups: bigints([...named.values()]),
    exceptQueues: texts(filter.exceptQueues),
    only: filter.only === null ? null : texts(filter.only),
    except: texts(filter.except),
    exclude: bigints(filter.exclude),
    maxVersion: filter.maxVersion,
    suspects: filter.suspects,
  }
}

/** The group in which a queue stands first. */
export function inGroups(groups: readonly (readonly string[])[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (const [place, group] of groups.entries())
    for (const queue of group) if (!places.has(queue)) places.set(queue, place)
  return places
}

/** The parameters of either exchange statement. marks: where a reservation starts; null: it looks everywhere. */
export function roundValues(round: Round, marks: readonly Mark[] | null): Values {
  const wish = round.reserve ?? noWish
  // The first settlement of a job counts; a second one finds it gone.
  const settle = withoutRepeats(round.settle)
  const plain = inLockOrder(settle.filter(isPlain))
  const settled = keysOf(round.settle)
  const start = inLockOrder(round.start.filter((held) => !settled.has(keyOf(held))))
  return {
    worker: round.worker,
    doneIds: bigints(plain.map(({ id }) => id)),
    doneFences: bigints(plain.map(({ fence }) => fence)),
    startIds: bigints(start.map(({ id }) => id)),
    startFences: bigints(start.map(({ fence }) => fence)),
    endings: JSON.stringify(settle.filter((one) => !isPlain(one)).map(endingRow)),
    followUps: JSON.stringify(round.enqueue.map(followUpRow)),
    ...filterValues(wish),
    ...markValues(marks ?? []),
    limit: wish.limit,
    reach: wish.limit * 2 + 50,
    maxBytes: wish.maxBytes,
    batch: wish.batch,
    sleepMs: wish.sleepMs,
    started: wish.started,
  }
}

function markValues(marks: readonly Mark[]): Values {
  return {
    markGroups: bigints(marks.map(({ group }) => group)),
    markQueues: texts(marks.map(({ queue }) => queue)),
    markPriorities: bigints(marks.map(({ priority }) => priority)),
    markMoments: bigints(marks.map(({ availableAt }) => availableAt)),
    markIds: bigints(marks.map(({ id }) => id)),
  }
}

/** Everybody locks jobs in the order of their ids, so that two seldom wait for each other. */
function inLockOrder<Item extends Held>(held: readonly Item[]): readonly Item[] {
  return held.toSorted((a, b) => a.id - b.id)
}

function endingRow(settlement: Settlement) {
  const { id, fence, kind } = settlement
  if (kind === 'complete') return { id, fence, kind: 'keep' }
  if (kind === 'release') return { id, fence, kind, delay: settlement.delayMs }
  if (kind === 'cancel') return { id, fence, kind, ...(settlement.attempt && attemptRow(settlement.attempt)) }
  const record = attemptRow(settlement.attempt)
  if (kind === 'retry') return { id, fence, kind, delay: settlement.delayMs, ...record }
  return { id, fence, kind, reason: settlement.reason, ...record }
}

function attemptRow(record: AttemptRecord) {
  const { attempt, worker, message, stack, output } = record
  const { startedAt: started_at, endedAt: ended_at, errorType: error_type } = record
  return { attempt, worker, started_at, ended_at, error_type, message, stack, output }
}

function followUpRow({ parent, queue, priority, due, job, uniqueKey, version, envelope }: FollowUp) {
  const when = 'at' in due ? { moment: due.at } : { delay: due.delayMs }
  return { parent, queue, priority, ...when, job, unique_key: uniqueKey, version, envelope }
}

/** Reads the rows of an exchange, of one statement or of several. */
export function answerOf(round: Round, rows: readonly Row[]): Exchanged {
  const ofKind = (kind: string): readonly Row[] => rows.filter((row) => row.kind === kind)
  const followed = new Map(ofKind('followed').map((row) => [row.place as number, row.id as number]))
  return {
    lost: lostOf(round, keysOf(ofKind('settle').map(heldOf)), keysOf(ofKind('start').map(heldOf))),
    ids: round.enqueue.map((_, index) => followed.get(index + 1) ?? null),
    cancelled: cancelledOf(round, keysOf(ofKind('cancelled').map(heldOf))),
    reserved: inRunOrder(ofKind('reserved').map(reservationOf), round.reserve ?? noWish),
  }
}

function lostOf({ settle, start }: Round, refused: ReadonlySet<string>, notStarted: ReadonlySet<string>): Held[] {
  const settled = new Set<string>()
  const lostSettlements = settle.filter(
    (one) => refused.has(keyOf(one)) || settled.has(keyOf(one)) || !settled.add(keyOf(one)),
  )
  const lostStarts = start.filter((one) => notStarted.has(keyOf(one)) || settled.has(keyOf(one)))
  return [...lostSettlements, ...lostStarts].map(({ id, fence }) => ({ id, fence }))
}

function cancelledOf({ settle }: Round, cancelled: ReadonlySet<string>): readonly JobId[] {
  return withoutRepeats(settle)
    .filter((one) => cancelled.has(keyOf(one)))
    .map(({ id }) => id)
}

function keysOf(held: readonly Held[]): ReadonlySet<string> {
  return new Set(held.map(keyOf))
}

function reservationOf(row: Row): Reservation {
  return {
    id: row.id as number,
    fence: row.fence as number,
    job: row.job as string,
    queue: row.queue as string,
    priority: row.priority as number,
    availableAt: row.available_at as number,
    enqueuedAt: row.enqueued_at as number,
    failures: row.failures as number,
    crashes: row.crashes as number,
    suspect: row.suspect === 1,
    envelope: row.envelope as string,
  }
}

/** RETURNING promises no order. */
function inRunOrder(reserved: Reservation[], { queues }: Filter): readonly Reservation[] {
  const places = queues === 'all' ? null : inGroups(queues)
  const placeOf = ({ queue }: Reservation): number => places?.get(queue) ?? 0
  return reserved.sort(
    (a, b) => placeOf(a) - placeOf(b) || a.priority - b.priority || a.availableAt - b.availableAt || a.id - b.id,
  )
}
