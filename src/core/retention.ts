import type { Settings } from './config-keys.ts'
import type { Admin, Aged } from './store/admin.ts'

/** How long what has ended is kept, in milliseconds; null: nothing of it is ever pruned. */
export type Retention = Readonly<Record<Aged['state'], number | null>>

/** How many jobs of each kind. */
export type AgedCounts = Readonly<Record<Aged['state'], number>>

/** Jobs deleted in one transaction: bounds how long it holds the store. */
const atOnce = 500

/** What a configuration says. Where `keepDone` is not set nothing new is kept, and what is there is left alone. */
export function retentionOf({ keepDoneMs, keepFailedMs, keepCancelledMs }: Settings): Retention {
  return { done: keepDoneMs, failed: keepFailedMs, cancelled: keepCancelledMs }
}

/** The jobs that a retention lets go. */
function agedBy(retention: Retention): readonly Aged[] {
  const states: readonly Aged['state'][] = ['done', 'failed', 'cancelled']
  return states.flatMap((state) => {
    const leastAgeMs = retention[state]
    return leastAgeMs === null ? [] : { state, leastAgeMs }
  })
}

/** Counts what `prune` would delete. */
export async function countPrunable(admin: Admin, retention: Retention): Promise<AgedCounts> {
  const counts = { done: 0, failed: 0, cancelled: 0 }
  for (const aged of agedBy(retention)) counts[aged.state] = await admin.countAged(aged)
  return counts
}

/** Deletes what a retention lets go, in small batches. onBatch: what is deleted so far. */
export async function prune(
  admin: Admin,
  retention: Retention,
  onBatch: (counts: AgedCounts) => void,
): Promise<AgedCounts> {
  const counts = { done: 0, failed: 0, cancelled: 0 }
  for (const aged of agedBy(retention))
    for (let deleted = await admin.prune(aged, atOnce); deleted > 0; deleted = await admin.prune(aged, atOnce)) {
      counts[aged.state] += deleted
      onBatch(counts)
    }
  return counts
}
