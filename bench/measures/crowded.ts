import type { Contest } from '../contest.ts'
import type { JobList } from '../job-list.ts'
import { type Measure, perSecond, rate, type Scale } from './measure.ts'

const longMs = 600_000
const dayMs = 86_400_000

type Crowd = (contest: Contest, scale: Scale) => Promise<Partial<JobList>>

/** A crowd is put in first; what is measured is a drain of the ordinary number beside it. */
const crowded = (name: string, title: string, crowd: Crowd): Measure => ({
  name,
  title,
  from: 'full',
  stores: ['sqlite', 'postgres'],
  onlyFast: true,
  asksForDurability: false,
  figures: [rate],
  async run(contest, scale) {
    const count = await contest.fill({ ...(await crowd(contest, scale)), count: scale.jobs })
    const crew = await contest.crew({})
    await crew.go()
    return perSecond(await crew.until(count, scale.boxMs))
  },
})

/** Lets a crew fail all of them, which is how they come to be there. */
async function failAll(contest: Contest, { crowd }: Scale): Promise<void> {
  const count = await contest.fill({ count: crowd, failForGood: 100 })
  const crew = await contest.crew({})
  await crew.go()
  await crew.wait(() => crew.count >= count, longMs)
  await Promise.all(crew.members.map((member) => member.stop()))
}

/** Whether a million rows in the way are felt. */
export const crowds: readonly Measure[] = [
  crowded('drain-waiting', 'sustained drain, 1,000,000 waiting', async (contest, { crowd }) => {
    await contest.fill({ count: crowd })
    return {}
  }),
  crowded('drain-scheduled', 'drain, 1,000,000 scheduled of a better priority', async (contest, { crowd }) => {
    await contest.fill({ count: crowd, delayMs: dayMs, urgent: true })
    return {}
  }),
  crowded('drain-failed', 'drain, 1,000,000 failed', async (contest, scale) => {
    await failAll(contest, scale)
    return {}
  }),
]
