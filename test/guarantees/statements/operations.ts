import type { Plan } from './faults.ts'
import type { Act, Line, Site } from './site.ts'

/**
 * How an act ended, as its user was told. done: exit 0. refused: nothing was written. unknown: it may or may not have
 * happened, because it said so or was killed.
 */
export type Fate = 'done' | 'refused' | 'unknown'

/** What is to be seen after an act and a clean run that followed it. */
export interface Seen {
  readonly fate: Fate
  readonly wasKilled: boolean
  /** Handlers of the clean run that started, as its last line counts them. */
  readonly ranAfterwards: number
  readonly lines: readonly Line[]
  /** `k` of each failed job, why it failed, and how many attempts are kept of it. */
  readonly failed: readonly { readonly k: number; readonly reason: string; readonly attempts: number }[]
  /** Jobs that are neither done nor failed. */
  readonly live: number
  /** Recorded attempts whose job does not exist. */
  readonly orphans: number
  /** What the operation's own clean run saw besides. */
  readonly besides: string
}

/** One operation of the store, as a user starts it, and what is allowed to have come of it. */
export interface Operation {
  readonly name: string
  /** The state that it starts from; null: an empty place. */
  readonly state: string | null
  /**
   * command: an error ends it, with the error's exit code. repeatable: the same, and what may have happened is simply
   * done again. worker: an error of the store ends it only before it has joined; later it waits and goes on.
   */
  readonly kind: 'command' | 'repeatable' | 'worker'
  /** Files that it needs. */
  readonly arrange?: (site: Site) => void
  readonly act: (site: Site, plan: Plan) => Promise<Act>
  /** Comes before the clean work; what it answers is `besides`. */
  readonly afterwards?: (site: Site) => Promise<string>
  /** Says what must not be; nothing where all is well. */
  readonly check: (seen: Seen) => readonly string[]
}

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1)

/** More than two INSERTs of SQLite. */
const many = 90

const dispatches: readonly Operation[] = [
  {
    name: 'dispatch one',
    state: 'migrated',
    kind: 'command',
    act: (site, plan) => site.run(['dispatch', '--job=done', '--payload={"k":1}'], plan),
    check: (seen) => allOrNothing(seen, range(1)),
  },
  {
    name: 'dispatch many',
    state: 'migrated',
    kind: 'command',
    act: (site, plan) => site.run(['dispatch', jobFile(site, range(many), () => ({}))], plan),
    check: (seen) => allOrNothing(seen, range(many)),
  },
  {
    name: 'dispatch many with unique keys',
    state: 'migrated',
    kind: 'repeatable',
    act: (site, plan) => site.run(['dispatch', jobFile(site, range(3), (k) => ({ unique: `key-${k}` }))], plan),
    check: (seen) => allOrNothing(seen, range(3)),
  },
]

function jobFile(site: Site, ks: readonly number[], terms: (k: number) => object): string {
  return site.write(
    'jobs.ndjson',
    ks.map((k) => `${JSON.stringify({ job: 'done', payload: { k }, ...terms(k) })}\n`).join(''),
  )
}

/** Every job of a dispatch runs once, or none does; which of the two its exit code has said. */
function allOrNothing({ fate, lines, failed }: Seen, ks: readonly number[]): readonly string[] {
  const ran = lines.filter(({ what }) => what === 'start').map(({ k }) => k)
  const isAll = sameNumbers(ran, ks)
  return [
    ...(isAll || ran.length === 0 ? [] : [`of the jobs ${brief(ks)} there ran ${brief(ran)}`]),
    ...(fate === 'done' && !isAll ? [`exit 0, and there ran ${brief(ran)} instead of ${brief(ks)}`] : []),
    ...(fate === 'refused' && ran.length > 0 ? [`it says that nothing was written, and there ran ${brief(ran)}`] : []),
    ...(failed.length > 0 ? [`failed: ${brief(failed.map(({ k }) => k))}`] : []),
  ]
}

/** How a job of each kind goes when nothing is in the way: the attempts that start, and whether it fails in the end. */
const courses: Readonly<Record<string, { readonly attempts: readonly number[]; readonly fails: boolean }>> = {
  done: { attempts: [1], fails: false },
  retry: { attempts: [1, 2], fails: false },
  fail: { attempts: [1], fails: true },
  release: { attempts: [1, 1], fails: false },
}

const works: readonly Operation[] = Object.entries(courses).map(([kind, course]) => ({
  name: `work: ${kind}`,
  state: `one ${kind}`,
  kind: 'worker',
  act: (site, plan) => site.run(['work', '--stop-when-empty'], plan),
  check: (seen) => [...startsAreExplained(seen, course.attempts), ...endsAsItShould(seen, course.fails)],
}))

/** One more start than without a fault only where the worker was killed, and then with the attempt that was cut short. */
function startsAreExplained(
  { fate, wasKilled, lines, ranAfterwards }: Seen,
  course: readonly number[],
): readonly string[] {
  const starts = lines.filter(({ what }) => what === 'start')
  const attempts = starts.map(({ attempt }) => attempt)
  const isExplained =
    isSame(attempts, course) || (wasKilled && attempts.some((_, at) => isSame(attempts.toSpliced(at, 1), course)))
  const most = wasKilled ? 1 : 0
  const crashes = Math.max(0, ...starts.map((start) => start.crashes))
  return [
    ...(isExplained ? [] : [`attempts ${brief(attempts)} started instead of ${brief(course)}`]),
    ...(crashes > most ? [`${crashes} crashes are counted after ${most} deaths`] : []),
    ...(fate === 'done' && ranAfterwards > 0 ? ['exit 0, and a job was left that could have run'] : []),
  ]
}

