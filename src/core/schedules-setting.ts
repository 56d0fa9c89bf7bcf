import { isRecord, refuseUnknownKeys } from './config-keys.ts'
import type { DurationInput } from './duration.ts'
import { KhepriError } from './errors.ts'
import { type ExecutableInput, parseExecutable } from './executable.ts'
import type { JobFunction, JobTerms } from './job.ts'
import type { JobsEntry } from './jobs-setting.ts'
import { checkName, parseTerms, type Terms, termKeys } from './terms.ts'
import { shown } from './text.ts'

/** A schedule as users write it: what runs, when, and what becomes of slots that come at a bad time. */
export interface ScheduleInput extends JobTerms, Partial<Pick<ExecutableInput, 'exec' | 'args' | 'cwd' | 'env'>> {
  /** A job of `jobs`. For the simplest cases, instead of it: `handle`, or `exec` as for an executable. */
  readonly job?: string
  readonly handle?: JobFunction
  /** What the job gets; {} unless given. */
  readonly payload?: unknown
  /** Five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. */
  readonly cron?: string
  /** Instead of `cron`: an interval. Its slots are its multiples since 1970-01-01T00:00Z. */
  readonly every?: DurationInput
  /** Instead of `cron`: a time of the day such as "02:30". */
  readonly dailyAt?: string
  /** An IANA time zone; UTC unless given. */
  readonly zone?: string
  /** What becomes of slots at which nobody looked: one run for all of them (the default), none, or one for each of the last n. */
  readonly misfire?: 'once' | 'skip' | { readonly catchUp: number }
  /** What becomes of a run while an earlier one waits or runs. `skip` unless given, with `catchUp` `allow`. */
  readonly overlap?: 'allow' | 'skip' | 'queue'
  /** What becomes of slots while the job's queue is paused: enqueued (the default), or held back until it goes on. */
  readonly whilePaused?: 'enqueue' | 'hold'
  /** Every slot is late by the same part of this duration, which follows from the name. */
  readonly jitter?: DurationInput
  /** False: listed, and never due. */
  readonly enabled?: boolean
  /** Allows it in memory in production, where every process fires its own. */
  readonly ephemeral?: boolean
  /** For people. */
  readonly description?: string
}

/** One schedule of a configuration, as far as every command has to know it; the layer of schedules reads the rest. */
export interface DeclaredSchedule {
  readonly name: string
  /** The job that it runs; the schedule's own name where it brings its handler. */
  readonly job: string
  readonly terms: Terms
  readonly given: Readonly<Record<string, unknown>>
}

/** What brings a handler of its own. */
const commandKeys = ['exec', 'args', 'cwd', 'env'] as const
const timingKeys = ['cron', 'every', 'dailyAt', 'zone'] as const
const policyKeys = ['misfire', 'overlap', 'whilePaused', 'jitter', 'enabled', 'ephemeral', 'description'] as const

/** Every key that a schedule may have. */
const scheduleKeys: readonly string[] = [
  ...['job', 'handle', 'payload'],
  ...commandKeys,
  ...timingKeys,
  ...policyKeys,
  ...termKeys,
]

/** Reads the setting `schedules`; what the layer of schedules reads is only looked at for its keys. Throws CONFIG_INVALID. */
export function parseSchedules(value: unknown): readonly DeclaredSchedule[] {
  if (value === undefined) return []
  if (!isRecord(value))
    throw invalid('schedules', "an object such as { nightly: { job: 'report', cron: '0 2 * * *' } }", value)
  return Object.entries(value).map(([name, given]) => parseSchedule(name, given))
}

function parseSchedule(name: string, given: unknown): DeclaredSchedule {
  const what = `schedules.${checkName(name, 'a name in schedules')}`
  if (!isRecord(given)) throw invalid(what, 'an object with a job and cron, every or dailyAt', given)
  refuseUnknownKeys(given, scheduleKeys, what)
  return { name, job: jobOf(name, given, what), terms: parseTerms(given, what), given }
}

/** Exactly one thing says what runs. */
function jobOf(name: string, given: Readonly<Record<string, unknown>>, what: string): string {
  const runs = (['job', 'handle', 'exec'] as const).filter((key) => given[key] !== undefined)
  if (runs.length !== 1)
    throw new KhepriError('CONFIG_INVALID', `${what} needs job, handle or exec, got ${runs.join(' and ') || 'none'}`, {
      fix: 'give exactly one of the three',
    })
  const stray = given.exec === undefined ? commandKeys.find((key) => given[key] !== undefined) : undefined
  if (stray !== undefined)
    throw new KhepriError('CONFIG_INVALID', `${what}.${stray} is for executables, and there is no exec`)
  if (given.exec !== undefined) parseExecutable(commandIn(given), what)
  if (given.handle !== undefined && typeof given.handle !== 'function')
    throw invalid(`${what}.handle`, 'a function', given.handle)
  return given.job === undefined ? name : checkName(given.job, `${what}.job`)
}

/** The handlers that schedules bring, as jobs under the schedules' names. */
export function jobsIn(schedules: readonly DeclaredSchedule[]): readonly JobsEntry[] {
  const entries = schedules.flatMap(({ name, given }) => {
    if (given.handle !== undefined) return [[name, given.handle] as const]
    return given.exec === undefined ? [] : [[name, commandIn(given)] as const]
  })
  return entries.length === 0 ? [] : [{ kind: 'map', entries }]
}

function commandIn(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(commandKeys.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]])))
}

const invalid = (what: string, wanted: string, got: unknown): KhepriError =>
  new KhepriError('CONFIG_INVALID', `${what} must be ${wanted}, got ${shown(got)}`)
