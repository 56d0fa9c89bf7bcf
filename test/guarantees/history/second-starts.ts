import {
  clientsOn,
  diedAt,
  drainedAt,
  type Evidence,
  leastSilenceMs,
  nameOf,
  pausesOf,
  type Run,
  type Story,
} from './evidence.ts'
import type { Timing, WorkerProcess } from './history.ts'
import type { Violation } from './violation.ts'

/** Promises 3, 4, 5 and 8 as far as they speak of two runs of one job. */
export function judgeSecondStarts(evidence: Evidence): Violation[] {
  return evidence.stories.flatMap((story) => {
    const next = story.runs.slice(1)
    return [
      ...next.flatMap((run, index) => judgeNext(evidence, story, story.runs[index] as Run, run)),
      ...next.flatMap((run, index) => judgeOverlaps(evidence, story, story.runs.slice(0, index + 1), run)),
    ]
  })
}

/** Why a run may follow another one, and what must then be true of it. */
interface Cause {
  readonly attempt: number
  readonly earliest: number
}

function judgeNext(evidence: Evidence, story: Story, before: Run, next: Run): Violation[] {
  const causes = causesOf(evidence, story, before, next)
  const what = `${nameOf(story)} started again ${told(next)} after ${told(before)}`
  if (causes.length === 0) return [{ promise: 'needless', what: `${what}, and nothing explains it` }]
  const right = causes.filter(({ attempt }) => attempt === next.attempt)
  if (right.length === 0) {
    const expected = causes.map(({ attempt }) => attempt).join(' or ')
    return [{ promise: 'terms', what: `${what}: its attempt should be ${expected}` }]
  }
  const earliest = Math.min(...right.map((cause) => cause.earliest))
  if (next.startedAt < earliest)
    return [{ promise: 'terms', what: `${what}: ${earliest - next.startedAt} ms too early` }]
  return []
}

function causesOf(evidence: Evidence, story: Story, before: Run, next: Run): Cause[] {
  const causes: Cause[] = []
  if (mayBeRetried(evidence, story, before, next)) causes.push({ attempt: 1, earliest: 0 })
  // What the store has accepted is so: no kill and no pause can undo it.
  const verb = before.verdict?.verb
  if (verb === 'DONE' || verb === 'FAILED') return causes
  const { backoffMs, tries } = story.asked
  const endedAt = before.endedAt ?? 0
  if (before.outcome === 'threw' && before.attempt < tries && verb !== 'RELEASED')
    causes.push({ attempt: before.attempt + 1, earliest: endedAt + backoffMs - clockGrainMs })
  if (verb === 'RETRY') return causes
  if (before.outcome === 'released') causes.push({ attempt: before.attempt, earliest: endedAt })
  if (before.outcome === 'interrupted' && drainedAt(before.worker) !== null)
    causes.push({ attempt: before.attempt, earliest: endedAt })
  if (lostByDeath(before, next) || lostByPause(before, next, evidence.history.timing))
    causes.push({ attempt: before.attempt, earliest: 0 })
  return causes
}

/** Two clocks of one machine, each cut to milliseconds. */
const clockGrainMs = 2

/** A result waits so long for its round at most, on a machine that is not the slowest. */
const settledWithin = ({ slackMs }: Timing): number => slackMs

/** It had failed for good, or may have while nobody saw it, and a client may have put it back in between. */
function mayBeRetried(evidence: Evidence, story: Story, before: Run, next: Run): boolean {
  const hasFailed =
    before.verdict?.verb === 'FAILED' || (before.outcome === 'threw' && before.attempt >= story.asked.tries)
  const mayHaveCrashed = story.verdicts.some(({ reason }) => reason === 'crashes')
  if (!hasFailed && !mayHaveCrashed) return false
  return clientsOn(evidence, 'retry', story).some(
    ({ startedAt, endedAt }) => startedAt <= next.startedAt && endedAt >= (before.endedAt ?? before.startedAt),
  )
}

