import { type Settings, settings } from './config-keys.ts'
import { KhepriError } from './errors.ts'
import { didYouMean } from './suggest.ts'

/** The variables of a process, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>

/** One variable that khepri reads, for `khepri help environment`. */
export interface EnvironmentVariable {
  readonly name: string
  readonly what: string
}

/** The flags of `work` that may come from KHEPRI_WORK_…: settings only, neither filters nor anything that acts on jobs. */
const workFlags: Readonly<Record<string, string>> = {
  queue: 'the queues, in strict order',
  concurrency: 'jobs at once',
  pool: 'queues with their jobs at once, such as mail:32,default:4',
  once: 'true: exactly one job',
  'stop-when-empty': 'true: stop when there is nothing to do',
  'max-jobs': 'stop after so many jobs',
  'max-time': 'stop after so long',
  'max-memory': 'stop when the process holds so much memory',
  sleep: 'the longest wait between two looks at an idle queue',
  rest: 'how long a slot rests after each job',
  'drain-timeout': 'how long a drain waits',
  timeout: 'bounds an attempt of jobs without their own',
  tries: 'tries of jobs without their own',
  backoff: 'backoff of jobs without their own',
  'retry-after': 'silence after which this worker is dead',
  unknown: 'what becomes of jobs without a handler: fail or wait',
  name: "this worker's name",
  'health-file': 'a file that says that the worker is well',
  'health-port': 'a port that says so over HTTP',
  log: 'which lines it writes: all, results, problems or none',
  'exit-code': 'true: exit 1 if a job failed',
  schedule: 'true: look after the schedules, too',
}

const upperSnake = (text: string): string =>
  text
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase()

const settingVariable = (key: string): string => `KHEPRI_${upperSnake(key)}`
const workVariable = (flag: string): string => `KHEPRI_WORK_${upperSnake(flag)}`

/** Every environment variable khepri reads; the list is closed. */
export const environmentVariables: readonly EnvironmentVariable[] = [
  { name: 'KHEPRI_CONFIG', what: 'the configuration file, as --config' },
  { name: 'KHEPRI_DATABASE_URL', what: 'the database, as --database' },
  ...Object.values(settings).map(({ key, meaning }) => ({ name: settingVariable(key), what: `${key}: ${meaning}` })),
  ...Object.entries(workFlags).map(([flag, meaning]) => ({
    name: workVariable(flag),
    what: `work --${flag}: ${meaning}`,
  })),
]

const knownVariables: readonly string[] = environmentVariables.map(({ name }) => name)

/**
 * One sentence about variables that look like khepri's and are read by nobody; null where there are none.
 *
 * KHEPRI_JOB_… is what a worker tells an executable, so those are never strange.
 */
export function unknownVariables(env: Environment): string | null {
  const strangers = Object.keys(env).filter(
    (name) => name.startsWith('KHEPRI_') && !name.startsWith('KHEPRI_JOB_') && !knownVariables.includes(name),
  )
  const [first] = strangers
  if (first === undefined) return null
  const verb = strangers.length === 1 ? 'is' : 'are'
  return `${strangers.join(', ')} ${verb} not read by khepri${didYouMean(first, knownVariables)}`
}

/** One variable's text; undefined where it is not set. Throws CONFIG_INVALID where it is set to nothing. */
export function readVariable(env: Environment, name: string): string | undefined {
  const text = env[name]
  if (text !== undefined && text.trim() === '')
    throw new KhepriError('CONFIG_INVALID', `${name} is set but empty`, { fix: `give it a value or unset it` })
  return text?.trim()
}

/** What the environment says about one setting, in the type that a config would have. */
export function readSetting(
  env: Environment,
  name: keyof Settings,
): { readonly variable: string; readonly value: unknown } | undefined {
  const variable = settingVariable(settings[name].key)
  const text = readVariable(env, variable)
  return text === undefined ? undefined : { variable, value: asConfigValue(name, text) }
}

const counts: ReadonlySet<keyof Settings> = new Set(['concurrency', 'tries', 'maxCrashes'])

function asConfigValue(name: keyof Settings, text: string): unknown {
  if (counts.has(name)) return /^\d+$/.test(text) ? Number(text) : text
  if (name === 'prepare' || name === 'ephemeral') return text === 'true' ? true : text === 'false' ? false : text
  return name === 'backoff' ? backoffFromText(text) : text
}

/** Reads backoff as one word of text: "10s", "10s,1m", "none" or "exponential"; the result is what a config would hold. */
function backoffFromText(text: string): unknown {
  if (/^(none|linear|exponential)$/.test(text)) return { kind: text }
  return text.includes(',') ? text.split(',').map((each) => each.trim()) : text
}

/** The values of KHEPRI_WORK_<FLAG>, by flag; the command line reads them as it reads its flags. */
export function readWorkFlags(env: Environment): Readonly<Record<string, string>> {
  const found = Object.keys(workFlags).map((flag) => [flag, readVariable(env, workVariable(flag))] as const)
  return Object.fromEntries(found.filter((each): each is readonly [string, string] => each[1] !== undefined))
}
