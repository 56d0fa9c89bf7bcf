import { AttemptTimeout } from '../../../src/core/attempt.ts'
import type { JobContext } from '../../../src/core/job.ts'
import type { JobId, Settlement } from '../../../src/core/store/store.ts'
import { type Account, crashLimit, type Run } from './account.ts'
import type { Act } from './plan.ts'
import type { Record } from './record.ts'
import type { Hand, SimulatedProcess } from './simulated-process.ts'
import type { Timeline } from './timeline.ts'

export interface DiaryParts {
  readonly timeline: Timeline
  readonly record: Record
  readonly accounts: ReadonlyMap<JobId, Account>
}

const returnsAtOnce: Act = { kind: 'return', ms: 0, obeys: true }

/** What handlers and hooks saw, run by run; accuses runs that should not be, and settlements that tell another story. */
export class Diary {
  readonly #parts: DiaryParts
  readonly #runs = new Map<Hand, Run>()
  readonly #runCounts = new Map<JobId, number>()

  constructor(parts: DiaryParts) {
    this.#parts = parts
  }

  /** How many handlers were called. */
  get count(): number {
    return this.#runs.size
  }

  /** A handler was called; answers what it shall do. null: its process is gone, so nothing. */
  begin(process: SimulatedProcess, context: JobContext): { run: Run; act: Act } | null {
    if (process.isGone) return null
    const { timeline, record, accounts } = this.#parts
    const { id } = context
    const account = accounts.get(id) as Account
    const hand = process.hands.findLast((each) => each.id === id)
    record.note(`${process.name} starts job ${id}, attempt ${context.attempt} of ${context.tries}`)
    if (!hand) {
      record.accuse(3, `${process.name} started job ${id}, which it was not given`, [id])
      return null
    }
    this.#checkStart(process, account, hand, context)
    hand.hasStarted = true
    const { signal } = context
    const run: Run = { account, process, hand, signal, startedAt: timeline.now, end: null, isCharged: false }
    this.#runs.set(hand, run)
    const count = this.#runCounts.get(id) ?? 0
    this.#runCounts.set(id, count + 1)
    return { run, act: account.plan.acts[count] ?? returnsAtOnce }
  }

  #checkStart(process: SimulatedProcess, account: Account, hand: Hand, { attempt, tries }: JobContext): void {
    const { record } = this.#parts
    const { id, plan, holding } = account
    if (hand.hasStarted) record.accuse(5, `job ${id} was started twice under one reservation`, [id])
    const holds = holding?.worker === hand.worker && holding.fence === hand.fence
    if (!holds && !account.seized.has(hand.fence))
      record.accuse(5, `${process.name} started job ${id} under a reservation that had ended`, [id])
    if (holds && attempt !== account.failures + 1)
      record.accuse(7, `job ${id} was told attempt ${attempt} after ${account.failures} failures`, [id])
    if (attempt > plan.tries) record.accuse(7, `job ${id} ran attempt ${attempt} of ${plan.tries} tries`, [id])
    if (tries !== plan.tries)
      record.accuse(8, `job ${id} was told ${tries} tries, its envelope says ${plan.tries}`, [id])
    if (plan.isPoison) record.accuse(7, `job ${id} is poison and was run`, [id])
    if (process.isToldToDrain) record.accuse(10, `${process.name} started job ${id} during its drain`, [id])
    if (process.isQuiet) record.accuse(10, `${process.name} started job ${id} while it was told to be quiet`, [id])
    if (this.#runsOf(id).some((run) => run.process === process && run.end === null))
      record.accuse(5, `${process.name} started job ${id} beside its own earlier run of it`, [id])
  }

  #runsOf(id: JobId): Run[] {
    return [...this.#runs.values()].filter((run) => run.account.id === id)
  }

  ended(run: Run, end: NonNullable<Run['end']>): void {
    if (run.process.isGone) return
    run.end = end
    this.#parts.record.note(`${run.process.name} job ${run.account.id} ${end}`)
  }

  /** Compares what a worker writes about a run with what its handler did. */
  checkSettlement(process: SimulatedProcess, account: Account, settlement: Settlement): void {
    const hand = process.hands.find(({ id, fence }) => id === settlement.id && fence === settlement.fence)
    const run = hand && this.#runs.get(hand)
    const complaint = run ? ofRun(run, settlement) : ofNoRun(process, account, settlement)
    if (complaint !== null)
      this.#parts.record.accuse(
        5,
        `${process.name} settled job ${account.id} as ${settlement.kind}, but ${complaint}`,
        [account.id],
      )
    if (settlement.kind !== 'retry' && settlement.kind !== 'fail') return
    if (settlement.attempt.attempt !== account.failures + 1)
      this.#parts.record.accuse(9, `the record of job ${account.id} says attempt ${settlement.attempt.attempt}`, [
        account.id,
      ])
  }

  hook(process: SimulatedProcess, { id }: JobContext): void {
    if (process.isGone) return
    const { record, accounts } = this.#parts
    const account = accounts.get(id) as Account
    account.hooks++
    record.note(`${process.name} calls the hook of job ${id}`)
    if (account.hooks > account.timesFailed)
      record.accuse(9, `the hook of job ${id} was called ${account.hooks} times for ${account.timesFailed} failures`, [
        id,
      ])
  }
}

/** Why a settlement of a job that was run is wrong; null: it is right. */
function ofRun(run: Run, settlement: Settlement): string | null {
  const { account, end, isCharged, signal, process } = run
  const isTimedOut = signal.reason instanceof AttemptTimeout
  const hasThrown = end === 'threw' || isCharged || isTimedOut
  switch (settlement.kind) {
    case 'complete':
      return end === 'returned' && !hasThrown ? null : `its handler has ${end ?? 'not come back'}`
    case 'cancel':
      return account.isMarked ? null : 'nobody has cancelled it'
    case 'release':
      return end === 'released' || process.mayGiveBack ? null : 'nobody asked for it'
    case 'retry':
      if (!hasThrown) return `its handler has ${end ?? 'not come back'}`
      return account.failures + 1 < account.plan.tries ? null : 'its tries are spent'
    case 'fail':
      if (!hasThrown) return `its handler has ${end ?? 'not come back'}`
      return settlement.reason === 'refused' || account.failures + 1 >= account.plan.tries ? null : 'it has tries left'
  }
}

/** The same of a job whose handler was never called. */
function ofNoRun(process: SimulatedProcess, account: Account, settlement: Settlement): string | null {
  const { plan } = account
  // What was held in advance goes back when it has waited for a while, its place in the order kept.
  if (settlement.kind === 'release')
    return settlement.delayMs === null || process.mayGiveBack || process.isBroken ? null : 'nobody asked for it'
  if (settlement.kind === 'cancel') return account.isMarked ? null : 'nobody has cancelled it'
  if (settlement.kind !== 'fail') return 'it was not run'
  switch (settlement.reason) {
    case 'poison':
      return plan.isPoison ? null : 'it is no poison'
    case 'unknown':
      return plan.job === 'stranger' || plan.job === 'rare' ? null : 'its name is known'
    case 'crashes':
      return account.crashes >= crashLimit(account) || (plan.maxCrashes === 0 && account.companyDeaths > 0)
        ? null
        : `it has killed its worker ${account.crashes} times of ${plan.maxCrashes}`
    default:
      return 'it was not run'
  }
}