/** Its worker died with it in hand. */
function lostByDeath(before: Run, next: Run): boolean {
  const deathAt = diedAt(before.worker)
  return deathAt !== null && next.startedAt >= deathAt - clockGrainMs
}

/** Its worker stood still for so long that its lease may have run out before the other one started. */
function lostByPause(before: Run, next: Run, timing: Timing): boolean {
  return pausesOf(before.worker).some(({ from, to }) => {
    const expiresAt = from + leastSilenceMs(timing)
    const wasInHand = before.reservedAt <= to && (before.endedAt ?? to) >= from - settledWithin(timing)
    return wasInHand && expiresAt <= to && next.startedAt >= expiresAt
  })
}

/** When a run was over at the latest, if its worker was not merely standing still. */
function isOverAt(run: Run): number {
  return run.endedAt ?? diedAt(run.worker) ?? run.worker.endedAt
}

function judgeOverlaps(evidence: Evidence, story: Story, earlier: readonly Run[], next: Run): Violation[] {
  return earlier
    .filter((run) => isOverAt(run) > next.startedAt + clockGrainMs)
    .filter((run) => !lostByPause(run, next, evidence.history.timing))
    .map((run) => ({
      promise: 'overlap',
      what: `${nameOf(story)} ran ${told(next)} while it still ran ${told(run)}`,
    }))
}

/** Promise 4: what a worker was told about a run that somebody else had taken over by then. */
export function judgeFences(evidence: Evidence): Violation[] {
  return evidence.stories.flatMap((story) => [...judgeFinal(evidence, story), ...judgeDoubles(evidence, story)])
}

/** DONE and FAILED end a job: whoever started later, without a retry in between, held a newer reservation. */
function judgeFinal(evidence: Evidence, story: Story): Violation[] {
  return story.runs.flatMap((run, index) => {
    if (run.verdict?.verb !== 'DONE' && run.verdict?.verb !== 'FAILED') return []
    const newer = story.runs.slice(index + 1).find((next) => !mayBeRetried(evidence, story, run, next))
    if (!newer) return []
    const what = `${nameOf(story)} was ${run.verdict.verb} by ${run.worker.name}, but ${newer.worker.name} had started it after that one`
    return [{ promise: 'fenced', what }]
  })
}

function judgeDoubles(evidence: Evidence, story: Story): Violation[] {
  const verbs = [...story.runs.flatMap(({ verdict }) => verdict ?? []), ...story.verdicts].map(({ verb }) => verb)
  const done = verbs.filter((verb) => verb === 'DONE').length
  const failed = verbs.filter((verb) => verb === 'FAILED').length
  const retries = clientsOn(evidence, 'retry', story).length
  if (done <= 1 && failed + done <= 1 + retries) return []
  const what = `${nameOf(story)} was DONE ${done} and FAILED ${failed} times, with ${retries} retries`
  return [{ promise: 'fenced', what }]
}

/** A handler is told that its lease is lost only where that can be. */
export function judgeLeases(evidence: Evidence): Violation[] {
  return evidence.stories.flatMap((story) =>
    story.runs
      .filter(({ outcome, verdict }) => outcome === 'lost' || verdict?.verb === 'LOST')
      .filter(({ worker }) => !mayHaveLostLease(worker, evidence.history.timing))
      .map((run) => ({ promise: 'needless', what: `${nameOf(story)} was lost by a worker that lived: ${told(run)}` })),
  )
}

function mayHaveLostLease(worker: WorkerProcess, timing: Timing): boolean {
  return pausesOf(worker).some(({ from, to }) => to - from >= leastSilenceMs(timing))
}

/** "on w7 at 1760000000123 as attempt 2 (threw)" */
export function told({ worker, startedAt, attempt, outcome, verdict }: Run): string {
  const end = outcome === null ? 'no end' : outcome
  return `on ${worker.name} at ${startedAt} as attempt ${attempt} (${[end, verdict?.verb].filter(Boolean).join(', ')})`
}
