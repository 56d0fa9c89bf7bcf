import { isRecord } from '../core/config-keys.ts'
import { defaults } from '../core/defaults.ts'
import { parseDuration } from '../core/duration.ts'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import { jsonTextOf } from '../core/json-value.ts'
import type { DeclaredSchedule } from '../core/schedules-setting.ts'
import type { Definition, Overlap } from '../core/store/schedule-store.ts'
import { checkWhole, type Terms } from '../core/terms.ts'
import { shown } from '../core/text.ts'
import { type Cadence, type CadenceInput, parseCadence } from './cadence.ts'
import { jitterOf } from './jitter.ts'

/** What becomes of slots at which nobody looked in time. A number: one run for each of so many of the last ones. */
export type Misfire = 'once' | 'skip' | number

/** A schedule with everything decided. */
export interface Schedule {
  readonly name: string
  readonly job: string
  /** JSON. */
  readonly payloadText: string
  /** They outrank the job's own. */
  readonly terms: Terms
  readonly cadence: Cadence
  /** What the cadence was read from. */
  readonly timing: CadenceInput
  /** How much later than its slots it is due. */
  readonly offsetMs: number
  readonly misfire: Misfire
  readonly overlap: Overlap
  readonly whilePaused: 'enqueue' | 'hold'
  readonly enabled: boolean
  readonly ephemeral: boolean
  readonly description: string | null
  /** What the store keeps of it. */
  readonly stored: Definition
}

/**
 * Decides everything about the schedules of a configuration.
 *
 * file: where they stand, for messages. Throws CONFIG_INVALID for what is invalid or can never fire.
 */
export function readSchedules(declared: readonly DeclaredSchedule[], file: string | null): readonly Schedule[] {
  return declared.map((schedule) => {
    try {
      return readSchedule(schedule)
    } catch (error) {
      throw isKhepriError(error) ? refused(schedule.name, error, file) : error
    }
  })
}

function refused(name: string, error: KhepriError, file: string | null): KhepriError {
  const ways = [error.fix, file === null ? undefined : `edit ${file}`].filter((way) => way !== undefined)
  const fix = ways.length === 0 ? {} : { fix: ways.join('; ') }
  return new KhepriError('CONFIG_INVALID', `schedules.${name}: ${error.message}`, { ...fix, cause: error })
}

function readSchedule({ name, job, terms, given }: DeclaredSchedule): Schedule {
  const { cron, every, dailyAt, zone, payload, jitter, description } = given
  // What is no text is refused by the cadence itself.
  const timing = { cron, every, dailyAt, zone } as CadenceInput
  const cadence = parseCadence(timing)
  const misfire = parseMisfire(given.misfire)
  const schedule = {
    ...{ name, job, terms, timing, cadence, misfire },
    payloadText: payload === undefined ? '{}' : jsonTextOf(payload),
    offsetMs: jitter === undefined ? 0 : jitterOf(name, parseDuration(jitter, 'jitter', defaults.maxDelayMs)),
    overlap: oneOf(given.overlap, 'overlap', overlaps, typeof misfire === 'number' ? 'allow' : 'skip'),
    whilePaused: oneOf(given.whilePaused, 'whilePaused', ['enqueue', 'hold'] as const, 'enqueue'),
    enabled: oneOf(given.enabled, 'enabled', [true, false] as const, true),
    ephemeral: oneOf(given.ephemeral, 'ephemeral', [true, false] as const, false),
    description: description === undefined ? null : checkText(description, 'description'),
  }
  return { ...schedule, stored: definitionOf(schedule) }
}

/**
 * Throws CONFIG_INVALID where schedules in memory would fire once in each process of a production.
 *
 * environment: NODE_ENV.
 */
export function refuseInMemory(schedules: readonly Schedule[], environment: string | undefined): void {
  const lone = schedules.find(({ enabled, ephemeral }) => enabled && !ephemeral)
  if (environment !== 'production' || lone === undefined) return
  throw new KhepriError(
    'CONFIG_INVALID',
    `schedules.${lone.name} is in memory, and this is production: every process would fire its own`,
    { fix: 'use SQLite or Postgres; or say ephemeral: true, where that is what you want' },
  )
}

const overlaps: readonly Overlap[] = ['skip', 'allow', 'queue']

function parseMisfire(value: unknown): Misfire {
  if (value === undefined) return 'once'
  if (value === 'once' || value === 'skip') return value
  if (isRecord(value) && Object.keys(value).join() === 'catchUp')
    return checkWhole(value.catchUp, 'misfire.catchUp', { least: 1, most: defaults.mostCaughtUp })
  throw invalid('misfire', '"once", "skip" or { catchUp: n }', value)
}

function oneOf<T>(value: unknown, what: string, choices: readonly T[], otherwise: T): T {
  if (value === undefined) return otherwise
  const known = choices.find((choice) => choice === value)
  if (known === undefined) throw invalid(what, choices.map(shown).join(' or '), value)
  return known
}

function checkText(value: unknown, what: string): string {
  if (typeof value !== 'string') throw invalid(what, 'a text', value)
  return value
}

/** Compared as text by processes that may run different versions of the configuration: always in the same order. */
function definitionOf({ cadence, ...schedule }: Omit<Schedule, 'stored'>): Definition {
  const { name, job, payloadText, terms, offsetMs, misfire, overlap, whilePaused, enabled } = schedule
  const when = enabled ? `${cadence.text} ${cadence.zone}${offsetMs === 0 ? '' : ` +${offsetMs}ms`}` : ''
  const sorted = Object.fromEntries(Object.entries(terms).sort(([a], [b]) => (a < b ? -1 : 1)))
  const what = { when, job, payload: payloadText, terms: sorted, misfire, overlap, whilePaused }
  return { name, definition: JSON.stringify(what), cadence: when }
}

const invalid = (what: string, wanted: string, got: unknown): KhepriError =>
  new KhepriError('DATA_INVALID', `${what} must be ${wanted}, got ${shown(got)}`)
