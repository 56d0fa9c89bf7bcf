import { Crew } from '../crew.ts'
import { now } from '../peer.ts'
import { median } from '../quantiles.ts'
import { everybody, type Measure } from './measure.ts'

/** From the start of a worker's process to the first line of its first handler; the job is there already. */
export const cold: Measure = {
  ...everybody,
  name: 'cold',
  title: 'cold start to the first handler',
  from: 'quick',
  figures: [{ name: 'ms', unit: 'ms', better: 'less' }],
  async run(contest, { coldStarts }) {
    const times: number[] = []
    for (let start = 0; start < coldStarts; start++) {
      await contest.fill({ count: 1 })
      const startedAt = now()
      const worker = contest.worker({ keepsRuns: true })
      const crew = new Crew([worker], async () => {})
      crew.onRun(({ what, at }) => {
        if (what === 'start') times.push(at - startedAt)
      })
      await crew.until(1, 15_000)
      await worker.stop()
    }
    return { ms: median(times) }
  },
}
