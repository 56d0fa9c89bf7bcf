import { diedAt, drainedAt, type Evidence, nameOf, pausesOf, type Run, type Story } from './evidence.ts'
import type { Timing, WorkerProcess } from './history.ts'
import { told } from './second-starts.ts'
import type { Violation } from './violation.ts'

/** How long the jobs of a dead worker waited for their next start, where somebody could have taken them. */
export interface RecoveryTime {
  readonly story: Story
  readonly run: Run
  readonly ms: number
  readonly boundMs: number
}

/** Promise 6: what was running in a worker that died starts elsewhere in time. */
export function judgeRecovery(evidence: Evidence): Violation[] {
  const { slackMs } = evidence.history.timing
  return recoveryTimes(evidence)
    .filter(({ ms, boundMs }) => ms > boundMs + slackMs)
    .map(({ story, run, ms, boundMs }) => ({
      promise: 'recovered',
      what: `${nameOf(story)} lost its worker ${told(run)} and waited ${ms} ms, with ${boundMs} ms promised`,
    }))
}

/** Every recovery that can be judged: a next run there was, and a worker to take it all the while. */
export function recoveryTimes(evidence: Evidence): readonly RecoveryTime[] {
  const { timing, workers } = evidence.history
  const alone = openRuns(evidence)
  return evidence.stories.flatMap((story) =>
    story.runs.flatMap((run, index): RecoveryTime[] => {
      const next = story.runs[index + 1]
      const deathAt = diedAt(run.worker)
      if (!next || deathAt === null || run.endedAt !== null || next.startedAt < deathAt) return []
      const boundMs = boundOf(run, alone, timing)
      // Whoever was there until the job started again, or until the bound had passed, could have taken it in time.
      const until = Math.min(next.startedAt, deathAt + (boundMs ?? 0) + timing.slackMs)
      if (boundMs === null || !someoneCould(workers, story, { from: deathAt - timing.beatMs, until })) return []
      return [{ story, run, ms: next.startedAt - deathAt, boundMs }]
    }),
  )
}

/** How many runs each dead worker had in hand. A worker of one slot never has company. */
function openRuns(evidence: Evidence): ReadonlyMap<WorkerProcess, number> {
  const open = evidence.stories.flatMap(({ runs }) => runs.filter(({ endedAt }) => endedAt === null))
  const counts = new Map<WorkerProcess, number>()
  for (const { worker } of open) counts.set(worker, (counts.get(worker) ?? 0) + 1)
  return counts
}

function boundOf({ worker }: Run, open: ReadonlyMap<WorkerProcess, number>, timing: Timing): number | null {
  const wasAlone = worker.concurrency === 1 && open.get(worker) === 1
  // Nobody waits for a worker that was stopping: its jobs are free at no cost, but with no other bound.
  return wasAlone || drainedAt(worker) !== null ? timing.recoverMs : timing.recoverSuspectMs
}

interface Span {
  readonly from: number
  readonly until: number
}

/** One worker that served the queue, had been in contact for a beat before, and was neither stopped nor killed. */
function someoneCould(workers: readonly WorkerProcess[], { asked }: Story, { from, until }: Span): boolean {
  return workers.some(
    (worker) =>
      worker.queues.includes(asked.queue) &&
      worker.readyAt !== null &&
      worker.readyAt <= from &&
      Math.min(diedAt(worker) ?? worker.endedAt, drainedAt(worker) ?? worker.endedAt) >= until &&
      pausesOf(worker).every((pause) => pause.to < from || pause.from > until),
  )
}
