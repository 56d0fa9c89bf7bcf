import type { JobId, NewJob } from './store.ts'

/**
 * What a store keeps of schedules: a side of its own, which neither workers nor operators load unless there are schedules.
 *
 * It decides nothing: which slots are due, and what becomes of late ones, is the business of whoever ticks. What it
 * guarantees is that a slot is taken once, in the same transaction as its job.
 */
export interface ScheduleStore {
  /** Everything that is known, and the store's own now. Reads only. */
  look(): Promise<ScheduleSight>
  /**
   * Writes what a configuration says, where the row is older than `begunAt`, the moment at which the caller's process began.
   * A schedule that is new, or whose cadence is another one than before, counts as planned up to now.
   */
  define(definitions: readonly Definition[], begunAt: number): Promise<void>
  /**
   * Takes slots: moves the schedule on and enqueues the jobs in one transaction.
   *
   * Null: somebody else has moved it, it is paused, or its definition is another one by now; then nothing was written.
   */
  take(taking: Taking): Promise<readonly Taken[] | null>
  /** Enqueues the run that waits for the one before it; null where that has not ended, or somebody else was faster. */
  takeWaiting(waiting: Waiting): Promise<JobId | null>
  /** Enqueues a run that a person asked for; the plan stays as it is. */
  trigger(name: string, job: NewJob): Promise<JobId>
  /** No slot of it is taken until it is resumed. It need not be known yet. */
  pause(name: string): Promise<void>
  /** Goes on from now: slots that came meanwhile are not made up for. False: it was not paused, or is not known. */
  resume(name: string): Promise<boolean>
  /** Writes down that somebody looks after the schedules. */
  tick(ticker: string): Promise<void>
  close(): Promise<void>
}

/** What one look at the schedules tells. */
export interface ScheduleSight {
  /** Epoch milliseconds. */
  readonly now: number
  /** By name. */
  readonly schedules: readonly StoredSchedule[]
  /** Queues that are paused at this moment. */
  readonly pausedQueues: readonly string[]
  /** When anybody looked after the schedules last, and who; null: nobody ever did. */
  readonly lastTick: { readonly at: number; readonly ticker: string } | null
}

/** What the newest configuration says of a schedule, as texts that are compared. */
export interface Definition {
  readonly name: string
  /** Everything; '' for a schedule that the configuration does not have any more. */
  readonly definition: string
  /** The part that says when; '' where it has no slots. */
  readonly cadence: string
}

/** A schedule as it is stored. Moments are epoch milliseconds. */
export interface StoredSchedule extends Definition {
  /** When the process began that wrote the definition; 0 where nobody has. */
  readonly definedAt: number
  /** Slots up to here were taken, passed over, or came before the schedule was first seen. */
  readonly lastSlot: number
  /** Slots without a run since the last run, because nobody looked in time. */
  readonly missed: number
  readonly waitingSlot: number | null
  readonly pausedAt: number | null
  readonly lastJob: JobId | null
  /** When the last job was enqueued. */
  readonly firedAt: number | null
}

/** What becomes of a run whose predecessor has not ended. */
export type Overlap = 'allow' | 'skip' | 'queue'

/** One run: the slot that it is for, and the job. */
export interface PlannedRun {
  readonly slot: number
  readonly job: NewJob
}

/** Slots to be taken, by somebody who has seen the schedule as `definition` and `after` say. */
export interface Taking {
  readonly name: string
  readonly definition: string
  /** `lastSlot` as it was seen. */
  readonly after: number
  /** `lastSlot` and `missed` from now on. */
  readonly upTo: number
  readonly missed: number
  readonly overlap: Overlap
  /** In the order of their slots; none where the slots are passed over. */
  readonly runs: readonly PlannedRun[]
}

/** What became of one run. id: of its job; null where the run before it has not ended. */
export interface Taken {
  readonly slot: number
  readonly id: JobId | null
  readonly fate: 'enqueued' | 'skipped' | 'waiting'
}

/** The run that waits. */
export interface Waiting extends PlannedRun {
  readonly name: string
  readonly definition: string
}

/** So many slots of a schedule are remembered. */
export const keptSlots = 100
