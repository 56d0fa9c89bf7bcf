import type { FailedJob } from '../core/store/admin.ts'
import type { AttemptRecord } from '../core/store/store.ts'
import { reasonWord } from './fail-reason.ts'
import { type Field, printFields } from './fields.ts'
import {
  attemptRecords,
  documentWith,
  failReasons,
  failuresText,
  payloadOf,
  printAttempts,
  timeOf,
} from './job-parts.ts'
import type { Output } from './output.ts'

/** Prints everything that is known about a failed job. */
export async function printFailedJob(
  output: Output,
  job: FailedJob,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  if (output.mode === 'json') return output.stdout.write(`${documentOf(output, job, attempts)}\n`)
  await printFields(output, fieldsOf(output, job))
  await printAttempts(output, attempts)
}

function fieldsOf(output: Output, job: FailedJob): readonly Field[] {
  const payload = payloadOf(job.envelope)
  return [
    ['id', String(job.id)],
    ['job', job.job],
    ['queue', job.queue],
    ['priority', String(job.priority)],
    ...(job.uniqueKey === null ? [] : [['unique', job.uniqueKey] as const]),
    ['dispatched', timeOf(output, job.enqueuedAt)],
    ['failed', `${timeOf(output, job.failedAt)}, ${failReasons[job.reason]}`],
    ['failures', failuresText(job.failures, job.crashes)],
    ['error', `${job.errorType}: ${job.error}`],
    ...(payload === null ? [] : [['payload', payload] as const]),
    ['envelope', job.envelope],
  ]
}

function documentOf(output: Output, job: FailedJob, attempts: readonly AttemptRecord[]): string {
  const { id, queue, priority, failures, crashes, reason, errorType, error, uniqueKey, envelope } = job
  const facts = {
    ...{ id, job: job.job, queue, priority, unique: uniqueKey },
    ...{ dispatchedAt: output.moment(job.enqueuedAt), failedAt: output.moment(job.failedAt) },
    ...{ failures, crashes, reason: reasonWord(reason), errorType, error },
    attempts: attemptRecords(output, attempts),
  }
  return documentWith(facts, envelope)
}
