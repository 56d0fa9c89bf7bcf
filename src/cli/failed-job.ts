import { formatDuration } from '../core/duration.ts'
import { findFault, members } from '../core/json-text.ts'
import type { FailedJob } from '../core/store/admin.ts'
import type { AttemptRecord } from '../core/store/store.ts'
import { printFields } from './fields.ts'
import { jsonText, type Output } from './output.ts'

/** Prints everything that is known about a failed job. */
export async function printFailedJob(
  output: Output,
  job: FailedJob,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  if (output.mode === 'json') return output.stdout.write(`${documentOf(output, job, attempts)}\n`)
  await printFields(output, fieldsOf(output, job))
  for (const attempt of attempts) await printAttempt(output, attempt)
}

function fieldsOf(output: Output, job: FailedJob): readonly (readonly [string, string])[] {
  const payload = payloadOf(job.envelope)
  return [
    ['id', String(job.id)],
    ['job', job.job],
    ['queue', job.queue],
    ['priority', String(job.priority)],
    ...(job.uniqueKey === null ? [] : [['unique', job.uniqueKey] as const]),
    ['dispatched', timeOf(output, job.enqueuedAt)],
    ['failed', `${timeOf(output, job.failedAt)}, ${reasons[job.reason]}`],
    ['failures', `${job.failures}${job.crashes === 0 ? '' : `, and ${job.crashes} dead workers`}`],
    ['error', `${job.errorType}: ${job.error}`],
    ...(payload === null ? [] : [['payload', payload] as const]),
    ['envelope', job.envelope],
  ]
}

const reasons: Readonly<Record<FailedJob['reason'], string>> = {
  tries: 'its tries are spent',
  refused: 'its handler said that it will never succeed',
  poison: 'it cannot be read',
  unknown: 'no handler is registered for it',
  crashes: 'it killed its worker too often',
}

/** At a terminal both the moment and how long ago that is. */
const timeOf = (output: Output, at: number): string =>
  output.mode === 'terminal' ? `${output.moment(at)} (${output.time(at)})` : output.moment(at)

async function printAttempt(
  output: Output,
  { attempt, worker, startedAt, endedAt, errorType, message, stack, output: tail }: AttemptRecord,
): Promise<void> {
  const ms = formatDuration(Math.max(0, endedAt - startedAt))
  await output.print(`\nattempt ${attempt}   ${output.moment(startedAt)}, ${ms}, on ${worker}`, 'bold')
  // A stack begins with the type and the message, nearly always.
  await output.print(
    indented(
      stack?.includes(message) ? stack : [`${errorType}: ${message}`, stack].filter((part) => part !== null).join('\n'),
    ),
  )
  if (tail !== null) await output.print(indented(`output:\n${tail}`))
}

const indented = (text: string): string => text.replaceAll(/^/gm, '  ')

function documentOf(output: Output, job: FailedJob, attempts: readonly AttemptRecord[]): string {
  const { id, queue, priority, failures, crashes, reason, errorType, error, uniqueKey, envelope } = job
  const facts = jsonText({
    ...{ id, job: job.job, queue, priority, unique: uniqueKey },
    ...{ dispatchedAt: output.moment(job.enqueuedAt), failedAt: output.moment(job.failedAt) },
    ...{ failures, crashes, reason, errorType, error },
    attempts: attempts.map(({ startedAt, endedAt, ...rest }) => ({
      ...rest,
      startedAt: output.moment(startedAt),
      endedAt: output.moment(endedAt),
    })),
  })
  // Put in as text: JSON.parse would round big numbers and drop what stands twice.
  return `${facts.slice(0, -1)},"payload":${safeJson(payloadOf(envelope))},"envelope":${safeJson(envelope)}}`
}

/** JSON as it is; any other text as a JSON string. */
function safeJson(text: string | null): string {
  if (text === null) return 'null'
  return findFault(text) === null ? escaped(text) : jsonText(text)
}

/** In valid JSON these characters stand only in strings, where an escape means the same. */
const escaped = (text: string): string =>
  text.replaceAll(/[\x7f-\x9f]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`)

/** The payload's own text, if the envelope can be read that far. */
function payloadOf(envelope: string): string | null {
  if (findFault(envelope) !== null || !envelope.trimStart().startsWith('{')) return null
  const payload = members(envelope).find(({ key }) => key === 'payload')
  return payload === undefined ? null : envelope.slice(payload.start, payload.end)
}
