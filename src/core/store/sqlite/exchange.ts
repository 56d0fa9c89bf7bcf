import { KhepriError } from '../../errors.ts'
import type {
  AttemptRecord,
  Exchanged,
  FollowUp,
  Held,
  JobId,
  Reservation,
  Round,
  Settlement,
  Wish,
  WorkerId,
} from '../store.ts'
import { releaseChildrenOf } from './continuations.ts'
import { insertJobs } from './insertion.ts'
import { type Candidate, Selection } from './selection.ts'
import type { Statements } from './statements.ts'
import type { Transaction } from './transaction.ts'

type Of<Kind extends Settlement['kind']> = Settlement & { readonly kind: Kind }

/** A settlement or a start that the fence let through. */
interface Accepted<Claim> {
  readonly claim: Claim
  readonly isCancelled: boolean
}

type Prepared = Exclude<
  keyof Statements,
  'insert' | 'level' | 'beyond' | 'levelDue' | 'beyondDue' | 'suspectDue' | 'newer'
>

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
    const { plain, others } = inParts(round.settle)
    const completed = this.#completeAtOnce(plain)
    const settled = this.#held(others)
    const endings = settled.accepted.map(endingOf)
    this.#settle(endings)
    const ended = [...completed.done, ...endings]
    const ids = this.#enqueue(round.enqueue, ended)
    releaseChildrenOf(this.#transaction, ended)
    this.#disown(round.disown)
    const started = this.#held(round.start)
    this.#start(started.accepted.map(({ claim }) => claim))
    const reserved = round.reserve ? this.#reserve(round.reserve) : []
    const lost = [...completed.lost, ...settled.lost, ...started.lost]
    return { lost, ids, cancelled: cancelledOf(settled.accepted), reserved }
  }

  /** Nearly all endings are such; comparing and deleting in one statement saves reading their rows before. */
  #completeAtOnce(plain: readonly Of<'complete'>[]): {
    readonly done: readonly Settlement[]
    readonly lost: readonly Held[]
  } {
    if (plain.length === 0) return { done: [], lost: [] }
    const refs = `{${plain.map(({ id, fence }) => `"${id}":${fence}`).join()}}`
    const gone = this.#prepared('complete').pluck().all({ refs, worker: this.#worker }) as JobId[]
    if (gone.length === plain.length) {
      this.#forget(plain)
      return { done: plain, lost: [] }
    }
    const deleted = new Set(gone)
    const done = plain.filter(({ id }) => deleted.has(id))
    this.#forget(done)
    return { done, lost: plain.filter(({ id }) => !deleted.has(id)).map(({ id, fence }) => ({ id, fence })) }
  }

  /** A first reservation has fence 1: a job that was never reserved before has no history to remove. */
  #forget(done: readonly Held[]): void {
    const withHistory = done.filter(({ fence }) => fence > 1)
    if (withHistory.length > 0) this.#prepared('forget').run({ ids: listOfIds(withHistory) })
  }

  /** Sorts out what this worker still holds under the very fence it names; a second claim for one job is lost. */
  #held<Claim extends Held>(claims: readonly Claim[]): { accepted: readonly Accepted<Claim>[]; lost: readonly Held[] } {
    if (claims.length === 0) return { accepted: [], lost: [] }
    const parameters = { ids: listOfIds(claims), worker: this.#worker }
    const rows = this.#prepared('held').all(parameters) as (Held & { readonly isCancelled: number })[]
    const held = new Map(rows.map((row) => [row.id, row]))
    const accepted: Accepted<Claim>[] = []
    const lost: Held[] = []
    for (const claim of claims) {
      const row = held.get(claim.id)
      const isHeld = row?.fence === claim.fence && held.delete(claim.id)
      if (isHeld) accepted.push({ claim, isCancelled: row.isCancelled === 1 })
      else lost.push({ id: claim.id, fence: claim.fence })
    }
    return { accepted, lost }
  }

  #settle(settlements: readonly Settlement[]): void {
    this.#complete(settlements.filter((settlement) => settlement.kind === 'complete'))
    this.#retry(settlements.filter((settlement) => settlement.kind === 'retry'))
    this.#fail(settlements.filter((settlement) => settlement.kind === 'fail'))
    this.#cancel(settlements.filter((settlement) => settlement.kind === 'cancel'))
    this.#release(settlements.filter((settlement) => settlement.kind === 'release'))
  }

  #complete(done: readonly Of<'complete'>[]): void {
    const kept = done.filter(({ keep }) => keep)
    this.#archive(kept, 'done', 0)
    this.#forget(done.filter(({ keep }) => !keep))
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

  #cancel(cancelled: readonly Of<'cancel'>[]): void {
    const attempted = cancelled.filter(hasAttempt)
    for (const settlement of attempted) this.#record(settlement)
    this.#archive(attempted, 'cancelled', 1)
    this.#archive(
      cancelled.filter((settlement) => !hasAttempt(settlement)),
      'cancelled',
      0,
    )
    if (cancelled.length > 0) this.#prepared('remove').run({ ids: listOfIds(cancelled) })
  }

  /** cost: what is added to the jobs' failures. */
  #archive(jobs: readonly Held[], state: 'done' | 'cancelled', cost: 0 | 1): void {
    if (jobs.length === 0) return
    this.#prepared('archive').run({ ids: listOfIds(jobs), state, cost, now: this.#transaction.now })
  }

  #record({ id, fence, attempt }: Held & { readonly attempt: AttemptRecord }): void {
    this.#prepared('record').run({ ...attempt, id, fence })
    if (fence > fewAttempts) this.#prepared('trim').run({ id })
  }

  #enqueue(jobs: readonly FollowUp[], endings: readonly Settlement[]): readonly (JobId | null)[] {
    if (jobs.length === 0) return []
    const completed = new Set(endings.filter(({ kind }) => kind === 'complete').map(({ id }) => id))
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
    return candidates.map((job) => this.#reserved(job))
  }

  /** Field by field: this is done for every job, and copying the rest of an object takes ten times as long. */
  #reserved(candidate: Candidate): Reservation {
    const { id, fence, job, queue, priority, availableAt, enqueuedAt, failures, crashes, suspect } = candidate
    const envelope = candidate.envelope ?? (this.#prepared('envelope').pluck().get({ id }) as string)
    return {
      id,
      fence: fence + 1,
      job,
      queue,
      priority,
      availableAt,
      enqueuedAt,
      failures,
      crashes,
      suspect: suspect === 1,
      envelope,
    }
  }

  #take(jobs: readonly Candidate[], batch: number, startedAt: number | null): void {
    if (jobs.length === 0) return
    const parameters = { ids: listOfIds(jobs), worker: this.#worker, batch, startedAt }
    const { changes } = this.#prepared('take').run(parameters)
    if (changes === jobs.length) return
    throw new KhepriError('BUG', `a reservation of ${jobs.length} jobs changed ${changes} rows`)
  }

  #prepared(name: Prepared) {
    const { connection, statements } = this.#transaction
    return connection.statement(statements[name])
  }
}

