/**
 * What a store is: the hot side of a queue, at the level of queue operations.
 *
 * A store moves rows and decides nothing; attempts, backoff, timeouts and endings are `core/policy.ts`.
 * Every method takes and returns batches. The cold side (lists, failed jobs, pauses) is `admin.ts`.
 * Errors are KhepriErrors with a STORE_, SCHEMA_ or OUTCOME_ code; with any code but OUTCOME_UNKNOWN nothing was written.
 */

import type { RunInside } from '../callers-transaction.ts'

/** Given out once, growing, never reused; a job keeps its id through failed and retry. */
export type JobId = number

/** A random number of 48 bits, new at each process start. */
export type WorkerId = number

/** When a job may first run: so many milliseconds after the store's own now, or at an epoch millisecond. */
export type Due = { readonly delayMs: number } | { readonly at: number }

/** What becomes of a new job whose unique key a live one holds. */
export type OnConflict = 'keep' | 'error' | 'replace'

/**
 * What becomes of a job whose parent is not done. wait: it stays while the parent is failed, since a retry may yet lead on,
 * and is cancelled with a parent that is cancelled or flushed. cancel: it is cancelled as soon as the parent fails. run: it
 * runs however the parent ended.
 */
export type OnParentFailure = 'wait' | 'cancel' | 'run'

/** A job as it is dispatched: checked, and with every term decided. */
export interface NewJob {
  readonly job: string
  readonly queue: string
  readonly priority: number
  readonly due: Due
  /** At most one live job may carry it. */
  readonly uniqueKey: string | null
  /**
   * keep, where it is not said: the live job stays as it is. error: KEY_HELD, and nothing of the call is written. replace:
   * the live job becomes this one under its own id, unless it is held, cancelled or a suspect, or a run of it has counted.
   */
  readonly onConflict?: OnConflict
  /** It is due only once these jobs are done; one of which nothing is kept is done. NOT_FOUND for an id never given out. */
  readonly after?: readonly JobId[]
  /** wait, where it is not said. */
  readonly onParentFailure?: OnParentFailure
  /** The version of the envelope, so that a worker reserves only what it can read. */
  readonly version: number
  /** The encoded envelope; stored as it is. */
  readonly envelope: string
}

/** `duplicate`: a live job holds the unique key; `id` is that job's and no other was written. */
export interface Enqueued {
  readonly id: JobId
  readonly duplicate: boolean
  /** Of a duplicate that asked to replace: whether the live job was one that could be. */
  readonly replaced?: boolean
}

/** Proof of holding. A store compares it, and the worker, with the row before it changes anything. */
export interface Held {
  readonly id: JobId
  readonly fence: number
}

export interface Reservation extends Held {
  readonly job: string
  readonly queue: string
  readonly priority: number
  readonly availableAt: number
  readonly enqueuedAt: number
  /** Attempts that were counted as failed since the dispatch or the last manual retry. */
  readonly failures: number
  readonly crashes: number
  readonly suspect: boolean
  readonly envelope: string
}

/** One attempt that did not succeed, as it is kept for people. Texts are cleaned and cut already. */
export interface AttemptRecord {
  /** 1 on the first run. */
  readonly attempt: number
  /** The worker's name, for people. */
  readonly worker: string
  readonly startedAt: number
  readonly endedAt: number
  readonly errorType: string
  readonly message: string
  readonly stack: string | null
  /** What the job wrote last, where somebody caught it. */
  readonly output: string | null
}

/** Why a job failed for good. */
export type FailReason = 'tries' | 'refused' | 'poison' | 'unknown' | 'crashes'

/**
 * The endings of an attempt. `retry` and `fail` add one to `failures`; `release` costs nothing.
 *
 * A job that somebody has cancelled is never tried again: its `retry` or `fail` is a `cancel` with the same attempt.
 * A job that was given back by its own handler, or that is retried, has survived its run and is no suspect any more.
 */
export type Settlement = Held &
  (
    | { readonly kind: 'complete'; readonly keep: boolean }
    | { readonly kind: 'retry'; readonly delayMs: number; readonly attempt: AttemptRecord }
    | { readonly kind: 'fail'; readonly reason: FailReason; readonly attempt: AttemptRecord }
    /** The job ends as cancelled; its history is kept, with this attempt where there was one (it adds to `failures`). */
    | { readonly kind: 'cancel'; readonly attempt: AttemptRecord | null }
    /** delayMs null: it was interrupted; it keeps its availableAt, and so its place in the order, and stays a suspect. */
    | { readonly kind: 'release'; readonly delayMs: number | null }
  )

