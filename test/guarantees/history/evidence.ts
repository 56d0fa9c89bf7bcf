import type { AskedJob, Client, History, LedgerLine, RunOutcome, SentSignal, Timing, WorkerProcess } from './history.ts'

/** What a worker said about the end of an attempt once the store had accepted it, or refused it (LOST). */
export interface Verdict {
  readonly verb: 'DONE' | 'RETRY' | 'FAILED' | 'RELEASED' | 'LOST'
  readonly id: number
  readonly attempt: number
  readonly tries: number
  /** Why it failed for good; null where it did not, or where no reason was shown. */
  readonly reason: string | null
}

/** One run of a handler, put together from the ledger and from what its worker said. */
export interface Run {
  readonly id: number
  readonly key: string
  readonly attempt: number
  readonly worker: WorkerProcess
  readonly startedAt: number
  /**
   * When it was reserved, at the latest: its start, but for an echo. That is the handler of a worker which stood still
   * between its reservation and the start: by then others may have had the job, and its own result is refused.
   */
  reservedAt: number
  /** null: no end was written. */
  endedAt: number | null
  outcome: RunOutcome | null
  verdict: Verdict | null
}

/** Everything that is known about one job. */
export interface Story {
  readonly asked: AskedJob
  readonly dispatch: Client
  /** The ids under which it was seen; more than one is a fault. */
  readonly ids: ReadonlySet<number>
  /** In the order in which they were reserved, as far as that can be told. */
  readonly runs: readonly Run[]
  /** Verdicts that no run belongs to: a job that was failed without being started. */
  readonly verdicts: readonly Verdict[]
  /** As the last listing of failed jobs shows it. */
  readonly failed: ListedFailure | null
}

/** A line of `khepri failed --json`. */
export interface ListedFailure {
  readonly id: number
  readonly job: string
  readonly queue: string
  readonly reason: string
}

/** A history, put in order for the rules. */
export interface Evidence {
  readonly history: History
  readonly stories: readonly Story[]
  readonly workers: ReadonlyMap<string, WorkerProcess>
  /** Runs whose key nobody asked for, or whose worker nobody started. */
  readonly strangers: readonly LedgerLine[]
  /** The last whole listing of failed jobs; null: none was asked for. */
  readonly listing: readonly ListedFailure[] | null
}

/** Puts a history in order; draws no conclusion. */
export function evidenceOf(given: History): Evidence {
  const history = { ...given, workers: datedByCrashes(given) }
  const workers = new Map(history.workers.map((worker) => [worker.name, worker]))
  const asked = new Map(
    history.clients.flatMap((dispatch) => dispatch.asked.map((job) => [job.key, { job, dispatch }])),
  )
  const { runs, strangers } = runsOf(history.ledger, workers, asked)
  const spare = assignVerdicts(runs, history.workers)
  for (const run of runs) run.reservedAt = reservedAt(run, history.timing)
  const listing = lastListing(history.clients)
  const idsByKey = idsOf(history.clients, runs)
  const runsByKey = Map.groupBy(runs, ({ key }) => key)
  const spareById = Map.groupBy(spare, ({ id }) => id)
  const failedById = new Map(listing?.map((failure) => [failure.id, failure]))

  const stories = [...asked].map(([key, { job, dispatch }]): Story => {
    const ids = idsByKey.get(key) ?? new Set<number>()
    return {
      asked: job,
      dispatch,
      ids,
      runs: (runsByKey.get(key) ?? []).sort((a, b) => a.reservedAt - b.reservedAt),
      verdicts: [...ids].flatMap((id) => spareById.get(id) ?? []),
      failed: [...ids].flatMap((id) => failedById.get(id) ?? [])[0] ?? null,
    }
  })
  return { history, stories, workers, strangers, listing }
}

/** Whoever watches a process hears of its end later than a neighbour may: a handler that kills it says when. */
function datedByCrashes({ workers, ledger }: History): readonly WorkerProcess[] {
  const crashes = ledger.filter((line) => line.event === 'end' && line.outcome === 'crashed')
  const crashedAt = new Map(crashes.map(({ worker, ms }) => [worker, ms]))
  return workers.map((worker) => ({
    ...worker,
    endedAt: Math.min(worker.endedAt, crashedAt.get(worker.name) ?? worker.endedAt),
  }))
}

/** Pairs the lines of the ledger: an end belongs to the oldest open run of its job on its worker. */
function runsOf(
  ledger: readonly LedgerLine[],
  workers: ReadonlyMap<string, WorkerProcess>,
  asked: ReadonlyMap<string, unknown>,
): { readonly runs: Run[]; readonly strangers: LedgerLine[] } {
  const runs: Run[] = []
  const strangers: LedgerLine[] = []
  const open = new Map<string, Run[]>()
  for (const line of ledger) {
    const { id, key, attempt, ms } = line
    const worker = workers.get(line.worker)
    const place = `${line.worker} ${id}`
    if (!worker || !asked.has(key)) strangers.push(line)
    else if (line.event === 'start') {
      const times = { startedAt: ms, reservedAt: ms, endedAt: null }
      const run: Run = { id, key, attempt, worker, ...times, outcome: null, verdict: null }
      runs.push(run)
      open.set(place, [...(open.get(place) ?? []), run])
    } else {
      const run = open.get(place)?.shift()
      if (run) Object.assign(run, { endedAt: ms, outcome: line.outcome })
      else strangers.push(line)
    }
  }
  return { runs, strangers }
}

