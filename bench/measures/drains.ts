import type { Contest, CrewOptions } from '../contest.ts'
import type { Worked } from '../crew.ts'
import type { JobList } from '../job-list.ts'
import { everybody, type Measure, perSecond, rate, type Scale } from './measure.ts'

/** What a drain is made of; fullJobs: another number of jobs than the form's. */
interface Drain extends CrewOptions {
  readonly name: string
  readonly title: string
  readonly from: Measure['from']
  readonly jobs?: Partial<JobList>
  readonly fullJobs?: number
  /** Some fail for good: they are not worked off. */
  readonly leaves?: boolean
}

/** Fills, lets the workers loose, and checks that nothing is left where everything was run. */
async function drain(contest: Contest, parts: Partial<JobList>, options: CrewOptions, boxMs: number): Promise<Worked> {
  const count = await contest.fill(parts)
  const crew = await contest.crew(options)
  await crew.go()
  const worked = await crew.until(count, boxMs)
  await Promise.all(crew.members.map((member) => member.stop()))
  const left = worked.count >= count ? await contest.left() : 0
  if (left > 0) throw new Error(`${left} of ${count} jobs have run and are still there`)
  return worked
}

const draining = ({ name, title, from, jobs = {}, fullJobs, leaves = false, ...options }: Drain): Measure => ({
  ...everybody,
  name,
  title,
  from,
  figures: [rate],
  async run(contest, scale) {
    const count = fullJobs ?? scale.jobs
    const worked = leaves
      ? await firstPass(contest, { ...jobs, count }, options, scale)
      : await drain(contest, { ...jobs, count }, options, drainBoxMs(scale, count))
    return perSecond(worked)
  },
})

const drainBoxMs = ({ boxMs, jobs }: Scale, count: number): number => boxMs * Math.max(1, count / jobs)

/** Until every job has had its first try: what failures cost, without the waits that backoffs are made of. */
async function firstPass(
  contest: Contest,
  parts: Partial<JobList>,
  options: CrewOptions,
  { boxMs }: Scale,
): Promise<Worked> {
  const count = await contest.fill(parts)
  const crew = await contest.crew(options)
  await crew.go()
  return crew.until(count, boxMs)
}

/** How fast jobs get done. */
export const drains: readonly Measure[] = [
  draining({ name: 'drain-1', title: 'drain of no-ops, one process', from: 'quick', processes: 1 }),
  draining({ name: 'drain-2', title: 'drain of no-ops, 2 processes', from: 'usual', processes: 2 }),
  draining({ name: 'drain-4', title: 'drain of no-ops, 4 processes', from: 'usual', processes: 4 }),
  draining({ name: 'drain-200k-1', title: 'drain of 200,000 no-ops, one process', from: 'full', fullJobs: 200_000 }),
  draining({
    name: 'drain-200k-4',
    title: 'drain of 200,000 no-ops, 4 processes',
    from: 'full',
    fullJobs: 200_000,
    processes: 4,
  }),
  draining({ name: 'drain-1k', title: 'drain, payloads of 1 KB', from: 'usual', jobs: { bytes: 1_000 } }),
  draining({ name: 'drain-10k', title: 'drain, payloads of 10 KB', from: 'full', jobs: { bytes: 10_000 } }),
  draining({
    name: 'drain-wait',
    title: 'drain of jobs that wait 1 ms, 50 at once',
    from: 'quick',
    jobs: { kind: 'wait', waitMs: 1 },
    concurrency: 50,
  }),
  draining({
    name: 'drain-failing',
    title: 'drain, 10 % fail once and 1 % for good',
    from: 'usual',
    jobs: { failOnce: 10, failForGood: 1 },
    leaves: true,
  }),
]
