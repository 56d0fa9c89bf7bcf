import { formatDuration } from '../core/duration.ts'
import type { BusyJob, WorkerRow } from '../core/store/admin.ts'
import type { Listing, Output } from './output.ts'
import { count } from './words.ts'

/** The states of a worker that people see: `silent` has not beaten for a whole lease, and nobody has declared it dead yet. */
export type WorkerState = WorkerRow['state'] | 'silent'

/** The state of a worker at a moment, epoch ms. */
export function stateOf({ state, beatAt, leaseMs }: WorkerRow, now: number): WorkerState {
  return state !== 'dead' && beatAt + leaseMs < now ? 'silent' : state
}

/** The living first; within both in the order of their starts. */
export function livingFirst(workers: readonly WorkerRow[]): readonly WorkerRow[] {
  const [dead, living] = [true, false].map((isDead) => workers.filter(({ state }) => (state === 'dead') === isDead))
  return [...(living ?? []), ...(dead ?? [])]
}

/** "2 working, 1 silent": the states of workers, counted; "none" where there are none. */
export function workersText(workers: readonly WorkerRow[], now: number): string {
  const states = Map.groupBy(workers, (worker) => stateOf(worker, now))
  const counted = [...states].map(([state, those]) => `${those.length} ${state}`)
  return counted.length === 0 ? 'none' : counted.join(', ')
}

/** How workers are listed. busy: the jobs that have run for long, the longest first. */
export function workerListing(output: Output, busy: readonly BusyJob[]): Listing<WorkerRow> {
  const now = Date.now()
  return {
    columns: [
      { title: 'Name', value: ({ name }) => name },
      { title: 'Host', value: ({ host }) => host },
      { title: 'Pid', value: ({ pid }) => String(pid) },
      { title: 'Version', value: ({ version }) => version },
      { title: 'Queues', value: ({ queues }) => queues },
      { title: 'Running', value: ({ running, concurrency }) => `${running}/${concurrency}` },
      { title: 'State', value: (worker) => stateOf(worker, now) },
      { title: 'Last beat', value: ({ beatAt }) => output.time(beatAt) },
      { title: 'Busy', value: ({ id }) => busyText(jobsOf(id, busy)) },
    ],
    record: (worker) => workerRecord(output, worker, busy),
  }
}

/** A worker as programs read it. */
export function workerRecord(output: Output, worker: WorkerRow, busy: readonly BusyJob[]): object {
  const { id, name, host, pid, version, queues, running, concurrency, leaseMs, startedAt, beatAt } = worker
  return {
    ...{ name, host, pid, version, queues, running, concurrency, state: stateOf(worker, Date.now()) },
    ...{ startedAt: output.moment(startedAt), beatAt: output.moment(beatAt), retryAfterMs: leaseMs },
    busy: jobsOf(id, busy).map((job) => ({ id: job.id, job: job.job, ms: job.runningMs })),
  }
}

const jobsOf = (worker: number, busy: readonly BusyJob[]): readonly BusyJob[] =>
  busy.filter(({ holder }) => holder.worker === worker)

/** "7 for 12m", or with several of them "7 for 12m and 2 others". */
function busyText([longest, ...others]: readonly BusyJob[]): string {
  if (longest === undefined) return '-'
  const text = `${longest.id} for ${formatDuration(longest.runningMs)}`
  return others.length === 0 ? text : `${text} and ${count(others.length, 'other')}`
}
