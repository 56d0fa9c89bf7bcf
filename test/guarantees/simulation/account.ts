import type { Held, JobId, WorkerId } from '../../../src/core/store/store.ts'
import type { JobPlan } from './plan.ts'
import type { Hand, SimulatedProcess } from './simulated-process.ts'

/** Who holds a job, by what the store answered. */
export interface Holding extends Held {
  readonly worker: WorkerId
  readonly batch: number
  readonly process: SimulatedProcess
  /** Its handler was started, by the holder's word. */
  isStarted: boolean
}

/** What is known about one job from the calls that were committed; the store's own rows are never looked at. */
export interface Account {
  readonly id: JobId
  readonly plan: JobPlan
  readonly envelope: string
  home: 'live' | 'failed' | 'done' | 'cancelled'
  availableAt: number
  holding: Holding | null
  lastFence: number
  /** Since it was dispatched or last retried by hand. */
  failures: number
  crashes: number
  companyDeaths: number
  /** Those of them in which its handler had been called. */
  companyRuns: number
  /** It was held by a worker that died in company, so it may have to run alone. */
  mayBeSuspect: boolean
  /** A worker died that held it unstarted, so it comes to be started or not at all. */
  isSurvivor: boolean
  /** Fences under which it was held by a worker that was rightly declared dead, or that left. */
  readonly seized: Set<number>
  /** Somebody has cancelled it while it was held. */
  isMarked: boolean
  /** How often it failed for good, and how often its hook was called. */
  timesFailed: number
  hooks: number
}

/** One run of one handler. */
export interface Run {
  readonly account: Account
  readonly process: SimulatedProcess
  readonly hand: Hand
  readonly signal: AbortSignal
  readonly startedAt: number
  end: 'returned' | 'threw' | 'released' | null
  /** Its handler threw from a timer while it ran. */
  isCharged: boolean
}

/** A worker's row, by what the store answered to its beats. */
export interface WorkerAccount {
  readonly id: WorkerId
  readonly process: SimulatedProcess
  readonly leaseMs: number
  state: 'working' | 'draining' | 'dead' | 'gone'
  /** By the one true time. */
  beatAt: number
}

export function newAccount(id: JobId, plan: JobPlan, envelope: string, availableAt: number): Account {
  return {
    id,
    plan,
    envelope,
    home: 'live',
    availableAt,
    holding: null,
    lastFence: 0,
    failures: 0,
    crashes: 0,
    companyDeaths: 0,
    companyRuns: 0,
    mayBeSuspect: false,
    isSurvivor: false,
    seized: new Set(),
    isMarked: false,
    timesFailed: 0,
    hooks: 0,
  }
}

/** Deaths of its worker, while it ran alone, after which a job is failed. */
export const crashLimit = ({ plan }: Account): number => Math.max(1, plan.maxCrashes)
