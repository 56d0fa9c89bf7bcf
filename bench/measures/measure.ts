import type { Contest } from '../contest.ts'
import type { StoreName } from '../contestants.ts'

/** How long and how large a run is. */
export interface Scale {
  readonly form: 'quick' | 'usual' | 'full'
  /** Of an ordinary drain. */
  readonly jobs: number
  /** A contestant that takes longer for one measure has failed it. */
  readonly deadlineMs: number
  /** Adds at most. */
  readonly adds: number
  readonly bulkJobs: number
  /** A measure of a rate ends after so long, whatever it has reached. */
  readonly boxMs: number
  readonly pickUps: number
  readonly idleMs: number
  readonly coldStarts: number
  /** How long the dead worker's jobs are waited for. */
  readonly recoveryMs: number
  readonly snapshotJobs: number
  /** Rows that are in the way. */
  readonly crowd: number
}

/** The forms of the benchmark. */
export const scales: Readonly<Record<Scale['form'], Scale>> = {
  quick: {
    form: 'quick',
    deadlineMs: 15_000,
    jobs: 10_000,
    adds: 2_000,
    bulkJobs: 10_000,
    boxMs: 1_500,
    pickUps: 30,
    idleMs: 3_000,
    coldStarts: 1,
    recoveryMs: 5_000,
    snapshotJobs: 40_000,
    crowd: 0,
  },
  usual: {
    form: 'usual',
    deadlineMs: 60_000,
    jobs: 20_000,
    adds: 5_000,
    bulkJobs: 50_000,
    boxMs: 5_000,
    pickUps: 100,
    idleMs: 10_000,
    coldStarts: 3,
    recoveryMs: 10_000,
    snapshotJobs: 100_000,
    crowd: 0,
  },
  full: {
    form: 'full',
    deadlineMs: 1_800_000,
    jobs: 20_000,
    adds: 20_000,
    bulkJobs: 200_000,
    boxMs: 30_000,
    pickUps: 400,
    idleMs: 30_000,
    coldStarts: 10,
    recoveryMs: 120_000,
    snapshotJobs: 600_000,
    crowd: 1_000_000,
  },
}

/** One number of a measure. */
export interface Figure {
  readonly name: string
  readonly unit: string
  readonly better: 'more' | 'less'
}

/** What is measured of everybody in turn. */
export interface Measure {
  readonly name: string
  readonly title: string
  /** The smallest form that has it. */
  readonly from: Scale['form']
  readonly stores: readonly StoreName[]
  /** Slow contestants would not come to its point. */
  readonly onlyFast: boolean
  /** Who may lose its last adds in a power cut is shown, and not compared with. */
  readonly asksForDurability: boolean
  readonly figures: readonly Figure[]
  run(contest: Contest, scale: Scale): Promise<Readonly<Record<string, number>>>
}

/** Of a measure on every store in which everybody takes part. */
export const everybody = { stores: ['sqlite', 'postgres', 'redis'], onlyFast: false, asksForDurability: false } as const

/** Jobs in a second. */
export const rate: Figure = { name: 'rate', unit: 'jobs/s', better: 'more' }

export function perSecond({ count, ms }: { readonly count: number; readonly ms: number }): { readonly rate: number } {
  return { rate: (count / Math.max(ms, 0.001)) * 1_000 }
}
