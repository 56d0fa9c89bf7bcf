import {
  clientsOn,
  diedAt,
  drainedAt,
  type Evidence,
  leastSilenceMs,
  nameOf,
  pausesOf,
  printedIds,
  type Run,
  type Story,
} from './evidence.ts'
import { type Client, plannedFailure } from './history.ts'
import { told } from './second-starts.ts'
import type { Violation } from './violation.ts'

/** Promise 1: what a dispatch says is so, and nothing is half-written. */
export function judgeDispatches(evidence: Evidence): Violation[] {
  const byDispatch = Map.groupBy(evidence.stories, ({ dispatch }) => dispatch)
  return [...byDispatch].flatMap(([dispatch, stories]) => judgeDispatch(dispatch, stories))
}

function judgeDispatch(dispatch: Client, stories: readonly Story[]): Violation[] {
  const seen = stories.filter(isSeen).length
  const command = `"khepri ${dispatch.argv.join(' ')}"`
  const broken: Violation[] = stories
    .filter(({ ids }) => ids.size > 1)
    .map((story) => ({
      promise: 'durable',
      what: `${nameOf(story)} was enqueued ${story.ids.size} times by one ${command}`,
    }))
  if (dispatch.code === 0) {
    const unseen = stories.filter((story) => !isSeen(story)).slice(0, 5)
    for (const story of unseen)
      broken.push({ promise: 'durable', what: `${nameOf(story)} of ${command}, which exited 0, was never seen again` })
    const printed = printedIds(dispatch)
    if (printed.length > 0 && printed.length !== dispatch.asked.length)
      broken.push({
        promise: 'durable',
        what: `${command} printed ${printed.length} ids for ${dispatch.asked.length} jobs`,
      })
  } else if (seen > 0 && seen < stories.length)
    broken.push({
      promise: 'durable',
      what: `${command} did not exit 0, and ${seen} of its ${stories.length} jobs are in`,
    })
  return broken
}

const isSeen = ({ runs, failed, verdicts }: Story): boolean => runs.length + verdicts.length > 0 || failed !== null

/** Two jobs never carry one id. */
export function judgeIds(evidence: Evidence): Violation[] {
  const byId = Map.groupBy(
    evidence.stories.flatMap((story) => [...story.ids].map((id) => ({ id, story }))),
    ({ id }) => id,
  )
  return [...byId]
    .filter(([, sharing]) => sharing.length > 1)
    .map(([id, sharing]) => ({
      promise: 'durable',
      what: `id ${id} was given to ${sharing.map(({ story }) => story.asked.key).join(' and ')}`,
    }))
}

/** Promise 2 and the half of 9 that says: nothing dropped. */
export function judgeFates(evidence: Evidence): Violation[] {
  return evidence.stories.filter(isSeen).flatMap((story) => {
    const last = story.runs.at(-1)
    const { failed } = story
    if (failed !== null) return judgeListed(story, last)
    if (last?.outcome === 'done' && last.verdict?.verb !== 'LOST') return []
    if (isFlushed(evidence, story, last)) return []
    const end = last ? `its last run was ${told(last)}` : 'it was never started'
    return [{ promise: 'ended', what: `${nameOf(story)} is neither done nor failed: ${end}` } as const]
  })
}

function judgeListed(story: Story, last: Run | undefined): Violation[] {
  const { failed, asked } = story
  const broken: Violation[] = []
  if (failed?.job !== asked.job || failed.queue !== asked.queue)
    broken.push({ promise: 'kept', what: `${nameOf(story)} is listed as ${failed?.job} on ${failed?.queue}` })
  if (last?.verdict?.verb === 'DONE')
    broken.push({ promise: 'ended', what: `${nameOf(story)} is listed as failed although it was done: ${told(last)}` })
  if (failed?.reason === 'tries' && (last?.outcome !== 'threw' || last.attempt < asked.tries))
    broken.push({
      promise: 'bounded',
      what: `${nameOf(story)} failed because its ${asked.tries} tries were spent, but its last run was ${last ? told(last) : 'none'}`,
    })
  return broken
}

/** It had failed before the flush was over. */
function isFlushed(evidence: Evidence, story: Story, last: Run | undefined): boolean {
  const mayHaveFailed =
    last === undefined || last.verdict?.verb === 'FAILED' || last.outcome === 'threw' || last.outcome === null
  const failedAt = last?.endedAt ?? last?.startedAt ?? 0
  return mayHaveFailed && clientsOn(evidence, 'flush', story).some(({ endedAt }) => endedAt >= failedAt)
}

/** Promise 7: attempts and deaths. A retry begins a new count of both. */
export function judgeBounds(evidence: Evidence): Violation[] {
  return evidence.stories.flatMap((story) => [...judgeAttempts(story), ...judgeDeaths(evidence, story)])
}

function judgeAttempts(story: Story): Violation[] {
  const { tries } = story.asked
  const [first] = story.runs
  const broken: Violation[] = story.runs
    .filter(({ attempt }) => attempt > tries)
    .map((run) => ({ promise: 'bounded', what: `${nameOf(story)} has ${tries} tries and ran ${told(run)}` }))
  if (first && first.attempt !== 1)
    broken.push({ promise: 'bounded', what: `${nameOf(story)} ran for the first time ${told(first)}` })
  return broken
}

