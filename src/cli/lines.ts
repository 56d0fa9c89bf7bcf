import { formatDuration } from '../core/duration.ts'
import type { ErrorFacts, Events, JobFacts } from '../core/events.ts'
import { oneLine } from '../core/text.ts'
import { elapsed } from './elapsed.ts'
import { reasonWord } from './fail-reason.ts'
import { jsonText } from './output.ts'
import { count } from './words.ts'

/** How much of a worker's life is shown. */
export const logLevels = ['all', 'results', 'problems', 'none'] as const
export type LogLevel = (typeof logLevels)[number]

type Level = 'info' | 'warn' | 'error'

/** Ordered: a log level shows its own weight and what is heavier. */
const weights = { trace: 0, note: 1, result: 2, problem: 3 } as const
type Weight = keyof typeof weights
const threshold: Readonly<Record<LogLevel, number>> = {
  all: weights.trace,
  results: weights.result,
  problems: weights.problem,
  none: 4,
}

/** key=value pairs of a line in a pipe. */
type Fields = Readonly<Record<string, string | number>>

interface Common {
  readonly level: Level
  readonly weight: Weight
}

/** A line about one attempt: a verb, and what people and programs read after it. */
interface JobLine<Event> extends Common {
  readonly verb: string
  /** What follows the verb at a terminal, in parts. */
  readonly words?: (event: Event) => readonly string[]
  readonly fields?: (event: Event) => Fields
}

/** A sentence about the worker, or about something that has no result; null where there is nothing to say. */
interface Sentence<Event> extends Common {
  readonly stream: 'out' | 'err'
  readonly text: (event: Event, worker: WorkerFacts) => string | null
}

/** An event that only programs hear. */
interface Silent extends Common {
  readonly silent: true
}

type Entry<Event> = (Event extends JobFacts ? JobLine<Event> : never) | Sentence<Event> | Silent

/** What the lines say about the worker that no event carries. */
export interface WorkerFacts {
  readonly version: string
  readonly database: string
}

