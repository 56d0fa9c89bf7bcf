import { systemClock } from '../../src/core/clock.ts'
import { createKhepri } from '../../src/index.ts'

/** A job that is to fail for good. */
export interface Failure {
  readonly job?: string
  readonly queue?: string
  readonly error?: string
  readonly unique?: string
}

/** Dispatches jobs and lets each fail for good, `agoMs` before now; they get the next free ids, in this order. */
export async function failJobs(database: string, failures: readonly Failure[], agoMs = 0): Promise<void> {
  const names = [...new Set(failures.map(({ job }) => job ?? 'boom'))]
  const jobs = Object.fromEntries(names.map((name) => [name, fail]))
  const clock = { ...systemClock, now: () => Date.now() - agoMs }
  const khepri = createKhepri({ database, jobs }, { clock })
  const entries = failures.map(({ job = 'boom', queue = 'default', error = 'it broke', unique }) => ({
    job,
    payload: { error },
    queue,
    ...(unique !== undefined && { unique }),
  }))
  await khepri.dispatchMany(entries)
  const worker = await khepri.work({ queues: 'all', stopWhenEmpty: true, concurrency: 50 })
  await worker.finished
  await khepri.close()
}

async function fail({ error }: { error: string }): Promise<void> {
  throw new Error(error)
}
