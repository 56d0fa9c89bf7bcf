import { envelopeVersion } from '../../../src/core/envelope.ts'
import type { Reservation, Wish } from '../../../src/core/store/store.ts'
import type { Account } from './account.ts'
import type { Record } from './record.ts'
import type { Witness } from './witness.ts'

/** Accuses a reservation that is out of order, or that leaves a better job for a worse one or for none. */
export function checkOrder(witness: Witness, wish: Wish, reserved: readonly Reservation[], record: Record): void {
  const taken = reserved.flatMap(({ id }) => witness.accounts.get(id) ?? [])
  const ids = new Set(reserved.map(({ id }) => id))
  for (const account of taken)
    if (!mayTake(witness, wish, account)) record.accuse(11, `job ${account.id} was not to be taken`, [account.id])
  const before = compareIn(wish)
  for (const [index, account] of taken.entries()) {
    const previous = taken[index - 1]
    if (previous && before(previous, account) > 0)
      record.accuse(11, `job ${account.id} was given out after job ${previous.id}`, [previous.id, account.id])
  }
  if (reserved[0]?.suspect && (reserved.length > 1 || !wish.suspects))
    record.accuse(7, `job ${reserved[0].id} is a suspect and was not given out alone`, [reserved[0].id])
  const isFull = taken.length >= wish.limit || reserved[0]?.suspect === true
  for (const [index, account] of taken.entries())
    if (account.isSurvivor && index >= wish.started && !reserved[0]?.suspect)
      record.accuse(7, `job ${account.id} is held unstarted once more`, [account.id])
  const last = taken.at(-1)
  const barrier = taken.length < wish.started ? undefined : firstSurvivor(witness, wish, ids)
  for (const account of witness.live) {
    if (barrier && before(barrier, account) <= 0) continue
    if (ids.has(account.id) || account.mayBeSuspect || !mayTake(witness, wish, account)) continue
    if (!isFull) record.accuse(11, `job ${account.id} is ready and was left, with a slot free`, [account.id])
    else if (last && before(account, last) < 0)
      record.accuse(11, `job ${last.id} was given out before job ${account.id}`, [last.id, account.id])
  }
}

/** What may not be held unstarted holds back what stands behind it, where no slot is free. */
function firstSurvivor(witness: Witness, wish: Wish, taken: ReadonlySet<number>): Account | undefined {
  const left = witness.live.filter(({ id, isSurvivor }) => isSurvivor && !taken.has(id))
  return left.filter((account) => mayTake(witness, wish, account)).sort(compareIn(wish))[0]
}

/** Whether a job is free and due, and the wish wants it; suspects aside. */
function mayTake(witness: Witness, wish: Wish, { id, plan, home, holding, availableAt, isMarked }: Account): boolean {
  return (
    home === 'live' &&
    !isMarked &&
    holding === null &&
    availableAt <= witness.now &&
    groupOf(wish, plan.queue) >= 0 &&
    !witness.paused.has(plan.queue) &&
    wish.maxVersion >= envelopeVersion &&
    (wish.only?.includes(plan.job) ?? true) &&
    !wish.except.includes(plan.job) &&
    !wish.exclude.includes(id)
  )
}

const groupOf = ({ queues }: Wish, queue: string): number =>
  queues === 'all' ? 0 : queues.findIndex((group) => group.includes(queue))

function compareIn(wish: Wish): (a: Account, b: Account) => number {
  return (a, b) =>
    groupOf(wish, a.plan.queue) - groupOf(wish, b.plan.queue) ||
    a.plan.priority - b.plan.priority ||
    a.availableAt - b.availableAt ||
    a.id - b.id
}
