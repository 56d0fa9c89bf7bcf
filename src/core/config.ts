import { dirname, resolve } from 'node:path'
import type { BackoffInput } from './backoff.ts'
import { findConfigFile, readConfigFile } from './config-file.ts'
import {
  configKeys,
  type DeclaredQueue,
  isRecord,
  parseQueues,
  type Role,
  refuseUnknownKeys,
  type Settings,
  settings,
} from './config-keys.ts'
import { type DatabaseLocation, parseDatabase } from './database-url.ts'
import { defaults } from './defaults.ts'
import type { DurationInput } from './duration.ts'
import { type Environment, readSetting, readVariable, readWorkFlags } from './environment.ts'
import { isKhepriError, KhepriError } from './errors.ts'
import type { ExecutableInput } from './executable.ts'
import type { HandlerSource } from './handler.ts'
import type { JobClass, JobDefinition, JobFunction, JobTerms } from './job.ts'
import { type JobsEntry, parseJobs } from './jobs-setting.ts'
import { type DeclaredSchedule, jobsIn, parseSchedules, type ScheduleInput } from './schedules-setting.ts'
import type { OpenScope } from './scope.ts'
import { type TableNames, tableNames } from './store/names.ts'
import { shown } from './text.ts'

/** What a map of jobs may hold for a name: a module, with or without terms, a command, or the handler itself. */
type JobEntryInput =
  | string
  | ({ readonly module: string } & JobTerms)
  | ExecutableInput
  // biome-ignore lint/suspicious/noExplicitAny: a definition of any payload; `unknown` would refuse the typed ones
  | JobDefinition<any>
  | JobClass
  | JobFunction
  | HandlerSource

/** A map of jobs, a folder, or a list of both. */
type JobsInput =
  | string
  | Readonly<Record<string, JobEntryInput>>
  | readonly (string | Readonly<Record<string, JobEntryInput>>)[]

/** A configuration as users write it. Every key is optional; durations carry a unit, a bare number is seconds. */
export interface ConfigInput {
  /** undefined is allowed for the sake of `process.env`, and refused when it is read. */
  readonly database?: string | undefined
  readonly table?: string
  readonly failedTable?: string
  readonly schema?: string | undefined
  readonly queue?: string
  readonly queues?: Readonly<Record<string, { readonly concurrency?: number }>> | undefined
  readonly concurrency?: number
  readonly retryAfter?: DurationInput
  readonly sleep?: DurationInput
  readonly timeout?: DurationInput | undefined
  readonly tries?: number
  readonly backoff?: BackoffInput
  readonly maxCrashes?: number
  readonly unknownJobs?: 'fail' | 'wait'
  readonly maxPayload?: string | number
  readonly keepDone?: DurationInput | undefined
  readonly keepFailed?: DurationInput | undefined
  readonly keepCancelled?: DurationInput
  readonly prepare?: boolean
  readonly role?: Role
  readonly ephemeral?: boolean
  readonly jobs?: JobsInput
  readonly schedules?: Readonly<Record<string, ScheduleInput>> | undefined
  /** Builds what one run of a job needs for itself; see `OpenScope`. */
  readonly scope?: OpenScope | undefined
}

/** A configuration with everything decided; the job modules are named in it and not loaded. */
export interface Config extends Settings {
  /** The file it came from. */
  readonly file: string | null
  /** The folder that its paths start from. */
  readonly root: string
  readonly database: DatabaseLocation
  readonly names: TableNames
  readonly queues: readonly DeclaredQueue[] | null
  readonly jobs: readonly JobsEntry[]
  readonly schedules: readonly DeclaredSchedule[]
  /** null: there is none. */
  readonly scope: OpenScope | null
  /** The values of KHEPRI_WORK_<FLAG>, by flag, for the command line to read. */
  readonly work: Readonly<Record<string, string>>
}

/** The settings that every command takes as flags. */
interface ConfigFlags {
  readonly config?: string | undefined
  readonly database?: string | undefined
}

/** What the command line knows before there is a configuration. */
export interface ConfigSources {
  readonly cwd: string
  readonly flags: ConfigFlags
  readonly env: Environment
}

/** Where a configuration was found and what stands above it. */
export interface ConfigPlace {
  readonly root: string
  readonly file: string | null
  readonly env: Environment
  readonly flags: ConfigFlags
  /** What a relative path in --database starts from, as every path on a command line does; `root` where it is not given. */
  readonly cwd?: string
}

/** Gives a configuration its types; the result is the argument. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config
}

/**
 * Finds, reads and resolves the configuration of a folder; without one everything has its default and paths start there.
 *
 * Throws CONFIG_MISSING, CONFIG_UNSAFE, CONFIG_INVALID, MODULE_BROKEN, or USAGE for a flag.
 */