function endsAsItShould({ lines, failed, wasKilled }: Seen, fails: boolean): readonly string[] {
  const ends = lines.filter(({ what }) => what === 'end').length
  const hooks = lines.filter(({ what }) => what === 'hook').length
  const mostEnds = fails ? 0 : wasKilled ? 2 : 1
  return [
    ...(ends > mostEnds || (!fails && ends === 0) ? [`the handler came to its end ${ends} times`] : []),
    ...(failed.length === (fails ? 1 : 0) ? [] : [`${failed.length} failed jobs`]),
    ...(hooks > (fails ? 1 : 0) ? [`failed() ran ${hooks} times`] : []),
    ...(fails && !wasKilled && hooks === 0 ? ['failed() did not run'] : []),
    ...failed
      .filter(({ reason, attempts }) => reason !== 'tries' || attempts !== 1)
      .map(
        ({ reason, attempts }) => `it failed because of "${reason}", and ${attempts} attempts are kept instead of 1`,
      ),
  ]
}

const operators: readonly Operation[] = [
  {
    name: 'retry',
    state: 'three failed',
    kind: 'command',
    arrange: (site) => void site.write('mended', ''),
    act: (site, plan) => site.run(['retry', '--all'], plan),
    check: ({ fate, lines, failed }) => {
      const back = lines.filter(({ what }) => what === 'end').map(({ k }) => k)
      const left = failed.map(({ k }) => k)
      return [
        ...(sameNumbers([...back, ...left], range(3))
          ? []
          : [`${brief(back)} ran again and ${brief(left)} are failed, of 1, 2, 3`]),
        ...partsOf(fate, back.length, 3),
        ...lines
          .filter(({ attempt, crashes }) => attempt !== 1 || crashes !== 0)
          .map(({ k }) => `job ${k} did not start anew`),
        ...failed
          .filter(({ attempts }) => attempts !== 1)
          .map(({ k }) => `the attempts of job ${k} are not what they were`),
      ]
    },
  },
  {
    name: 'flush',
    state: 'three failed',
    kind: 'command',
    act: (site, plan) => site.run(['flush', '--all'], plan),
    check: ({ fate, lines, failed }) => [
      ...partsOf(fate, 3 - failed.length, 3),
      ...(lines.length > 0 ? ['a flushed job ran'] : []),
      ...failed
        .filter(({ attempts }) => attempts !== 1)
        .map(({ k }) => `the attempts of job ${k} are not what they were`),
    ],
  },
]

/** Few jobs are one transaction: all of them were changed, or none; and the exit code has said which. */
function partsOf(fate: Fate, changed: number, total: number): readonly string[] {
  if (changed !== 0 && changed !== total) return [`${changed} of ${total} jobs were changed`]
  if (fate === 'done' && changed === 0) return ['exit 0, and no job was changed']
  return fate === 'refused' && changed > 0 ? [`it says that nothing was written, and ${changed} jobs were changed`] : []
}

const migrate: Operation = {
  name: 'migrate',
  state: null,
  kind: 'repeatable',
  act: (site, plan) => site.run(['migrate'], plan),
  afterwards: async (site) => {
    const applied = await site.must('migrate')
    await site.must('migrate', '--check')
    await site.must('dispatch', '--job=done', '--payload={"k":1}')
    return applied
  },
  check: ({ fate, lines, besides }) => [
    ...(lines.filter(({ what }) => what === 'end').length === 1 ? [] : ['the job of the clean run did not run once']),
    ...(fate === 'done' && besides !== '' ? [`exit 0, and the next migrate had something to do: ${besides}`] : []),
  ],
}

const recovery: Operation = {
  name: 'recover',
  state: 'dead workers',
  kind: 'repeatable',
  act: (site, plan) => site.recover(plan),
  afterwards: async (site) => {
    await site.recover()
    const rows = await site.ask('select crashes, suspect, worker from jobs order by id')
    return rows.map(({ crashes, suspect, worker }) => [crashes, Number(suspect), worker ?? 'free'].join(' ')).join(', ')
  },
  check: ({ lines, besides }) => [
    ...(besides === judged ? [] : [`the judgement is [${besides}] instead of [${judged}]`]),
    ...(isSame(sorted(lines.filter(({ what }) => what === 'start').map(({ k }) => k)), range(4))
      ? []
      : ['not every freed job ran once']),
  ],
}

/** Crashes, suspicion (2: held unstarted) and holder of: one alone with its worker, two with one, one whose worker was draining. */
const judged = '1 0 free, 0 1 free, 0 2 free, 0 0 free'

/** Everything that is tried. */
export const operations: readonly Operation[] = [...dispatches, ...works, ...operators, migrate, recovery]

const isSame = (one: readonly number[], other: readonly number[]): boolean => String(one) === String(other)
const sorted = (numbers: readonly number[]): readonly number[] => numbers.toSorted((a, b) => a - b)
const sameNumbers = (one: readonly number[], other: readonly number[]): boolean => isSame(sorted(one), sorted(other))
const brief = (numbers: readonly number[]): string =>
  numbers.length > 8 ? `${numbers.length} jobs` : `[${numbers.join(', ')}]`