/** A worker says one thing about each run of a job, in the order of the runs; the rest is left over. */
function assignVerdicts(runs: readonly Run[], workers: readonly WorkerProcess[]): Verdict[] {
  const place = (worker: WorkerProcess, id: number): string => `${worker.name} ${id}`
  const waiting = Map.groupBy(runs, ({ worker, id }) => place(worker, id))
  return workers.flatMap((worker) =>
    verdictsIn(worker.stdout).filter((verdict) => {
      const isAboutRun = verdict.reason === null || verdict.reason === 'tries' || verdict.reason === 'refused'
      const run = isAboutRun ? waiting.get(place(worker, verdict.id))?.shift() : undefined
      if (run) run.verdict = verdict
      return run === undefined
    }),
  )
}

const verdictLine =
  /^\S+ (DONE|RETRY|FAILED|RELEASED|LOST) (\d+) \S+ queue=\S+ try=(\d+)\/(\d+)(?: .*?\breason=(\w+))?/gm

/** Reads the lines of a worker in a pipe. */
function verdictsIn(stdout: string): readonly Verdict[] {
  return [...stdout.matchAll(verdictLine)].map(([, verb, id, attempt, tries, reason]) => ({
    verb: verb as Verdict['verb'],
    id: Number(id),
    attempt: Number(attempt),
    tries: Number(tries),
    reason: reason ?? null,
  }))
}

/** Only what was refused can be an echo: whoever was told DONE, or RETRY, has held the newest reservation. */
function reservedAt({ startedAt, worker, verdict }: Run, timing: Timing): number {
  if (verdict?.verb !== 'LOST') return startedAt
  const pause = pausesOf(worker).findLast(({ to }) => to <= startedAt)
  const isEcho = pause && pause.to - pause.from >= leastSilenceMs(timing) && startedAt - pause.to <= timing.promptMs
  return isEcho ? pause.from : startedAt
}

/** The shortest pause that can cost a lease: the last beat may have been under way for half an interval by then. */
export function leastSilenceMs({ leaseMs, beatMs }: Timing): number {
  return leaseMs - 1.5 * beatMs
}

function idsOf(clients: readonly Client[], runs: readonly Run[]): ReadonlyMap<string, ReadonlySet<number>> {
  const ids = new Map<string, Set<number>>()
  const add = (key: string, id: number): unknown => ids.get(key)?.add(id) ?? ids.set(key, new Set([id]))
  for (const client of clients) {
    const printed = printedIds(client)
    for (const [index, { key }] of client.asked.entries()) {
      const id = printed[index]
      if (id !== undefined) add(key, id)
    }
  }
  for (const { key, id } of runs) add(key, id)
  return ids
}

/** The ids that a dispatch printed, in the order of what it was asked; none where it was killed before. */
export function printedIds({ asked, stdout }: Client): readonly number[] {
  if (asked.length === 0) return []
  const lines = stdout.split('\n').slice(0, -1)
  return lines.every((line) => /^\d+$/.test(line)) ? lines.map(Number) : []
}

function lastListing(clients: readonly Client[]): readonly ListedFailure[] | null {
  const last = clients.findLast(
    ({ argv, code }) => code === 0 && argv[0] === 'failed' && argv.join(' ') === 'failed --json',
  )
  return last ? (JSON.parse(last.stdout) as ListedFailure[]) : null
}

/** When a process was killed, by a signal that was sent or by its own doing; null: it came to its end. */
export function diedAt({ signals, signal, endedAt }: WorkerProcess): number | null {
  if (signal === null) return null
  return signals.find((sent) => sent.signal === 'SIGKILL')?.at ?? endedAt
}

/** When a worker was first told to drain; null: never. */
export function drainedAt({ signals }: WorkerProcess): number | null {
  return signals.find(({ signal }) => signal === 'SIGTERM' || signal === 'SIGINT')?.at ?? null
}

/** The spans in which a process stood still. */
export function pausesOf({
  signals,
  endedAt,
}: WorkerProcess): readonly { readonly from: number; readonly to: number }[] {
  const pauses: { from: number; to: number }[] = []
  let stop: SentSignal | null = null
  for (const sent of signals) {
    if (sent.signal === 'SIGSTOP') stop ??= sent
    else if (stop && (sent.signal === 'SIGCONT' || sent.signal === 'SIGKILL')) {
      pauses.push({ from: stop.at, to: sent.at })
      stop = null
    }
  }
  return stop ? [...pauses, { from: stop.at, to: endedAt }] : pauses
}

/** The clients that may have put this job back, or deleted it: by id, or by "all". */
export function clientsOn(evidence: Evidence, command: 'retry' | 'flush', { ids }: Story): readonly Client[] {
  return evidence.history.clients.filter(({ argv: [name, ...words] }) => {
    const isForAll = command === 'flush' ? words.every((word) => word.startsWith('-')) : words.includes('--all')
    return name === command && (isForAll || words.some((word) => ids.has(Number(word))))
  })
}

/** A job as a violation names it. */
export function nameOf({ asked, ids }: Pick<Story, 'asked' | 'ids'>): string {
  return `job ${ids.size === 0 ? '(no id)' : [...ids].join(' and ')} (${asked.key})`
}
