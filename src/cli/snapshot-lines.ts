import type { FailedJob, QueueCounts } from '../core/store/admin.ts'
import { oneLine } from '../core/text.ts'
import { reasonWord } from './fail-reason.ts'
import { oldestWaitMs } from './limits.ts'
import { jsonText, type Output } from './output.ts'
import type { Snapshot } from './snapshots.ts'
import { livingFirst, workerRecord, workersText } from './worker-list.ts'

/** A snapshot for programs: the failures since the last one, then the snapshot, one record a line. */
export function snapshotLines(output: Output, snapshot: Snapshot): string {
  const failures = [...snapshot.fresh].reverse()
  const lines =
    output.mode === 'json'
      ? [...failures.map((failure) => failureRecord(output, failure)), snapshotRecord(output, snapshot)].map(jsonText)
      : [...failures.map((failure) => failureLine(output, failure)), ...snapshotText(output, snapshot)]
  return lines.map((line) => `${line}\n`).join('')
}

function snapshotRecord(output: Output, { at, queues, workers, running }: Snapshot): object {
  return {
    time: output.moment(at),
    event: 'snapshot',
    queues: queues.map(({ oldestReadyAt: _, ...counts }, index) => ({
      ...counts,
      oldestWaitMs: oldestWaitMs(queues[index] as QueueCounts, at),
    })),
    workers: livingFirst(workers).map((worker) => workerRecord(output, worker, [])),
    running: running.map(({ holder, runningMs, ...facts }) => ({ ...facts, ms: runningMs, worker: holder.name })),
  }
}

function failureRecord(output: Output, failure: FailedJob): object {
  const { id, job, queue, errorType, error, failedAt } = failure
  return {
    time: output.moment(failedAt),
    event: 'failure',
    id,
    job,
    queue,
    reason: reasonWord(failure.reason),
    errorType,
    error,
  }
}

function snapshotText(output: Output, { at, queues, workers }: Snapshot): readonly string[] {
  const time = output.moment(at)
  return [
    `${time} WORKERS ${workersText(livingFirst(workers), at)}`,
    ...queues.map((counts) => {
      const { queue, ready, running, scheduled, failed, paused } = counts
      return `${time} QUEUE ${oneLine(queue)} ready=${ready} running=${running} scheduled=${scheduled} failed=${failed} waitMs=${oldestWaitMs(counts, at) ?? 0} paused=${paused}`
    }),
  ]
}

function failureLine(output: Output, { id, job, queue, failedAt, error }: FailedJob): string {
  return `${output.moment(failedAt)} FAILED ${id} ${oneLine(job)} queue=${oneLine(queue)} ${oneLine(error)}`
}
