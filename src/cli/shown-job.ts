import type { WholeJob } from '../core/store/admin.ts'
import type { AttemptRecord } from '../core/store/store.ts'
import { reasonWord } from './fail-reason.ts'
import { type Field, printFields } from './fields.ts'
import { attemptRecords, documentWith, failuresText, payloadOf, printAttempts, timeOf } from './job-parts.ts'
import type { Output } from './output.ts'

/** A job with its history, and why it is not running. */
export interface ShownJob {
  readonly job: WholeJob
  readonly attempts: readonly AttemptRecord[]
  readonly why: string
}

/** Prints everything that is known about a job. */
export async function printShownJob(output: Output, shown: ShownJob): Promise<void> {
  if (output.mode === 'json') return output.stdout.write(`${documentOf(output, shown)}\n`)
  await printFields(output, fieldsOf(output, shown))
  await printAttempts(output, shown.attempts)
}

function fieldsOf(output: Output, { job, why }: ShownJob): readonly Field[] {
  const payload = payloadOf(job.envelope)
  const { failure, holder } = job
  return [
    ['id', String(job.id)],
    ['job', job.job],
    ['state', job.state],
    ['why', why],
    ['queue', job.queue],
    ['priority', String(job.priority)],
    ...given('unique', job.uniqueKey),
    ['dispatched', timeOf(output, job.enqueuedAt)],
    ...given('due', job.availableAt, (at) => timeOf(output, at)),
    ...given('started', job.startedAt, (at) => timeOf(output, at)),
    ...given('cancelled', job.cancelledAt, (at) => timeOf(output, at)),
    ...given('ended', job.endedAt, (at) => timeOf(output, at)),
    ...given('worker', holder, ({ name, worker }) => name ?? `unknown (${worker})`),
    ['failures', failuresText(job.failures, job.crashes)],
    ...given('error', failure, ({ errorType, error }) => `${errorType}: ${error}`),
    ...given('payload', payload),
    ['envelope', job.envelope],
  ]
}

/** A field where there is something to say. */
function given<T>(name: string, value: T | null, text: (value: T) => string = String): readonly Field[] {
  return value === null ? [] : [[name, text(value)]]
}

function documentOf(output: Output, { job, attempts, why }: ShownJob): string {
  return documentWith({ ...jobRecord(output, job), why, attempts: attemptRecords(output, attempts) }, job.envelope)
}

/** A job as programs read it, in listings too. */
export function jobRecord(output: Output, job: Omit<WholeJob, 'version' | 'envelope'>): object {
  const { id, state, queue, priority, failures, crashes, isSuspect, uniqueKey, holder, failure } = job
  const moment = (at: number | null): string | null => (at === null ? null : output.moment(at))
  return {
    ...{ id, job: job.job, state, queue, priority, failures, crashes, suspect: isSuspect, unique: uniqueKey },
    ...{ dispatchedAt: moment(job.enqueuedAt), availableAt: moment(job.availableAt), startedAt: moment(job.startedAt) },
    ...{ cancelledAt: moment(job.cancelledAt), endedAt: moment(job.endedAt), worker: holder?.name ?? null },
    ...{
      reason: failure ? reasonWord(failure.reason) : null,
      errorType: failure?.errorType ?? null,
      error: failure?.error ?? null,
    },
  }
}
