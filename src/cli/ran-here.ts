import { formatDuration } from '../core/duration.ts'
import { type ErrorCode, KhepriError } from '../core/errors.ts'
import type { Outcome } from '../core/policy.ts'
import type { Reservation } from '../core/store/store.ts'
import { describeError } from '../core/text.ts'
import { elapsed } from './elapsed.ts'
import { exits } from './exit-codes.ts'
import type { Output } from './output.ts'
import type { RanHere } from './run-here.ts'

/** How a command speaks. */
interface Voice {
  readonly output: Output
  readonly say: (text: string) => void
  readonly report: (error: KhepriError, exit?: number) => void
}

/** Shows what a job that was run here has written elsewhere than on our stdout, or all about it for programs, and its end. */
export async function showRan(job: Reservation, ran: RanHere, { output, say, report }: Voice): Promise<void> {
  if (output.mode === 'json') await output.document(documentOf(job, ran))
  else if (ran.output !== null) await output.stdout.write(ran.output)
  tellEnding(job, ran, { say, report })
}

/** Tells how a job that was run here ended, and what a worker would make of it. */
function tellEnding({ job }: Reservation, ran: RanHere, { say, report }: Omit<Voice, 'output'>): void {
  const { outcome, verdict, attempt, tries, ms, signalled } = ran
  if (outcome.kind === 'done') return say(`Ran ${job} in ${elapsed(ms)}`)
  report(errorOf(job, ran), signalled ?? (outcome.kind === 'released' ? exits.tryAgain : undefined))
  if (verdict.kind === 'retry')
    say(`A worker would try it again in ${formatDuration(verdict.delayMs)} (this was try ${attempt}/${tries})`)
  if (verdict.kind === 'fail') say(`A worker would fail it for good (this was try ${attempt}/${tries})`)
}

/** The error of anything but a good end. */
function errorOf(job: string, { outcome, ms }: RanHere): KhepriError {
  const cause = causeOf(outcome)
  const details = cause === undefined ? {} : { cause }
  return new KhepriError(
    codes[outcome.kind] ?? 'JOB_FAILED',
    `${job} ${fateOf(outcome)} after ${elapsed(ms)}${reasonOf(outcome)}`,
    details,
  )
}

const codes: Readonly<Partial<Record<Outcome['kind'], ErrorCode>>> = {
  refused: 'DATA_INVALID',
  unloadable: 'MODULE_BROKEN',
}

const causeOf = (outcome: Outcome): unknown => ('error' in outcome ? outcome.error : undefined)

function fateOf({ kind }: Outcome): string {
  if (kind === 'released') return 'asked to run later'
  return kind === 'interrupted' ? 'was interrupted' : 'failed'
}

function reasonOf(outcome: Outcome): string {
  if (outcome.kind === 'unloadable') return `: ${outcome.message}`
  const cause = causeOf(outcome)
  if (cause === undefined) return ''
  const { type, message } = describeError(cause)
  return `: ${type}: ${message}`
}

/** The same for programs. */
function documentOf({ id, job }: Reservation, { outcome, attempt, tries, ms }: RanHere): object {
  const cause = causeOf(outcome)
  return {
    ...{ id: id === 0 ? null : id, job, outcome: outcome.kind === 'threw' ? 'failed' : outcome.kind },
    ...{ attempt, tries, ms, error: cause === undefined ? null : describeError(cause) },
  }
}
