import type { Cancelled, Retried } from '../../../src/core/store/admin.ts'
import type {
  Beat,
  BeatAnswer,
  Enqueued,
  Exchanged,
  JobId,
  Look,
  NewJob,
  Recovery,
  Reservation,
  Round,
  Settlement,
  Sight,
  WorkerId,
} from '../../../src/core/store/store.ts'
import { type Account, crashLimit, newAccount } from './account.ts'
import type { Census, Judgement } from './census.ts'
import type { Diary } from './diary.ts'
import { checkOrder } from './order.ts'
import type { JobPlan } from './plan.ts'
import type { Record } from './record.ts'
import type { Host, SimulatedProcess } from './simulated-process.ts'

export interface WitnessParts {
  /** The store's own clock. */
  readonly storeClock: Host
  readonly record: Record
  readonly diary: Diary
  readonly census: Census
  readonly accounts: Map<JobId, Account>
}

/** One exchange that was committed. */
export interface ExchangeCall {
  readonly process: SimulatedProcess
  readonly round: Round
  readonly answer: Exchanged
  /** False: the answer is lost on its way. */
  readonly isTold: boolean
}

/**
 * Stands behind the store, sees what is asked and what is answered at the moment of each commit, and keeps its own account
 * of every job and worker; accuses a store or a worker that does what it may not.
 */
export class Witness {
  readonly paused = new Set<string>()
  /** What an envelope's text was made of. */
  readonly plans = new Map<string, JobPlan>()
  readonly #parts: WitnessParts

  constructor(parts: WitnessParts) {
    this.#parts = parts
  }

  get accounts(): Map<JobId, Account> {
    return this.#parts.accounts
  }

  get now(): number {
    return this.#parts.storeClock.now()
  }

  get live(): readonly Account[] {
    return [...this.accounts.values()].filter(({ home }) => home === 'live')
  }

  heldBy(worker: WorkerId): Account[] {
    return [...this.accounts.values()].filter(({ holding }) => holding?.worker === worker)
  }

  enqueued(jobs: readonly NewJob[], answers: readonly Enqueued[]): void {
    for (const [index, { id, duplicate }] of answers.entries()) {
      const job = jobs[index] as NewJob
      const plan = this.plans.get(job.envelope) as JobPlan
      if (duplicate) this.#checkDuplicate(id, plan)
      else this.#open(id, plan, job)
    }
  }

