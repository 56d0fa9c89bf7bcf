import { systemClock } from '../core/clock.ts'
import { formatDuration } from '../core/duration.ts'
import type { NewJob } from '../core/store/store.ts'
import type { BulkOutcome } from './bulk-dispatch.ts'
import { elapsed } from './elapsed.ts'
import type { Output } from './output.ts'
import type { Rejects } from './rejects.ts'
import { count } from './words.ts'

/** What else there is to say about a dispatch. */
export interface DispatchFacts {
  readonly rejects: Rejects | null
  readonly isStream: boolean
  readonly areSeveral: boolean
  /** What was probably not meant. */
  readonly warnings: readonly string[]
  /** The command that runs what was dispatched. */
  readonly command: string
}

/** Says what a dispatch came to: ids on stdout, the rest on stderr. */
export class DispatchReport {
  readonly #output: Output
  readonly #startedAt = systemClock.monotonic()

  constructor(output: Output) {
    this.#output = output
  }

  /** The end of a dry run. */
  async checked(valid: number, rejects: Rejects | null): Promise<void> {
    if (this.#output.mode === 'json') return this.#output.document({ valid, rejected: rejects?.count ?? 0 })
    this.#output.say(`Checked ${count(valid, 'job')}, dispatched nothing${rejectedText(rejects, false)}`)
  }

  async dispatched(outcome: BulkOutcome, facts: DispatchFacts): Promise<void> {
    const ms = Math.round(systemClock.monotonic() - this.#startedAt)
    const ids = facts.isStream ? null : outcome.ids
    for (const warning of facts.warnings) this.#output.say(`warning: ${warning}`, 'yellow')
    if (this.#output.mode === 'json') return this.#document({ ...outcome, ids }, facts, ms)
    if (ids !== null && ids.length > 0) await this.#output.print(ids.join('\n'))
    const rest = `${duplicatesText(outcome)}${rejectedText(facts.rejects, facts.areSeveral)}`
    this.#output.say(
      ids === null
        ? `${amount(outcome, ms)}${rest}`
        : `${this.#whatWasDone(outcome)}${rest}${invitation(outcome, facts)}`,
    )
  }

  /** "Dispatched send-welcome on default" */
  #whatWasDone({ dispatched, first }: BulkOutcome): string {
    if (dispatched === 0) return 'Dispatched nothing'
    return dispatched === 1 && first !== null
      ? `Dispatched ${first.job} on ${first.queue}${this.#dueText(first)}${waitText(first)}`
      : `Dispatched ${count(dispatched, 'job')}`
  }

  #dueText({ due }: NewJob): string {
    if ('at' in due) return `, due at ${this.#output.moment(due.at)}`
    return due.delayMs === 0 ? '' : `, due in ${formatDuration(due.delayMs)}`
  }

  #document({ dispatched, duplicates, ids }: BulkOutcome, { rejects }: DispatchFacts, ms: number): Promise<void> {
    return this.#output.document({ dispatched, duplicates, rejected: rejects?.count ?? 0, ms, ids })
  }
}

const countedFrom = 1_000

/** "Dispatched 1,000,000 jobs in 7.6s (131,578/s)" */
function amount({ dispatched }: BulkOutcome, ms: number): string {
  const rate =
    dispatched < countedFrom ? '' : ` (${Math.round((dispatched * 1_000) / Math.max(ms, 1)).toLocaleString('en-US')}/s)`
  return `Dispatched ${count(dispatched, 'job')} in ${elapsed(ms)}${rate}`
}

function invitation({ dispatched }: BulkOutcome, { command }: DispatchFacts): string {
  if (dispatched === 0) return ''
  return `. Run ${dispatched === 1 ? 'it' : 'them'}: ${command}`
}

/** Said of what may be done by now as well: only the database knows. */
function waitText({ after = [] }: NewJob): string {
  return after.length === 0 ? '' : `, after ${after.length === 1 ? 'job' : 'jobs'} ${after.join(', ')}`
}

function duplicatesText({ duplicates }: BulkOutcome): string {
  if (duplicates.length === 0) return ''
  const [first] = duplicates
  return duplicates.length === 1
    ? `; job ${first} is live under the same unique key`
    : `; ${count(duplicates.length, 'job')} live already under the same unique keys`
}

function rejectedText(rejects: Rejects | null, areSeveral: boolean): string {
  if (rejects === null || rejects.count === 0) return ''
  const where = rejects.file === null ? '' : `, see ${rejects.file}`
  return `; ${count(rejects.count, 'line')} rejected${where} (first: ${rejects.first(areSeveral)})`
}
