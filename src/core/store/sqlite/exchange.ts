import { KhepriError } from '../../errors.ts'
import type { Exchanged, FollowUp, Held, JobId, Reservation, Round, Settlement, Wish, WorkerId } from '../store.ts'
import { insertJobs } from './insertion.ts'
import { type Candidate, Selection } from './selection.ts'
import type { Transaction } from './transaction.ts'

type Of<Kind extends Settlement['kind']> = Settlement & { readonly kind: Kind }

/** Attempts leave rows, and only a job reserved more often than this can have rows to trim. */
const fewAttempts = 100

/** One round of one worker, inside one transaction: settle, enqueue, disown, start, reserve, in this order. */
export class Exchange {
  readonly #transaction: Transaction
  readonly #worker: WorkerId

  constructor(transaction: Transaction, worker: WorkerId) {
    this.#transaction = transaction
    this.#worker = worker
  }

  run(round: Round): Exchanged {
    const settled = this.#held(round.settle)
    this.#settle(settled.accepted)
    const ids = this.#enqueue(round.enqueue, settled.accepted)
    this.#disown(round.disown)
    const started = this.#held(round.start)
    this.#start(started.accepted)
    const reserved = round.reserve ? this.#reserve(round.reserve) : []
    return { lost: [...settled.lost, ...started.lost], ids, reserved }
  }

  /** Sorts out what this worker still holds under the very fence it names; a second claim for one job is lost. */
  #held<Claim extends Held>(claims: readonly Claim[]): { accepted: readonly Claim[]; lost: readonly Held[] } {
    if (claims.length === 0) return { accepted: [], lost: [] }
    const parameters = { ids: listOfIds(claims), worker: this.#worker }
    const rows = this.#prepared('held').all(parameters) as Held[]
    const fences = new Map(rows.map(({ id, fence }) => [id, fence]))
    const accepted: Claim[] = []
    const lost: Held[] = []
    for (const claim of claims) {
      const isHeld = fences.get(claim.id) === claim.fence && fences.delete(claim.id)
      if (isHeld) accepted.push(claim)
      else lost.push({ id: claim.id, fence: claim.fence })
    }
    return { accepted, lost }
  }

  #settle(settlements: readonly Settlement[]): void {
    this.#complete(settlements.filter((settlement) => settlement.kind === 'complete'))
    this.#retry(settlements.filter((settlement) => settlement.kind === 'retry'))
    this.#fail(settlements.filter((settlement) => settlement.kind === 'fail'))
    this.#release(settlements.filter((settlement) => settlement.kind === 'release'))
  }

  #complete(done: readonly Of<'complete'>[]): void {
    const { now } = this.#transaction
    const kept = done.filter(({ keep }) => keep)
    // A first reservation has fence 1: a job that was never reserved before has no history to remove.
    const withHistory = done.filter(({ keep, fence }) => !keep && fence > 1)
    if (kept.length > 0) this.#prepared('keep').run({ ids: listOfIds(kept), now })
    if (withHistory.length > 0) this.#prepared('forget').run({ ids: listOfIds(withHistory) })
    if (done.length > 0) this.#prepared('remove').run({ ids: listOfIds(done) })
  }

  #retry(retried: readonly Of<'retry'>[]): void {
    for (const settlement of retried) this.#record(settlement)
    this.#giveBack(retried, 1)
  }

  #release(released: readonly Of<'release'>[]): void {
    this.#giveBack(released, 0)
  }

  /** cost: what is added to the jobs' failures. */
  #giveBack(jobs: readonly (Held & { readonly delayMs: number | null })[], cost: 0 | 1): void {
    if (jobs.length === 0) return
    const { now } = this.#transaction
    const moments = jobs.map(({ id, delayMs }) => [id, delayMs === null ? null : Math.round(now + delayMs)])
    this.#prepared('giveBack').run({ moments: JSON.stringify(Object.fromEntries(moments)), cost })
  }

  #fail(failed: readonly Of<'fail'>[]): void {
    if (failed.length === 0) return
    for (const settlement of failed) this.#record(settlement)
    const failures = failed.map(({ id, reason, attempt: { errorType, message } }) => ({
      id,
      reason,
      errorType,
      message,
    }))
    this.#prepared('fail').run({ failures: JSON.stringify(failures), now: this.#transaction.now })
    this.#prepared('remove').run({ ids: listOfIds(failed) })
  }

  #record({ id, fence, attempt }: Of<'retry'> | Of<'fail'>): void {
    this.#prepared('record').run({ ...attempt, id, fence })
    if (fence > fewAttempts) this.#prepared('trim').run({ id })
  }

  #enqueue(jobs: readonly FollowUp[], accepted: readonly Settlement[]): readonly (JobId | null)[] {
    if (jobs.length === 0) return []
    const completed = new Set(accepted.filter(({ kind }) => kind === 'complete').map(({ id }) => id))
    const wanted = jobs.filter(({ parent }) => completed.has(parent))
    const enqueued = insertJobs(this.#transaction, wanted).values()
    return jobs.map(({ parent }) => {
      const result = completed.has(parent) ? enqueued.next().value : undefined
      return result === undefined || result.duplicate ? null : result.id
    })
  }

  #disown(batches: readonly number[]): void {
    if (batches.length === 0) return
    this.#prepared('disown').run({ worker: this.#worker, batches: JSON.stringify(batches) })
  }

  #start(jobs: readonly Held[]): void {
    if (jobs.length > 0) this.#prepared('start').run({ ids: listOfIds(jobs), now: this.#transaction.now })
  }

  #reserve(wish: Wish): readonly Reservation[] {
    const { connection, statements, now } = this.#transaction
    const candidates = new Selection(connection, statements, now).candidates(wish)
    this.#take(candidates.slice(0, wish.started), wish.batch, now)
    this.#take(candidates.slice(wish.started), wish.batch, null)
    return candidates.map((job) => ({ ...job, fence: job.fence + 1, suspect: job.suspect === 1 }))
  }

  #take(jobs: readonly Candidate[], batch: number, startedAt: number | null): void {
    if (jobs.length === 0) return
    const parameters = { ids: listOfIds(jobs), worker: this.#worker, batch, startedAt }
    const { changes } = this.#prepared('take').run(parameters)
    if (changes === jobs.length) return
    throw new KhepriError('BUG', `a reservation of ${jobs.length} jobs changed ${changes} rows`)
  }

  #prepared(
    name: 'held' | 'keep' | 'remove' | 'forget' | 'giveBack' | 'fail' | 'record' | 'trim' | 'disown' | 'start' | 'take',
  ) {
    const { connection, statements } = this.#transaction
    return connection.statement(statements[name])
  }
}

function listOfIds(jobs: readonly Held[]): string {
  return JSON.stringify(jobs.map(({ id }) => id))
}