export async function loadConfig({ cwd, flags, env }: ConfigSources): Promise<Config> {
  const named = flags.config ?? readVariable(env, 'KHEPRI_CONFIG')
  const file = named === undefined ? findConfigFile(cwd) : resolve(cwd, named)
  const input = file === null ? {} : await readConfigFile(file, cwd)
  return resolveConfig(input, { root: file === null ? cwd : dirname(file), file, env, flags, cwd })
}

/**
 * Checks a configuration and decides every setting: flag, then environment, then config, then default.
 *
 * Throws CONFIG_INVALID with the path of the first value that is not right, or USAGE for a flag.
 */
export function resolveConfig(input: ConfigInput, place: ConfigPlace): Config {
  const given: Readonly<Record<string, unknown>> = readTopLevel(input, place)
  const resolved = resolveSettings(given, place)
  const database = resolveDatabase(given, place)
  if (database.kind !== 'postgres') refuseSchema(given, place)
  const schedules = inConfig(place, () => parseSchedules(given.schedules))
  return Object.freeze({
    ...resolved,
    file: place.file,
    root: place.root,
    database,
    names: inConfig(place, () => tableNames(resolved.table, resolved.failedTable)),
    queues: given.queues === undefined ? null : inConfig(place, () => parseQueues(given.queues)),
    jobs: [...inConfig(place, () => parseJobs(given.jobs, place)), ...jobsIn(schedules)],
    schedules,
    scope: inConfig(place, () => checkScope(given.scope)),
    work: readWorkFlags(place.env),
  })
}

function readTopLevel(input: unknown, place: ConfigPlace): Readonly<Record<string, unknown>> {
  if (!isRecord(input)) throw new KhepriError('CONFIG_INVALID', 'a configuration must be an object')
  inConfig(place, () => refuseUnknownKeys(input, configKeys, ''))
  return input
}

function resolveSettings(given: Readonly<Record<string, unknown>>, place: ConfigPlace): Settings {
  const resolved = Object.keys(settings).map((name) => [name, resolveSetting(name as keyof Settings, given, place)])
  return Object.fromEntries(resolved) as Settings
}

function resolveSetting(name: keyof Settings, given: Readonly<Record<string, unknown>>, place: ConfigPlace): unknown {
  const { key, parse, otherwise } = settings[name]
  const set = readSetting(place.env, name)
  if (set !== undefined) return inEnvironment(set.variable, () => parse(set.value, set.variable))
  return given[key] === undefined ? otherwise : inConfig(place, () => parse(given[key], key))
}

function resolveDatabase(given: Readonly<Record<string, unknown>>, place: ConfigPlace): DatabaseLocation {
  const { flags, env, root } = place
  if (flags.database !== undefined) {
    const { database } = flags
    return as('USAGE', undefined, () => parseDatabase(database, '--database', place.cwd ?? root))
  }
  const variable = readVariable(env, 'KHEPRI_DATABASE_URL')
  if (variable !== undefined) return parseDatabase(variable, 'KHEPRI_DATABASE_URL', root)
  // A variable that was forgotten must not put jobs into a file that nobody looks at.
  if ('database' in given && given.database === undefined)
    throw new KhepriError('CONFIG_INVALID', 'database is given and is undefined', {
      fix: `set the variable that it comes from, or leave database out for ${defaults.database}`,
    })
  return inConfig(place, () => parseDatabase(given.database ?? defaults.database, 'database', root))
}

function checkScope(scope: unknown): OpenScope | null {
  if (scope === undefined) return null
  if (typeof scope === 'function') return scope as OpenScope
  throw new KhepriError('CONFIG_INVALID', `scope must be a function, got ${shown(scope)}`)
}

/** A configuration that names both would look as if its installations were apart. Another database may stand above it. */
function refuseSchema({ schema }: Readonly<Record<string, unknown>>, { file, flags, env }: ConfigPlace): void {
  const isOwnDatabase = flags.database === undefined && readVariable(env, 'KHEPRI_DATABASE_URL') === undefined
  if (schema === undefined || !isOwnDatabase) return
  throw new KhepriError('CONFIG_INVALID', 'schema is for Postgres only, and the database is none', {
    fix: `use table and failedTable to keep installations apart${file === null ? '' : ` in ${file}`}`,
  })
}

const inConfig = <T>({ file }: ConfigPlace, read: () => T): T =>
  as('CONFIG_INVALID', file === null ? undefined : `edit ${file}`, read)
const inEnvironment = <T>(variable: string, read: () => T): T =>
  as('CONFIG_INVALID', `change or unset ${variable}`, read)

/** The checks are shared with job files; here their verdict has another code, and a way out where they know none. */
function as<T>(code: 'CONFIG_INVALID' | 'USAGE', fix: string | undefined, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!isKhepriError(error) || (error.code !== 'DATA_INVALID' && error.code !== 'CONFIG_INVALID')) throw error
    const ways = [error.fix, fix].filter((way) => way !== undefined)
    throw new KhepriError(code, error.message, ways.length === 0 ? {} : { fix: ways.join('; ') })
  }
}
