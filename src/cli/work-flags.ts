import { parse } from '@oclif/core/parser'
import { isKhepriError, KhepriError } from '../core/errors.ts'
import type { WorkOptions } from '../core/work.ts'
import type { ValuesOf } from './base-command.ts'
import {
  backoffFlag,
  choiceFlag,
  countFlag,
  durationFlag,
  Flags,
  nameFlag,
  namesFlag,
  poolFlag,
  positiveDurationFlag,
  queueListFlag,
  retryAfterFlag,
  sizeFlag,
  textFlag,
} from './flags.ts'
import { logLevels } from './lines.ts'

/** The flags of `work`. */
export const workFlags = {
  queue: queueListFlag({ summary: 'queues in strict order; * for every queue of the store' }),
  concurrency: countFlag({ char: 'c', summary: 'jobs at once' }),
  pool: poolFlag({
    exclusive: ['queue', 'concurrency'],
    summary: 'queues in strict order, each with its jobs at once; instead of -q and -c',
  }),
  once: Flags.boolean({ summary: 'run exactly one job' }),
  'stop-when-empty': Flags.boolean({ summary: 'stop when there is nothing to do; what is delayed does not count' }),
  'max-jobs': countFlag({ summary: 'stop after so many jobs' }),
  'max-time': durationFlag({ helpValue: '1h', summary: 'stop after so long' }),
  'max-memory': sizeFlag({ summary: 'stop when this process holds so much memory' }),
  sleep: positiveDurationFlag({ helpValue: '1s', summary: 'the longest wait between two looks at an idle queue' }),
  rest: durationFlag({ helpValue: '0s', summary: 'how long a slot rests after each job' }),
  'drain-timeout': durationFlag({ summary: 'how long a stop waits for running jobs; without it as long as they take' }),
  timeout: positiveDurationFlag({ summary: 'bounds an attempt of jobs without a timeout of their own' }),
  tries: countFlag({ summary: 'how often jobs without tries of their own may run' }),
  backoff: backoffFlag({ summary: 'the wait before the next try, for jobs without a backoff of their own' }),
  'retry-after': retryAfterFlag({ summary: 'silence after which this worker is dead' }),
  unknown: choiceFlag(['fail', 'wait'])({ summary: 'what becomes of jobs that have no handler here' }),
  name: nameFlag({ summary: "this worker's name" }),
  job: namesFlag({ summary: 'run these jobs only' }),
  'except-job': namesFlag({ summary: 'leave these jobs to others' }),
  'health-file': textFlag({ helpValue: 'FILE', summary: 'keep a file that says whether this worker is well' }),
  'health-port': countFlag({ max: 65_535, helpValue: 'PORT', summary: 'answer over HTTP whether this worker is well' }),
  log: choiceFlag(logLevels)({
    summary:
      'lines that are written: all; results: not what jobs log; problems: retries, failures and faults only; none',
  }),
  'exit-code': Flags.boolean({
    summary: 'exit 1 if a job failed, 78 if a module cannot be loaded, 3 if --once found none',
  }),
  schedule: Flags.boolean({ summary: 'look after the schedules, too' }),
  migrate: Flags.boolean({ summary: 'apply missing migrations first' }),
}

/** What the flags of `work` said. */
export type WorkFlags = ValuesOf<typeof workFlags>

/**
 * Completes the flags with what KHEPRI_WORK_<FLAG> says; a flag on the command line outranks its variable.
 *
 * variables: text by flag. Throws USAGE that names the variable.
 */
export async function withEnvironment(
  flags: WorkFlags,
  variables: Readonly<Record<string, string>>,
): Promise<WorkFlags> {
  const given = flags as Readonly<Record<string, unknown>>
  const entries = Object.entries(variables).filter(([flag]) => given[flag] === undefined || given[flag] === false)
  const read = await Promise.all(entries.map(async ([flag, text]) => [flag, await readFlag(flag, text)] as const))
  return { ...flags, ...Object.fromEntries(read) }
}

async function readFlag(flag: string, text: string): Promise<unknown> {
  const shape = (workFlags as Readonly<Record<string, { readonly type: string }>>)[flag]
  const variable = `KHEPRI_WORK_${flag.replaceAll('-', '_').toUpperCase()}`
  if (shape?.type === 'boolean') return readBoolean(variable, text)
  try {
    const { flags } = (await parse([`--${flag}=${text}`], { flags: workFlags, args: {} } as never)) as {
      readonly flags: Readonly<Record<string, unknown>>
    }
    return flags[flag]
  } catch (error) {
    throw new KhepriError('USAGE', `${variable}: ${reasonOf(error, flag, text)}`, { cause: error })
  }
}

function readBoolean(variable: string, text: string): boolean {
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  throw new KhepriError('USAGE', `${variable} must be true or false, got ${JSON.stringify(text)}`)
}

/** oclif puts its own words around what a flag's parser throws, and speaks in colour of a word that is none of its choices. */
function reasonOf(error: unknown, flag: string, text: string): string {
  if (isKhepriError(error))
    return error.message.replace(/^Parsing --\S+ \n\t/, '').replace(/\nSee more help with --help$/, '')
  return `${JSON.stringify(text)} is no value for --${flag}`
}

/** The flags as the kernel takes them; what was not said is left to the configuration. */
export function workOptions(flags: WorkFlags): Partial<WorkOptions> {
  const { queue, pool } = flags
  const named = pool ? [...pool.keys()] : queue
  return given({
    queues: named === undefined || named === 'all' ? named : named.map((name) => [name]),
    concurrency: pool ? [...pool.values()].reduce((slots, limit) => slots + limit, 0) : flags.concurrency,
    queueLimits: pool,
    once: flags.once,
    stopWhenEmpty: flags['stop-when-empty'],
    maxJobs: flags['max-jobs'],
    maxTimeMs: flags['max-time'],
    sleepMs: flags.sleep,
    restMs: flags.rest,
    drainTimeoutMs: flags['drain-timeout'],
    timeoutMs: flags.timeout,
    tries: flags.tries,
    backoff: flags.backoff,
    retryAfterMs: flags['retry-after'],
    unknownJobs: flags.unknown,
    name: flags.name,
    only: flags.job,
    except: flags['except-job'],
    endsWhenBlocked: true,
  })
}

type Gappy<T> = { readonly [Key in keyof T]?: T[Key] | undefined }

function given(options: Gappy<WorkOptions>): Partial<WorkOptions> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<WorkOptions>
}
