import type { Admin } from '../../core/store/admin.ts'
import type { ScheduleStore } from '../../core/store/schedule-store.ts'
import type { Store } from '../../core/store/store.ts'
import type { ManualClock } from '../manual-clock.ts'
import { TestWorker } from './test-worker.ts'

/** Things that a broker may be unable to do. Every SQL store has them all. */
export type Capability =
  | 'priorities'
  | 'strict queues'
  | 'merged queues'
  | 'unique keys'
  | 'follow-ups'
  | 'continuations'
  | 'filters'
  | 'suspects'
  | 'pauses'
  | 'cancels'
  | 'failed jobs'
  | 'schedules'

/** Two stores on one database, as two processes have them; each was opened with this clock. */
export interface Opened {
  readonly stores: readonly [Store, Store]
  readonly admin: Admin
  /** Two again; left out by a store that lacks them. */
  readonly schedules?: readonly [ScheduleStore, ScheduleStore]
  readonly clock: ManualClock
  /** Closes what was opened, and removes the database. */
  close(): Promise<void>
}

/** What a case gets: an empty database and three workers, the first on a store of its own. */
export interface Context {
  readonly store: Store
  readonly admin: Admin
  /** Throws where the harness has opened none. */
  readonly schedules: () => readonly [ScheduleStore, ScheduleStore]
  readonly clock: ManualClock
  readonly first: TestWorker
  readonly second: TestWorker
  readonly third: TestWorker
}

/** One thing that every store does, told in a sentence. */
export interface ConformanceCase {
  readonly name: string
  readonly needs?: readonly Capability[]
  run(context: Context): Promise<void>
}

/** Sets the stage for one case. */
export function contextOn({ stores: [one, other], admin, schedules, clock }: Opened): Context {
  const first = new TestWorker(281_474_976_710_655, one, 'first')
  const second = new TestWorker(2, other, 'second')
  const third = new TestWorker(140_000_000_000_003, other, 'third')
  const opened = (): NonNullable<typeof schedules> => {
    if (schedules === undefined) throw new Error('the harness opens no schedules: say so in `lacks`')
    return schedules
  }
  return { store: one, admin, schedules: opened, clock, first, second, third }
}