  #open(id: JobId, plan: JobPlan, job: NewJob): void {
    const { record } = this.#parts
    if (this.accounts.has(id)) record.accuse(1, `the id ${id} was given out twice`, [id])
    const holder = this.live.find((each) => plan.unique !== null && each.plan.unique === plan.unique)
    if (holder) record.accuse(1, `job ${id} was accepted beside job ${holder.id} with the same unique key`, [id])
    const availableAt = 'at' in job.due ? job.due.at : this.now + job.due.delayMs
    this.accounts.set(id, newAccount(id, plan, job.envelope, availableAt))
    record.note(`job ${id} (n=${plan.n}) enqueued`)
  }

  #checkDuplicate(id: JobId, { unique, n }: JobPlan): void {
    const holder = this.accounts.get(id)
    if (holder?.home === 'live' && holder.plan.unique === unique) return
    this.#parts.record.accuse(1, `the dispatch of n=${n} was refused for a job ${id} that does not hold its key`, [id])
  }

  exchanged(call: ExchangeCall): void {
    const { process, round, answer } = call
    for (const settlement of round.settle) this.#settled(call, settlement)
    for (const { id, fence } of round.start) this.#marked(round.worker, id, fence)
    for (const account of this.heldBy(round.worker))
      if (round.disown.includes(account.holding?.batch ?? -1)) this.#disowned(account)
    if (round.reserve) checkOrder(this, round.reserve, answer.reserved, this.#parts.record)
    for (const [index, reservation] of answer.reserved.entries()) {
      this.#reserved(process, round, reservation)
      const { holding } = this.accounts.get(reservation.id) as Account
      if (holding) holding.isStarted = index < (round.reserve?.started ?? 0)
    }
  }

  #settled({ process, round: { worker }, answer, isTold }: ExchangeCall, settlement: Settlement): void {
    const { record, diary } = this.#parts
    const { id, fence, kind } = settlement
    const account = this.accounts.get(id)
    const holds = account?.holding?.worker === worker && account.holding.fence === fence
    const isRefused = answer.lost.some((lost) => lost.id === id && lost.fence === fence)
    record.note(`${process.name} settles job ${id} fence ${fence}: ${kind}${isRefused ? ', refused' : ''}`)
    if (holds && isRefused) record.accuse(4, `the holder of job ${id} was refused its ${kind}`, [id])
    if (!holds && !isRefused)
      record.accuse(4, `a ${kind} of job ${id} was accepted from ${process.name}, no holder`, [id])
    if (!account || !holds || isRefused) return
    diary.checkSettlement(process, account, settlement)
    account.holding = null
    const isCancelled = account.isMarked && (kind === 'retry' || kind === 'fail')
    if (isCancelled !== answer.cancelled.includes(id))
      record.accuse(2, `the ${kind} of job ${id} was ${isCancelled ? 'not ' : ''}made a cancellation`, [id])
    if (isCancelled) this.#cancelledInstead(account, isTold)
    else this.#apply(account, settlement)
  }

  /** A worker that never hears that its failure became a cancellation takes it for a failure, and calls the hook. */
  #cancelledInstead(account: Account, isTold: boolean): void {
    account.home = 'cancelled'
    if (!isTold) account.timesFailed++
  }

  #apply(account: Account, settlement: Settlement): void {
    const { kind } = settlement
    if (kind === 'complete') account.home = 'done'
    if (kind === 'cancel') account.home = 'cancelled'
    if (kind === 'retry' || kind === 'fail') account.failures++
    if ((kind === 'retry' || kind === 'release') && settlement.delayMs !== null)
      account.availableAt = this.now + settlement.delayMs
    if (kind === 'retry' || (kind === 'release' && settlement.delayMs !== null))
      Object.assign(account, { mayBeSuspect: false, isSurvivor: false })
    if (kind !== 'fail') return
    account.home = 'failed'
    account.timesFailed++
  }

  #marked(worker: WorkerId, id: JobId, fence: number): void {
    const holding = this.accounts.get(id)?.holding
    if (holding?.worker === worker && holding.fence === fence) holding.isStarted = true
  }

  #disowned(account: Account): void {
    this.#parts.record.note(`job ${account.id} disowned`)
    account.holding = null
  }

  #reserved(process: SimulatedProcess, round: Round, reservation: Reservation): void {
    const { record } = this.#parts
    const { id, fence } = reservation
    const account = this.accounts.get(id)
    record.note(`${process.name} reserves job ${id} fence ${fence}${reservation.suspect ? ', suspect' : ''}`)
    if (account?.home !== 'live') return record.accuse(3, `job ${id} was reserved though it had ended`, [id])
    if (account.holding)
      record.accuse(3, `job ${id} was reserved by ${process.name} while ${account.holding.process.name} held it`, [id])
    if (fence <= account.lastFence)
      record.accuse(4, `the fence of job ${id} went from ${account.lastFence} to ${fence}`, [id])
    if (reservation.envelope !== account.envelope) record.accuse(9, `the envelope of job ${id} has changed`, [id])
    if (reservation.failures !== account.failures)
      record.accuse(7, `job ${id} counts ${reservation.failures} failures, and has had ${account.failures}`, [id])
    if (reservation.crashes !== account.crashes)
      record.accuse(7, `job ${id} counts ${reservation.crashes} crashes, and has had ${account.crashes}`, [id])
    account.lastFence = fence
    account.mayBeSuspect = reservation.suspect
    account.holding = { id, fence, worker: round.worker, batch: round.reserve?.batch ?? 0, process, isStarted: false }
  }

  beaten(process: SimulatedProcess, beat: Beat, answer: BeatAnswer): void {
    this.#parts.census.beaten(process, beat, answer)
    if (beat.kind === 'leaving') for (const account of this.heldBy(beat.worker)) this.#seize(account)
  }

  looked({ worker, held }: Look, { known, cancelled }: Sight): void {
    const { record, census } = this.#parts
    if (known !== census.isAlive(worker)) record.accuse(5, `a worker was told "known: ${known}", and it is not so`)
    const marked = held.filter((id) => this.accounts.get(id)?.isMarked && this.accounts.get(id)?.home === 'live')
    if (marked.join() !== cancelled.join()) record.accuse(2, `a worker was not told that jobs were cancelled`, marked)
  }

  recovered(judgement: Judgement, { dead, freed, cancelled }: Recovery): void {
    const { record, census } = this.#parts
    for (const id of dead) if (census.declaredDead(judgement, id)) this.#blame(this.heldBy(id))
    const seized = census.dead.flatMap((id) => this.heldBy(id))
    for (const account of seized) this.#seize(account)
    if (dead.length > 0 || freed > 0)
      record.note(`${judgement.observer.name} declares ${dead.length} workers dead and frees ${freed} jobs`)
    if (freed !== seized.length) {
      const ids = seized.map(({ id }) => id)
      record.accuse(2, `${freed} jobs of dead workers were freed, and they held ${seized.length}`, ids)
    }
    const ended = this.live.filter(({ isMarked, holding }) => isMarked && holding === null)
    for (const account of ended) account.home = 'cancelled'
    if (cancelled !== ended.length)
      record.accuse(2, `${cancelled} cancelled jobs were ended, and there were ${ended.length}`)
  }

  #blame(held: readonly Account[]): void {
    for (const account of held) account.isSurvivor ||= !account.holding?.isStarted
    for (const account of held.filter(({ holding }) => holding?.isStarted)) {
      if (held.length === 1) account.crashes++
      else account.companyDeaths++
      account.mayBeSuspect ||= held.length > 1
      if (hasRun(account)) this.#checkDeaths(account, held.length > 1)
    }
  }

  /** A job whose limit is reached may still be reserved, to be failed, but not be run. */
  #checkDeaths(account: Account, inCompany: boolean): void {
    const { record } = this.#parts
    const { id, crashes } = account
    if (inCompany) account.companyRuns++
    if (crashes > crashLimit(account))
      record.accuse(7, `job ${id} was run and has killed its worker ${crashes} times`, [id])
    if (account.companyRuns > 2)
      record.accuse(7, `the worker of job ${id} has died ${account.companyRuns} times in company`, [id])
  }

  #seize(account: Account): void {
    if (account.holding) account.seized.add(account.holding.fence)
    account.holding = null
  }

  retried({ retried }: Retried): void {
    for (const id of retried) {
      const account = this.accounts.get(id)
      this.#parts.record.note(`job ${id} retried by hand`)
      if (account?.home !== 'failed') {
        this.#parts.record.accuse(9, `job ${id} was put back and had not failed`, [id])
        continue
      }
      Object.assign(account, {
        home: 'live',
        availableAt: this.now,
        mayBeSuspect: false,
        isSurvivor: false,
        isMarked: false,
      })
      Object.assign(account, { failures: 0, crashes: 0, companyDeaths: 0, companyRuns: 0 })
    }
  }

  cancelled({ cancelled, marked }: Cancelled): void {
    const { record } = this.#parts
    for (const id of [...cancelled, ...marked]) {
      const account = this.accounts.get(id)
      const isHeld = account?.holding !== null
      record.note(`job ${id} ${marked.includes(id) ? 'marked as ' : ''}cancelled`)
      if (account?.home !== 'live' || isHeld !== marked.includes(id))
        record.accuse(2, `job ${id} was cancelled, and it was not there to be`, [id])
      if (account) Object.assign(account, isHeld ? { isMarked: true } : { home: 'cancelled' })
    }
  }

  setPaused(queue: string, isPaused: boolean): void {
    this.#parts.record.note(`queue ${queue} ${isPaused ? 'paused' : 'resumed'}`)
    if (isPaused) this.paused.add(queue)
    else this.paused.delete(queue)
  }

  /** An answer has reached a process: what it was given it may now start, each once. */
  handed(process: SimulatedProcess, round: Round, { reserved }: Exchanged): void {
    if (round.worker !== process.workerId) return
    for (const { id, fence } of reserved)
      process.hands.push({ id, fence, worker: round.worker, hasStarted: false, isTold: false })
  }
}

/** Whether its handler was called under the reservation that holds it. */
function hasRun({ id, holding }: Account): boolean {
  const hand = holding?.process.hands.find((each) => each.id === id && each.fence === holding.fence)
  return hand?.hasStarted ?? false
}
