import { exitsFor, faultInText } from './exits.ts'
import { type Fault, isKill, type Place, replayOf } from './faults.ts'
import type { Fate, Operation, Seen } from './operations.ts'
import type { Act, Site } from './site.ts'
import { nameOf } from './states.ts'

/** No operation here has so many statements: one that reaches it does not end. */
const mostStatements = 400

/** What was tried. */
export interface Tally {
  cases: number
  kills: number
  errors: number
}

/** Which statements of an operation a fault befalls: from the `first` on every `step`-th. */
export interface Stride {
  readonly first: number
  readonly step: number
}

/** One fault, at one statement of an operation after another. */
export interface Series {
  readonly operation: Operation
  readonly fault: Fault
  readonly stride: Stride
}

/**
 * Lets a fault befall one statement of an operation after another, until the operation ends before it comes to it.
 *
 * After each a clean run follows, and whatever was promised is looked for. Answers what is wrong, and counts in `tally`.
 */
export async function trySeries(
  site: Site,
  { operation, fault, stride }: Series,
  tally: Tally,
): Promise<readonly string[]> {
  const wrong: string[] = []
  for (let at = stride.first; ; at += stride.step) {
    const place: Place = { store: site.store, operation: operation.name, fault, at }
    if (at > mostStatements) return [...wrong, describe(place, null, [`it has more than ${mostStatements} statements`])]
    const { violations, wasReached } = await tryOnce(site, operation, place)
    wrong.push(...violations)
    if (!wasReached) return wrong
    tally.cases += 1
    if (isKill(fault)) tally.kills += 1
    else tally.errors += 1
  }
}

interface Trial {
  readonly violations: readonly string[]
  /** False where the operation ended before the statement that the fault was meant for. */
  readonly wasReached: boolean
}

/** One operation with one fault, and the clean run that follows. */
export async function tryOnce(site: Site, operation: Operation, place: Place): Promise<Trial> {
  await site.begin(operation.state === null ? null : nameOf(operation.state))
  operation.arrange?.(site)
  let act: Act | null = null
  try {
    act = await operation.act(site, place)
    const seen = await look(site, operation, act)
    const violations = [...checkAnswer(operation, act, place), ...checkState(seen), ...operation.check(seen)]
    return { violations: described(place, act, violations), wasReached: act.struck !== null }
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    return { violations: described(place, act, [what]), wasReached: act === null || act.struck !== null }
  }
}

async function look(site: Site, operation: Operation, act: Act): Promise<Seen> {
  const besides = (await operation.afterwards?.(site)) ?? ''
  if (operation.afterwards === undefined) await site.recover()
  const ranAfterwards = countsIn(await site.must('work', '--stop-when-empty'))
  const [counts] = await site.ask(`select (select count(*) from jobs) as live,
    (select count(*) from jobs_attempts where job_id not in (select id from jobs union select id from failed_jobs)) as orphans`)
  const failed = await site.ask(`select envelope, reason,
    (select count(*) from jobs_attempts where job_id = failed_jobs.id) as attempts from failed_jobs order by id`)
  return {
    fate: fateOf(act),
    wasKilled: act.answer === 'killed',
    ranAfterwards,
    lines: site.ledger(),
    failed: failed.map(({ envelope, reason, attempts }) => ({
      k: (JSON.parse(envelope as string) as { payload: { k: number } }).payload.k,
      reason: reason as string,
      attempts: Number(attempts),
    })),
    live: Number(counts?.live),
    orphans: Number(counts?.orphans),
    besides,
  }
}

/** How many attempts a worker settled, by the line with which it stops. */
function countsIn(stdout: string): number {
  const counts = /stopped: (\d+) done, (\d+) retried, (\d+) failed/.exec(stdout)
  if (counts === null) throw new Error(`a worker has stopped without its last line: ${stdout}`)
  const [, done, retried, failed] = counts
  return Number(done) + Number(retried) + Number(failed)
}

function fateOf({ answer }: Act): Fate {
  if (answer === 'killed' || (answer.exit !== 0 && answer.stderr.includes('may or may not'))) return 'unknown'
  return answer.exit === 0 ? 'done' : 'refused'
}

/** What its user saw: the exit code that is documented, a message with a way out, and nothing of our inside. */
function checkAnswer(operation: Operation, { answer, struck }: Act, { store, fault }: Place): readonly string[] {
  if (answer === 'killed') return isKill(fault) ? [] : ['the process was killed']
  const { exit, stderr } = answer
  const documented = struck === null ? [0] : exitsFor(store, operation, { fault, struck })
  return [
    ...(documented.includes(exit) ? [] : [`exit ${exit} instead of ${documented.join(' or ')}`]),
    ...(exit !== 0 && !/^error: .+\n {2}fix: .+/m.test(stderr) ? ['no message with a way out'] : []),
    ...(exit === 0 && /^error:/m.test(stderr) ? ['exit 0 with an error'] : []),
    ...(/^\s+at .+:\d+:\d+/m.test(`${stderr}${answer.stdout}`) ? ['a stack trace'] : []),
    ...(/internal error|SqliteError|PostgresError|injected/.test(stderr) ? ['a message from the inside'] : []),
    ...(struck === null || faultInText(fault).test(stderr) || exit === 0
      ? []
      : ['the message does not name the cause']),
    ...((stderr.match(/store lost/g)?.length ?? 0) > 1 ? ['one outage was told more than once'] : []),
  ]
}

function checkState({ live, orphans }: Seen): readonly string[] {
  return [
    ...(live > 0 ? [`${live} jobs are neither done nor failed after the clean run`] : []),
    ...(orphans > 0 ? [`${orphans} attempts are kept of jobs that do not exist`] : []),
  ]
}

function described(place: Place, act: Act | null, violations: readonly string[]): readonly string[] {
  return violations.length === 0 ? [] : [describe(place, act, violations)]
}

function describe(place: Place, act: Act | null, violations: readonly string[]): string {
  const { store, operation, fault, at } = place
  const statement = act?.struck ? ` (${act.struck.role}: ${act.struck.text.replaceAll(/\s+/g, ' ').slice(0, 80)})` : ''
  const answer =
    act === null || act.answer === 'killed' ? '' : `\n  exit ${act.answer.exit}, stderr: ${act.answer.stderr.trim()}`
  return `${operation} on ${store}, ${fault} at statement ${at}${statement}: ${violations.join('; ')}${answer}\n  replay: ${replayOf(place)}`
}