/**
 * A job that commits together with the completion of `parent`, or not at all. The holder of a unique key is kept. It waits
 * for nobody else: `after` has no meaning here.
 */
export interface FollowUp extends Omit<NewJob, 'onConflict' | 'after' | 'onParentFailure'> {
  readonly parent: JobId
}

/**
 * Which jobs a worker could take. One condition, used by exchange, nextDue and look alike: queue served, not
 * excepted and not paused, due, name wanted, envelope readable, not cancelled, not excluded, suspects only where allowed.
 */
export interface Filter {
  /**
   * Groups in strict order; the queues within one group are merged by priority, availableAt and id.
   * 'all': every queue the store has, as one group.
   */
  readonly queues: readonly (readonly string[])[] | 'all'
  /** Of these queues none: the worker runs as many of their jobs as it may. */
  readonly exceptQueues: readonly string[]
  /** Only these job names; null: any. */
  readonly only: readonly string[] | null
  readonly except: readonly string[]
  readonly exclude: readonly JobId[]
  readonly maxVersion: number
  /** True where the worker holds nothing: then a suspect may come, alone. Otherwise suspects are passed over. */
  readonly suspects: boolean
}

/** What a worker would like to have; it never gets more. */
export interface Wish extends Filter {
  readonly limit: number
  /** Bytes of envelopes in one answer; the first job always comes. */
  readonly maxBytes: number
  /** Written on each row, so that a reservation whose answer was lost can be found again. */
  readonly batch: number
  /** Where nothing comes, the worker sleeps for so long: who makes a job ready meanwhile wakes it. Null: nobody need. */
  readonly sleepMs: number | null
  /**
   * The first so many go straight into a free slot and are marked as started. A job that a worker held unstarted when it
   * died comes as one of these or not at all, and nothing that stands behind it does: it may be what killed that worker
   * before its start was written.
   */
  readonly started: number
}

export interface Round {
  readonly worker: WorkerId
  readonly settle: readonly Settlement[]
  readonly enqueue: readonly FollowUp[]
  /** Prefetched jobs whose handlers start now. */
  readonly start: readonly Held[]
  /** Batches whose answer was lost: what this worker holds under them is freed, at no cost. */
  readonly disown: readonly number[]
  readonly reserve: Wish | null
}

export interface Exchanged {
  /** Settlements and starts that were refused: somebody else holds these jobs by now, or nobody does. */
  readonly lost: readonly Held[]
  /** One for each follow-up: its id, or null where the parent's completion was refused or the unique key is taken. */
  readonly ids: readonly (JobId | null)[]
  /** Of the retries and failures those that became cancellations, in the order of the round. */
  readonly cancelled: readonly JobId[]
  /** In the order in which they should run. */
  readonly reserved: readonly Reservation[]
  /** The store has not looked everywhere, to save time: fewer than were asked for does not mean that there are no more. */
  readonly more?: boolean
}

/** Who a worker is; `pidStart` and the namespaces tell a process from a later one with the same number. */
export interface WorkerProfile {
  readonly name: string
  readonly version: string
  readonly host: string
  readonly bootId: string | null
  readonly pidNamespace: string | null
  readonly pid: number
  readonly pidStart: string | null
  /** What it serves, for people. */
  readonly queues: string
  readonly concurrency: number
  /** Silence after which it is dead, in milliseconds. */
  readonly leaseMs: number
}

/** joining writes the worker's row; leaving removes it (what it still holds is freed at no cost). */
export type Beat =
  | { readonly kind: 'joining'; readonly worker: WorkerId; readonly profile: WorkerProfile }
  | { readonly kind: 'working' | 'draining' | 'leaving'; readonly worker: WorkerId }

/** `known` false: the worker was declared dead, and what it held may run elsewhere. */
export interface BeatAnswer {
  readonly known: boolean
}

/** What a worker asks about once a second. Reads only, and takes no lock. */
export interface Look {
  readonly worker: WorkerId
  readonly host: string
  /** The jobs it runs; asked by id, never through the index of held rows, which may be full of dead entries. */
  readonly held: readonly JobId[]
  /** What it would take, suspects included, whatever `suspects` says. */
  readonly filter: Filter
}

