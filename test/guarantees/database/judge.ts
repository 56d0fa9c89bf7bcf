import type { LedgerLine } from '../../support/installation.ts'
import type { Ended } from '../../support/live.ts'
import type { Asked, Batch } from './load.ts'

/** What was seen from outside: by clients, in the ledger, in the list of failed jobs. */
export interface Account {
  readonly batches: readonly Batch[]
  readonly lines: readonly LedgerLine[]
  /** The ids that `khepri failed` names. */
  readonly failed: readonly number[]
}

/** Codes with which a command may say that the database was not there for it. */
const excuses: ReadonlySet<number | null> = new Set([69, 74, 75, 77])

/** Says what a faulty database must not have led to; nothing where all is well. */
export function judge({ batches, lines, failed }: Account): readonly string[] {
  const runs = Map.groupBy(lines, ({ payload }) => (JSON.parse(payload) as Asked).key)
  const failedIds = new Set(failed)
  const seen = batches.flatMap(({ jobs }) => jobs).filter(({ key }) => runs.has(key))
  const doomed = seen.filter(({ fails, tries }) => fails >= tries)
  return [
    ...batches.flatMap((batch) => judgeDispatch(batch, runs)),
    ...seen.flatMap((job) => judgeRuns(job, runs.get(job.key) ?? [], failedIds)),
    ...(failedIds.size > doomed.length ? [`${failedIds.size} jobs are failed, and ${doomed.length} should be`] : []),
  ]
}

type Runs = ReadonlyMap<string, readonly LedgerLine[]>

/** A file of jobs is in or it is not; which of the two its exit code has said, or that it does not know. */
function judgeDispatch({ jobs, ended }: Batch, runs: Runs): readonly string[] {
  const { code, stderr } = ended
  const ran = jobs.filter(({ key }) => runs.has(key)).length
  const name = `the dispatch of ${jobs[0]?.key} and ${jobs.length - 1} more`
  const said = `${name} exited ${code}: ${stderr.trim()}`
  const isUnknown = stderr.includes('may or may not')
  if (code === 0) return ran === jobs.length ? [] : [`${name} exited 0, and only ${ran} of them ever ran`]
  return [
    ...(ran > 0 && !isUnknown ? [`${said}; yet ${ran} of them ran`] : []),
    ...(ran > 0 && ran < jobs.length ? [`${said}; ${ran} of them ran, as if it were no transaction`] : []),
    ...judgeRefusal(said, ended),
  ]
}

function judgeRefusal(said: string, { code, stderr }: Ended): readonly string[] {
  return [
    ...(excuses.has(code) ? [] : [`${said}; that code says nothing about a database`]),
    ...(/^error: .+\n {2}fix: .+/m.test(stderr) ? [] : [`${said}; without a way out`]),
    ...(/^\s+at .+:\d+:\d+/m.test(stderr) ? [`${said}; with a stack trace`] : []),
  ]
}

/** No needless second run: each attempt that the job's plan wants starts once, whatever befell the database meanwhile. */
function judgeRuns(
  { key, fails, tries }: Asked,
  lines: readonly LedgerLine[],
  failed: ReadonlySet<number>,
): readonly string[] {
  const starts = lines.filter(({ what }) => what === 'start')
  const id = starts[0]?.id ?? 0
  const planned = Array.from({ length: Math.min(fails + 1, tries) }, (_, index) => index + 1)
  const isDoomed = fails >= tries
  const ends = lines.length - starts.length
  const name = `job ${id} (${key})`
  const told = starts.map(
    ({ attempt, crashes, pid, at }) =>
      `try ${attempt}, ${crashes} crashes, pid ${pid} at ${new Date(at).toISOString()}`,
  )
  return [
    ...(String(starts.map(({ attempt }) => attempt)) === String(planned)
      ? []
      : [`${name} was to start as attempts ${planned}, and started: ${told.join('; ')}`]),
    ...(ends === (isDoomed ? 0 : 1) ? [] : [`${name} came to its end ${ends} times: ${told.join('; ')}`]),
    ...(failed.has(id) === isDoomed ? [] : [`${name} is ${isDoomed ? 'not ' : ''}in the list of failed jobs`]),
  ]
}