/** Every event of the kernel, and the line that shows it. */
const table: { readonly [Name in keyof Events]: Entry<Events[Name]> } = {
  'worker.started': { level: 'info', weight: 'result', stream: 'out', text: banner },
  'worker.draining': { level: 'info', weight: 'result', stream: 'err', text: stopping },
  'worker.aborting': {
    level: 'warn',
    weight: 'result',
    stream: 'err',
    text: ({ running }) =>
      running === 0
        ? null
        : `abandoning ${count(running, 'job')}: ${running === 1 ? 'its signal is' : 'their signals are'} aborted, what has not ended in 5s is given back`,
  },
  'worker.stopped': { level: 'info', weight: 'result', stream: 'out', text: summary },
  'store.lost': {
    level: 'warn',
    weight: 'problem',
    stream: 'err',
    text: ({ message }) => `store lost: ${message}; trying again until it is back`,
  },
  'store.back': {
    level: 'info',
    weight: 'problem',
    stream: 'err',
    text: ({ outageMs }) => `store back after ${formatDuration(outageMs)}`,
  },
  'workers.dead': {
    level: 'warn',
    weight: 'problem',
    stream: 'err',
    text: ({ count: dead, freed }) => `found ${count(dead, 'dead worker')}: freed ${count(freed, 'job')}`,
  },
  'worker.busy': {
    level: 'info',
    weight: 'result',
    stream: 'err',
    text: ({ jobs }) =>
      `still running: ${jobs.map(({ id, job, ms }) => `${id} ${job} for ${formatDuration(ms)}`).join(', ')}`,
  },
  'worker.blocked': {
    level: 'error',
    weight: 'problem',
    stream: 'err',
    text: ({ jobs }) => `the event loop was blocked past the timeout of job ${jobs.join(', ')}`,
  },
  'envelopes.newer': {
    level: 'warn',
    weight: 'problem',
    stream: 'err',
    text: () => 'jobs of a newer khepri wait here; they are left to newer workers',
  },
  'rows.bad': {
    level: 'error',
    weight: 'problem',
    stream: 'err',
    text: ({ jobs }) =>
      `the row of job ${jobs.join(', ')} is bad: the database refuses to change it, or a column holds what is no number; it stays as it is`,
  },
  'module.broken': {
    level: 'error',
    weight: 'problem',
    stream: 'err',
    text: ({ job, source, message }) =>
      `cannot load ${job} from ${source}: ${message}; its jobs go back and this worker leaves them to others`,
  },
  'schedule.fired': {
    level: 'info',
    weight: 'result',
    stream: 'out',
    text: ({ schedule, slot, id, job, queue }) =>
      `FIRED ${word(schedule)} job=${id} ${word(job)} queue=${word(queue)} slot=${new Date(slot).toISOString()}`,
  },
  'schedule.misfired': {
    level: 'warn',
    weight: 'problem',
    stream: 'err',
    text: ({ schedule, slot, missed, runs }) =>
      `schedule ${word(schedule)}: nobody looked in time at ${count(missed, 'slot')} up to ${new Date(slot).toISOString()}; ${runs === 0 ? 'passed over' : `made up for by ${count(runs, 'run')}`}`,
  },
  'schedule.skipped': {
    level: 'warn',
    weight: 'result',
    stream: 'err',
    text: ({ schedule, slot }) =>
      `schedule ${word(schedule)}: skipped ${new Date(slot).toISOString()}, the run before it has not ended`,
  },
  'schedule.waiting': {
    level: 'info',
    weight: 'result',
    stream: 'err',
    text: ({ schedule, slot }) =>
      `schedule ${word(schedule)}: ${new Date(slot).toISOString()} waits for the run before it to end`,
  },
  'schedule.failed': {
    level: 'error',
    weight: 'problem',
    stream: 'err',
    text: ({ schedule, error }) => `schedule ${word(schedule)} cannot fire: ${error.message}`,
  },
  'schedule.outdated': {
    level: 'warn',
    weight: 'problem',
    stream: 'err',
    text: ({ schedule }) =>
      `schedule ${word(schedule)} is defined otherwise by a process that began later; it is left to that one`,
  },
  'job.enqueued': { level: 'info', weight: 'trace', silent: true },
  'job.started': { level: 'info', weight: 'trace', silent: true },
  'job.done': { level: 'info', weight: 'result', verb: 'DONE' },
  'job.retry': {
    level: 'warn',
    weight: 'problem',
    verb: 'RETRY',
    words: ({ delayMs, error }) => [`in ${formatDuration(delayMs)}`, error.message],
    fields: ({ delayMs, error }) => ({ in: formatDuration(delayMs), error: error.message }),
  },
  'job.failed': {
    level: 'error',
    weight: 'problem',
    verb: 'FAILED',
    words: ({ error }) => [error.message],
    fields: ({ reason, error }) => ({ reason: reasonWord(reason), error: error.message }),
  },
  'job.released': {
    level: 'info',
    weight: 'result',
    verb: 'RELEASED',
    words: ({ delayMs, why }) => [
      delayMs === null ? released[why] : `${released[why]}, again in ${formatDuration(delayMs)}`,
    ],
    fields: ({ delayMs, why }) => ({ why, ...(delayMs === null ? {} : { in: formatDuration(delayMs) }) }),
  },
  'job.cancelled': { level: 'info', weight: 'result', verb: 'CANCELLED' },
  'job.lost': {
    level: 'warn',
    weight: 'problem',
    verb: 'LOST',
    words: () => ['another worker holds it by now; this result was refused'],
  },
  'job.stuck': {
    level: 'warn',
    weight: 'problem',
    verb: 'STUCK',
    words: () => ['it ignores its abort signal; its slot stays busy'],
  },
  'job.log': {
    level: 'info',
    weight: 'note',
    verb: 'LOG',
    words: ({ text }) => [text],
    fields: ({ text }) => ({ text }),
  },
  'hook.failed': {
    level: 'error',
    weight: 'problem',
    verb: 'HOOK',
    words: hookWords,
    fields: ({ error }) => ({ error: error.message }),
  },
  'error.late': {
    level: 'error',
    weight: 'problem',
    verb: 'LATE',
    words: ({ error }) => [`thrown after the job had ended: ${error.message}`],
    fields: ({ error }) => ({ error: error.message }),
  },
}

const released = {
  asked: 'asked to run later',
  interrupted: 'interrupted by the stop',
  module: 'its module cannot be loaded here',
} as const

function hookWords({ error }: Events['hook.failed']): readonly string[] {
  return [`failed() itself failed: ${error.message}`]
}

function banner({ worker, queues, concurrency }: Events['worker.started'], { version, database }: WorkerFacts): string {
  return `khepri ${version}  worker ${worker}  queues ${queues}  concurrency ${concurrency}  ${database}    Ctrl-C stops gently`
}

function stopping({ reason, running }: Events['worker.draining']): string | null {
  if (running === 0 || reason === 'once' || reason === 'empty') return null
  const waits = `waiting for ${count(running, 'job')}`
  return reason === 'signal'
    ? `stopping: ${waits} (Ctrl-C again to abandon them)`
    : `stopping${causes[reason] ?? ''}: ${waits}`
}

/** Why a worker stops, where the person watching did not ask for it. */
const causes: Readonly<Partial<Record<Events['worker.draining']['reason'], string>>> = {
  'max-jobs': ' at --max-jobs',
  'max-time': ' at --max-time',
  'max-memory': ' at --max-memory',
  restart: ' as khepri restart asks',
  output: ' because nobody reads the output any more',
  parent: ' because the npm that started this worker is gone',
  uncaught: ' after an uncaught error',
  stuck: ' because every slot is stuck',
  modules: ' because no job module can be loaded',
}

