import { setTimeout as wait } from 'node:timers/promises'
import type { Contest } from '../contest.ts'
import type { Crew } from '../crew.ts'
import { quantile } from '../quantiles.ts'
import { everybody, type Measure } from './measure.ts'

const everyMs = 50
/** Before it is at rest a worker may look more often. */
const restMs = 1_000

/** Starts one worker and waits until it has done a first job and rests. */
export async function restingCrew(contest: Contest): Promise<Crew> {
  const crew = await contest.crew({ keepsRuns: true })
  await contest.fill({ count: 1 })
  await crew.go()
  await crew.until(1, 15_000)
  await wait(restMs)
  return crew
}

const percentile = (name: string) => ({ name, unit: 'ms', better: 'less' }) as const

/** From the call that adds a job to the first line of its handler in another process. */
export const pickUp: Measure = {
  ...everybody,
  name: 'pick-up',
  title: 'pick-up by another process, 20 a second',
  from: 'quick',
  figures: [percentile('p50'), percentile('p95'), percentile('p99')],
  async run(contest, { pickUps }) {
    const crew = await restingCrew(contest)
    const ages: number[] = []
    crew.onRun(({ what, ageMs }) => {
      if (what === 'start') ages.push(ageMs)
    })
    await contest.client.ask('trickle', { list: contest.list({ count: pickUps }), everyMs })
    await crew.wait(() => ages.length >= pickUps, 10_000)
    return { p50: quantile(ages, 0.5), p95: quantile(ages, 0.95), p99: quantile(ages, 0.99) }
  },
}
