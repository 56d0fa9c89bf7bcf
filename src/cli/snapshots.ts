import { type Clock, sleep } from '../core/clock.ts'
import { isTransient } from '../core/errors.ts'
import type { Admin, BusyJob, FailedJob, QueueCounts, WorkerRow } from '../core/store/admin.ts'

/** How an installation is at one moment. */
export interface Snapshot {
  /** Epoch milliseconds. */
  readonly at: number
  readonly queues: readonly QueueCounts[]
  readonly workers: readonly WorkerRow[]
  /** The jobs that run, the longest first. */
  readonly running: readonly BusyJob[]
  /** The last failures, the newest first. */
  readonly failures: readonly FailedJob[]
  /** Of `failures` those that have come since the snapshot before; none in the first. */
  readonly fresh: readonly FailedJob[]
}

export interface SnapshotOptions {
  readonly admin: Admin
  readonly clock: Clock
  readonly everyMs: number
  /** Ends the stream. */
  readonly signal: AbortSignal
  /** Told when the store is lost, and with null when it is back. */
  readonly onOutage: (error: Error | null) => void
}

/** So many failures are shown, and read at once. */
const mostFailures = 100

/** Counting scans the tables: it takes at most a hundredth of the time. */
const restPerCost = 100

/** Looks again and again until the signal aborts; an outage of the store is told once and waited for, but not the first one. */
export async function* snapshots(options: SnapshotOptions): AsyncGenerator<Snapshot> {
  const { clock, everyMs, signal, onOutage } = options
  let last: Snapshot | null = null
  let isLost = false
  while (!signal.aborted) {
    const startedAt = clock.monotonic()
    try {
      last = await look(options, last)
      if (isLost) onOutage(null)
      isLost = false
      yield last
    } catch (error) {
      if (last === null || !isTransient(error)) throw error
      if (!isLost) onOutage(error)
      isLost = true
    }
    await sleep(clock, Math.max(everyMs, restPerCost * (clock.monotonic() - startedAt)), signal)
  }
}

async function look({ admin, clock }: SnapshotOptions, last: Snapshot | null): Promise<Snapshot> {
  const at = clock.now()
  const [queues, workers, running] = [await admin.counts(), await admin.workers(), await admin.busy(0)]
  const failures: FailedJob[] = []
  for await (const failure of admin.failed({}, mostFailures)) failures.push(failure)
  return { at, queues, workers, running, failures, fresh: last === null ? [] : newer(failures, last.failures) }
}

/** A job that was retried and failed anew has another fence. */
function newer(failures: readonly FailedJob[], known: readonly FailedJob[]): readonly FailedJob[] {
  const keyOf = ({ id, fence }: FailedJob): string => `${id}/${fence}`
  const seen = new Set(known.map(keyOf))
  const oldestKnownAt = known.at(-1)?.failedAt ?? 0
  return failures.filter((failure) => failure.failedAt >= oldestKnownAt && !seen.has(keyOf(failure)))
}