function judgeDeaths(evidence: Evidence, story: Story): Violation[] {
  const { maxCrashes } = story.asked
  const deaths = roundsOf(evidence, story).map((runs) => runs.filter(isDeath).length)
  const broken: Violation[] = deaths
    .filter((count) => count > maxCrashes + 2)
    .map((count) => ({
      promise: 'bounded',
      what: `${nameOf(story)} saw ${count} workers die, with maxCrashes ${maxCrashes}`,
    }))
  const losses = story.runs.filter((run) => isDeath(run) || isLossByPause(evidence, run)).length
  if (story.failed?.reason === 'crashes' && losses < maxCrashes)
    broken.push({
      promise: 'bounded',
      what: `${nameOf(story)} failed for its crashes after ${losses} lost workers, with maxCrashes ${maxCrashes}`,
    })
  return broken
}

/** The runs between one retry and the next: a retry begins at attempt one, with no crashes. */
function roundsOf(evidence: Evidence, story: Story): readonly (readonly Run[])[] {
  const retries = clientsOn(evidence, 'retry', story)
  return story.runs.reduce<Run[][]>((rounds, run) => {
    const round = rounds.at(-1)
    const before = round?.at(-1)
    const isRetried = retries.some(
      ({ startedAt, endedAt }) => startedAt <= run.startedAt && endedAt >= (before?.startedAt ?? 0),
    )
    if (!round || (isRetried && run.attempt === 1)) rounds.push([run])
    else round.push(run)
    return rounds
  }, [])
}

/** Its worker died while it ran, and was not told to stop before: that is free. */
function isDeath({ worker, endedAt, outcome }: Run): boolean {
  return diedAt(worker) !== null && drainedAt(worker) === null && (endedAt === null || outcome === 'crashed')
}

function isLossByPause({ history }: Evidence, { worker, reservedAt, endedAt }: Run): boolean {
  return pausesOf(worker).some(
    ({ from, to }) =>
      to - from >= leastSilenceMs(history.timing) &&
      reservedAt <= to &&
      (endedAt ?? to) >= from - history.timing.slackMs,
  )
}

/** Promise 8: the terms of the dispatch, whatever the worker's flags say. */
export function judgeTerms(evidence: Evidence): Violation[] {
  return evidence.stories.flatMap((story) => {
    const { asked, dispatch, runs, verdicts } = story
    const all = [...runs.flatMap(({ verdict }) => verdict ?? []), ...verdicts]
    const broken: Violation[] = all
      .filter(({ tries }) => tries !== asked.tries)
      .slice(0, 1)
      .map(({ tries }) => ({
        promise: 'terms',
        what: `${nameOf(story)} was given ${asked.tries} tries and judged by ${tries}`,
      }))
    const [first] = runs
    if (first && first.startedAt < dispatch.startedAt + asked.delayMs)
      broken.push({
        promise: 'terms',
        what: `${nameOf(story)} was to wait ${asked.delayMs} ms and started ${told(first)}`,
      })
    return broken
  })
}

/** Promise 9: payloads and errors of failed jobs, as `failed ID --json` shows them. */
export function judgeFailures(evidence: Evidence): Violation[] {
  const shown = evidence.history.clients.filter(
    ({ argv, code }) => argv[0] === 'failed' && code === 0 && /^\d+$/.test(argv[1] ?? ''),
  )
  const byId = new Map(evidence.stories.flatMap((story) => [...story.ids].map((id) => [id, story] as const)))
  return shown.flatMap((client) => {
    const story = byId.get(Number(client.argv[1]))
    return story ? judgeShown(story, client) : []
  })
}

function judgeShown(story: Story, { stdout, endedAt }: Client): Violation[] {
  const { asked } = story
  const broken: Violation[] = []
  if (!stdout.includes(`"payload":${asked.payload},`))
    broken.push({ promise: 'kept', what: `${nameOf(story)} has another payload than ${asked.payload}` })
  const expected = story.runs.filter(
    ({ verdict, endedAt: at }) => verdict && errorVerbs.has(verdict.verb) && (at ?? 0) < endedAt,
  )
  const messages = (JSON.parse(stdout) as { attempts: readonly { message: string }[] }).attempts.map(
    ({ message }) => message,
  )
  for (const { attempt } of expected) {
    const index = messages.indexOf(plannedFailure(asked.key, attempt))
    if (index >= 0) messages.splice(index, 1)
    else broken.push({ promise: 'kept', what: `${nameOf(story)} has lost the error of attempt ${attempt}` })
  }
  return broken
}

const errorVerbs: ReadonlySet<string> = new Set(['RETRY', 'FAILED'])

/** A retry that exits 0 has put back everything it names. */
export function judgeRetries(evidence: Evidence): Violation[] {
  const byId = new Map(evidence.stories.flatMap((story) => [...story.ids].map((id) => [id, story] as const)))
  const retries = evidence.history.clients.filter(({ argv, code }) => argv[0] === 'retry' && code === 0)
  return retries.flatMap(({ argv, startedAt }) =>
    argv
      .slice(1)
      .filter((word) => /^\d+$/.test(word))
      .flatMap((id): Violation[] => {
        const story = byId.get(Number(id))
        const isBack =
          story?.runs.some((run) => run.startedAt >= startedAt && run.attempt === 1) ||
          story?.failed?.reason === 'crashes'
        return !story || isBack
          ? []
          : [{ promise: 'kept', what: `${nameOf(story)} was retried, and never started again at attempt one` }]
      }),
  )
}
