import { diedAt, drainedAt, type Evidence, type Run } from './evidence.ts'
import { type Client, foundNothing, type WorkerProcess } from './history.ts'
import { told } from './second-starts.ts'
import type { Violation } from './violation.ts'

/** Promises 4, 10 and 12 as far as they speak of processes: how they end, and what they say. */
export function judgeProcesses(evidence: Evidence): Violation[] {
  const runs = Map.groupBy(
    evidence.stories.flatMap((story) => story.runs),
    ({ worker }) => worker,
  )
  const { workers, clients, timing } = evidence.history
  return [
    ...workers.flatMap((worker) => judgeEnd(worker, runs.get(worker) ?? [])),
    ...workers.flatMap((worker) => judgeDrain(worker, runs.get(worker) ?? [], timing.slackMs)),
    ...clients.flatMap(judgeClient),
    ...[...workers, ...clients].flatMap(judgeText),
  ]
}

/** A worker ends because it was told to, because it was killed, or because a job killed it; and never with an error. */
function judgeEnd(worker: WorkerProcess, runs: readonly Run[]): Violation[] {
  const { name, code, signal, signals, argv } = worker
  const wasKilled = signals.some((sent) => sent.signal === signal)
  const killedItself = signal === 'SIGKILL' && runs.some(({ outcome }) => outcome === 'crashed')
  if (signal !== null && (wasKilled || killedItself)) return []
  const stopsByItself = argv.some((word) => /^--(once|stop-when-empty|max-)/.test(word))
  if (code === 0 && (drainedAt(worker) !== null || stopsByItself)) return []
  const promise = drainedAt(worker) === null ? 'fenced' : 'graceful'
  const sent = signals.map((each) => each.signal).join(', ') || 'no signal'
  return [{ promise, what: `${name} ended with ${signal ?? code} after ${sent}: ${lastLine(worker.stderr)}` }]
}

function judgeDrain(worker: WorkerProcess, runs: readonly Run[], slackMs: number): Violation[] {
  const askedAt = drainedAt(worker)
  if (askedAt === null) return []
  const late = runs.filter(({ startedAt }) => startedAt > askedAt + slackMs)
  const unfinished = diedAt(worker) === null ? runs.filter(({ endedAt }) => endedAt === null) : []
  return [
    ...late.map((run) => ({
      promise: 'graceful' as const,
      what: `${worker.name} was told to stop at ${askedAt} and started job ${run.id} ${told(run)}`,
    })),
    ...unfinished.map((run) => ({
      promise: 'graceful' as const,
      what: `${worker.name} stopped in the middle of job ${run.id} ${told(run)}`,
    })),
  ]
}

/** What a client may be told: yes, no such job, or a documented "try again". Killed ones say nothing. */
function judgeClient({ argv, code, signal, stderr }: Client): Violation[] {
  const isExpected = signal === 'SIGKILL' || code === 0 || (code === 1 && argv[0] === 'retry') || code === 3
  if (isExpected) return []
  return [{ promise: 'quiet', what: `"khepri ${argv.join(' ')}" ended with ${signal ?? code}: ${lastLine(stderr)}` }]
}

function judgeText({ argv, stderr }: WorkerProcess | Client): Violation[] {
  const frame = /^\s+at \S.*:\d+:\d+\)?$/m.exec(stderr)
  return frame
    ? [{ promise: 'quiet', what: `"khepri ${argv.join(' ')}" showed a stack trace: ${frame[0].trim()}` }]
    : []
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''

/** Without these nothing can be concluded: a listing of failures, and a worker that found the queues empty in the end. */
export function judgeSoundness(evidence: Evidence): Violation[] {
  const { history, strangers, listing, stories } = evidence
  const broken: Violation[] = strangers.slice(0, 5).map((line) => ({
    promise: 'sound',
    what: `a line of the ledger belongs to no job or worker of this history: ${JSON.stringify(line)}`,
  }))
  if (listing === null) broken.push({ promise: 'sound', what: 'nobody listed the failed jobs with "failed --json"' })
  const last = Math.max(0, ...stories.flatMap(({ runs }) => runs.map(({ startedAt }) => startedAt)))
  const isEmpty = history.workers.some(({ startedAt, stdout }) => startedAt >= last && foundNothing.test(stdout))
  if (!isEmpty) {
    const promise = history.workers.some(({ argv }) => argv.includes('--stop-when-empty')) ? 'ended' : 'sound'
    broken.push({ promise, what: 'no worker found the queues empty in the end' })
  }
  return broken
}