function summary({ done, retried, failed, ms, ...rest }: Events['worker.stopped']): string {
  const seldom = (['cancelled', 'released', 'lost'] as const).filter((ending) => rest[ending] > 0)
  const more = seldom.map((ending) => `, ${rest[ending]} ${ending}`).join('')
  return `stopped: ${done} done, ${retried} retried, ${failed} failed${more} in ${elapsed(ms)}`
}

/** One event, ready to be written in any form. */
export type Shown =
  | {
      readonly kind: 'job'
      readonly level: Level
      readonly verb: string
      readonly facts: JobFacts
      readonly ms: number | null
      readonly words: readonly string[]
      readonly fields: Fields
    }
  | { readonly kind: 'sentence'; readonly level: Level; readonly stream: 'out' | 'err'; readonly text: string }

/** Tells whether a log level shows this event at all. */
export function isShown(name: keyof Events, log: LogLevel): boolean {
  return weights[table[name].weight] >= threshold[log]
}

/** Tells whether an event is a problem, whatever the log level. */
export const isProblem = (name: keyof Events): boolean => weights[table[name].weight] === weights.problem

/** Puts an event into words; null where people need not hear of it. Every text is cleaned: one line, nothing a terminal obeys. */
export function describe<Name extends keyof Events>(
  name: Name,
  event: Events[Name],
  worker: WorkerFacts,
): Shown | null {
  const entry = table[name] as unknown as Silent | Sentence<Events[Name]> | JobLine<JobFacts>
  if ('silent' in entry) return null
  if ('text' in entry) {
    const text = entry.text(event, worker)
    return text === null ? null : { kind: 'sentence', level: entry.level, stream: entry.stream, text: oneLine(text) }
  }
  return describeJob(entry, event as JobFacts & { readonly ms?: number })
}

function describeJob(line: JobLine<JobFacts>, event: JobFacts & { readonly ms?: number }): Shown {
  const facts = {
    id: event.id,
    job: oneLine(event.job),
    queue: oneLine(event.queue),
    attempt: event.attempt,
    tries: event.tries,
  }
  const words = (line.words?.(event) ?? []).map(oneLine)
  return {
    kind: 'job',
    level: line.level,
    verb: line.verb,
    facts,
    ms: event.ms ?? null,
    words,
    fields: line.fields?.(event) ?? {},
  }
}

/** A line for a pipe: ISO time, verb second, then the job and key=value pairs. */
export function pipeLine(shown: Shown, at: number): string {
  return `${new Date(at).toISOString()} ${plain(shown)}`
}

const priorities: Readonly<Record<Level, number>> = { error: 3, warn: 4, info: 6 }

/** A line for the journal, which has its own clock: the priority in front, no time. */
export function journalLine(shown: Shown): string {
  return `<${priorities[shown.level]}>${plain(shown)}`
}

function plain(shown: Shown): string {
  if (shown.kind === 'sentence') return shown.text
  const { verb, facts, ms, fields } = shown
  const head = `${verb} ${facts.id} ${word(facts.job)} queue=${word(facts.queue)} try=${facts.attempt}/${facts.tries}`
  const pairs = Object.entries({ ...(ms === null ? {} : { ms: Math.round(ms) }), ...fields })
  return [head, ...pairs.map(([key, value]) => `${key}=${word(value)}`)].join(' ')
}

/** A value as it stands in a line of words: quoted where it would otherwise end early or begin something else. */
function word(value: string | number): string {
  const text = oneLine(String(value))
  return /^[^\s"=\\]+$/.test(text) ? text : JSON.stringify(text)
}

/** A line of NDJSON: the event whole, its errors as type and message (and stack where asked for). */
export function jsonLine<Name extends keyof Events>(
  name: Name,
  event: Events[Name],
  about: { readonly at: number; readonly worker: string; readonly stacks: boolean },
): string {
  const { level } = table[name]
  const { error, ...rest } = spelled(name, event) as { readonly error?: ErrorFacts }
  const line = {
    time: new Date(about.at).toISOString(),
    level,
    event: name,
    ...ordered(rest),
    ...(error && { error: errorOf(error, about.stacks) }),
    worker: about.worker,
  }
  return jsonText(line)
}

/** Reasons as the other forms say them. */
function spelled(name: keyof Events, event: object): object {
  if (name !== 'job.failed') return event
  return { ...event, reason: reasonWord((event as Events['job.failed']).reason) }
}

/** The same order of keys for every event about a job, whoever emitted it. */
function ordered(event: object): object {
  if (!('attempt' in event)) return event
  const { id, job, queue, attempt, tries, ms, ...rest } = event as JobFacts & { readonly ms?: number }
  return { id, job, queue, attempt, tries, ...(ms === undefined ? {} : { ms: Math.round(ms) }), ...rest }
}

const errorOf = ({ type, message, stack }: ErrorFacts, stacks: boolean): object =>
  stacks ? { type, message, stack } : { type, message }