/** Tells the completions that only delete from all other endings; where a job is named twice the order decides, one by one. */
function inParts(settle: readonly Settlement[]): {
  readonly plain: readonly Of<'complete'>[]
  readonly others: readonly Settlement[]
} {
  if (new Set(settle.map(({ id }) => id)).size < settle.length) return { plain: [], others: settle }
  const plain: Of<'complete'>[] = []
  const others: Settlement[] = []
  for (const settlement of settle) {
    if (settlement.kind === 'complete' && !settlement.keep) plain.push(settlement)
    else others.push(settlement)
  }
  return { plain, others }
}

/** Nothing that was cancelled is tried again. */
function endingOf({ claim, isCancelled }: Accepted<Settlement>): Settlement {
  if (!isCancelled || !isTriedAgain(claim)) return claim
  const { id, fence, attempt } = claim
  return { id, fence, kind: 'cancel', attempt }
}

function cancelledOf(accepted: readonly Accepted<Settlement>[]): readonly JobId[] {
  return accepted.filter(({ claim, isCancelled }) => isCancelled && isTriedAgain(claim)).map(({ claim }) => claim.id)
}

/** A failed job counts, since an operator can retry it. */
function isTriedAgain(settlement: Settlement): settlement is Of<'retry'> | Of<'fail'> {
  return settlement.kind === 'retry' || settlement.kind === 'fail'
}

function hasAttempt(settlement: Of<'cancel'>): settlement is Of<'cancel'> & { readonly attempt: AttemptRecord } {
  return settlement.attempt !== null
}

function listOfIds(jobs: readonly Held[]): string {
  return `[${jobs.map(({ id }) => id).join()}]`
}
