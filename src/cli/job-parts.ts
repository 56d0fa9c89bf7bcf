import { formatDuration } from '../core/duration.ts'
import { findFault, members } from '../core/json-text.ts'
import { packageRoot } from '../core/package.ts'
import type { AttemptRecord, FailReason } from '../core/store/store.ts'
import { jsonText, type Output } from './output.ts'

/** Why a job failed for good, for people. */
export const failReasons: Readonly<Record<FailReason, string>> = {
  tries: 'its tries are spent',
  refused: 'its handler said that it will never succeed',
  poison: 'it cannot be read',
  unknown: 'no handler is registered for it',
  crashes: 'it killed its worker too often',
}

/** At a terminal both the moment and how long ago that is. */
export const timeOf = (output: Output, at: number): string =>
  output.mode === 'terminal' ? `${output.moment(at)} (${output.time(at)})` : output.moment(at)

/** How often a job has failed, and how many workers it has taken down: "2, and 1 dead worker". */
export const failuresText = (failures: number, crashes: number): string =>
  `${failures}${crashes === 0 ? '' : `, and ${crashes} dead worker${crashes === 1 ? '' : 's'}`}`

/** Prints the attempts of a job that did not succeed, oldest first. */
export async function printAttempts(output: Output, attempts: readonly AttemptRecord[]): Promise<void> {
  for (const attempt of attempts) await printAttempt(output, attempt)
}

async function printAttempt(
  output: Output,
  { attempt, worker, startedAt, endedAt, errorType, message, stack, output: tail }: AttemptRecord,
): Promise<void> {
  const ms = formatDuration(Math.max(0, endedAt - startedAt))
  await output.print(`\nattempt ${attempt}   ${output.moment(startedAt)}, ${ms}, on ${worker}`, 'bold')
  const frames = stack === null || output.options.verbose ? stack : withoutOwnFrames(stack)
  // A stack begins with the type and the message, nearly always.
  await output.print(
    indented(
      frames?.includes(message)
        ? frames
        : [`${errorType}: ${message}`, frames].filter((part) => part !== null).join('\n'),
    ),
  )
  if (tail !== null) await output.print(indented(`output:\n${tail.trimEnd()}`))
}

/** Frames of khepri itself say nothing about the job. */
function withoutOwnFrames(stack: string): string {
  const own = [`${packageRoot()}/src/`, `${packageRoot()}/dist/`, '/node_modules/khepri/']
  return stack
    .split('\n')
    .filter((line) => !/^\s+at /.test(line) || !own.some((folder) => line.includes(folder)))
    .join('\n')
}

const indented = (text: string): string => text.replaceAll(/^/gm, '  ')

/** Attempts as programs read them. */
export function attemptRecords(output: Output, attempts: readonly AttemptRecord[]): readonly object[] {
  return attempts.map(({ startedAt, endedAt, ...rest }) => ({
    ...rest,
    startedAt: output.moment(startedAt),
    endedAt: output.moment(endedAt),
  }))
}

/** One JSON document of facts, with the payload and the envelope put in as text: JSON.parse would round big numbers and drop what stands twice. */
export function documentWith(facts: object, envelope: string): string {
  return `${jsonText(facts).slice(0, -1)},"payload":${safeJson(payloadOf(envelope))},"envelope":${safeJson(envelope)}}`
}

/** JSON as it is, with nothing in it that a terminal could obey; any other text as a JSON string. */
function safeJson(text: string | null): string {
  if (text === null) return 'null'
  return findFault(text) === null ? escaped(text) : jsonText(text)
}

/** In valid JSON these characters stand only in strings, where an escape means the same. */
export const escaped = (text: string): string =>
  text.replaceAll(/[\x7f-\x9f]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`)

/** The payload's own text, if the envelope can be read that far. */
export function payloadOf(envelope: string): string | null {
  if (findFault(envelope) !== null || !envelope.trimStart().startsWith('{')) return null
  const payload = members(envelope).find(({ key }) => key === 'payload')
  return payload === undefined ? null : envelope.slice(payload.start, payload.end)
}