export interface Sight {
  /** False: declared dead, or its row is gone. */
  readonly known: boolean
  /** Somebody has asked the workers of that moment, this one among them, to make room for new processes. */
  readonly restart: boolean
  /** Those of `held` that somebody has cancelled. */
  readonly cancelled: readonly JobId[]
  /** Living workers on the same host, itself excluded. */
  readonly neighbours: readonly Neighbour[]
  /** How long the longest waiting due suspect that the filter could take has been ready, milliseconds; null: none waits. */
  readonly suspectWaitMs: number | null
  /** Due jobs that the filter would take but for a newer envelope wait: they are left to newer workers. */
  readonly newer: boolean
  /** Some jobs wait for others; a recovery releases those that need not any more. */
  readonly waiting: boolean
}

/** What tells whether a worker's process is still there. */
export interface Neighbour {
  readonly worker: WorkerId
  readonly bootId: string | null
  readonly pidNamespace: string | null
  readonly pid: number
  readonly pidStart: string | null
}

/** What an observer knows of others. Nobody is judged who is neither gone nor, where silence counts, silent. */
export interface Observation {
  readonly observer: WorkerId
  /** Neighbours whose process has surely ended: dead whatever their last beat. */
  readonly gone: readonly WorkerId[]
  /** Of those, or of the silent, the ones whose machine was started anew: their deaths cost nothing. */
  readonly rebooted: readonly WorkerId[]
  /**
   * False: the observer's own contact was broken, so that silence proves nothing. Nor does it where the observer's own
   * last beat is older than its lease: then it is the clock that has been set.
   */
  readonly silent: boolean
}

export interface Recovery {
  readonly dead: readonly WorkerId[]
  readonly freed: number
  /** Cancelled jobs that nobody held any more and that are ended now. */
  readonly cancelled: number
  /** Jobs that waited for others and wait no more: due by their own terms now, or cancelled. */
  readonly released: number
  /** Jobs whose row the database refuses to change; each is named once by a store, and tried again all the same. */
  readonly bad: readonly JobId[]
}

/**
 * What is done before the jobs of dead workers are free: their processes may have left something running on this host.
 *
 * dead: at least the workers whose jobs are about to be freed, and perhaps others that died before. Never rejects.
 */
export type BeforeFreeing = (dead: readonly WorkerId[]) => Promise<void>

/** The hot side of a queue; see the head of this file. */
export interface Store {
  /** How many exchanges of one worker may be under way at once and gain by it; 1 unless it says more. */
  readonly flights?: number
  /** Writes new jobs durably, all or none; answers in the order given. */
  enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]>
  /**
   * Settles what is finished, enqueues follow-ups, disowns, marks starts, and reserves: one transaction. Jobs that waited
   * for what has ended here are due, or cancelled, when it answers, unless something came in between: then `recover` does it.
   */
  exchange(round: Round): Promise<Exchanged>
  beat(beat: Beat): Promise<BeatAnswer>
  look(look: Look): Promise<Sight>
  /**
   * Declares workers dead, frees what dead ones hold and ends what was cancelled and is held by nobody, in bounded
   * batches; one bad row never stops the rest. Each death is judged once: a worker that held one started job died alone
   * (crashes + 1); in company the started ones become suspects; those that were not started are never held unstarted again; one that was draining, or whose machine was started
   * anew, costs nothing. Only what it held when it was judged pays: what it takes later is freed at no cost. Goes on to
   * some of the jobs that wait for others, and releases those that wait no more; all of them have been looked at after
   * enough calls.
   * beforeFreeing: waited for before the first job of a dead worker is freed.
   */
  recover(observation: Observation, beforeFreeing?: BeforeFreeing): Promise<Recovery>
  /** Milliseconds until the earliest job that this filter could take (0: now), or null if there is none. */
  nextDue(filter: Filter): Promise<number | null>
  /**
   * Calls back when a job may have become ready for a worker that sleeps (see `Wish.sleepMs`); the result ends it. Only
   * where the store can: an optimisation that may be late, come for nothing or not at all. Polling is the truth.
   */
  listen?(onWake: () => void): Promise<() => Promise<void>>
  /**
   * Writes new jobs inside a transaction of the caller's, on its connection; they are there once the caller commits. Adds
   * no commit, no savepoint and no second try. Only where a store can wait for such a connection.
   */
  enlist?(run: RunInside, jobs: readonly NewJob[]): Promise<readonly Enqueued[]>
  close(): Promise<void>
}
