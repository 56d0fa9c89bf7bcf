import { setTimeout as wait } from 'node:timers/promises'
import type { AgentProcess } from '../agent-process.ts'
import type { Contest } from '../contest.ts'
import type { Crew } from '../crew.ts'
import { now } from '../peer.ts'
import type { Run } from '../tally.ts'
import { everybody, type Measure } from './measure.ts'

const jobs = 200
const jobMs = 100
const killAfterMs = 500

/** Who started and ended which job, as the processes told before they died. */
class Trace {
  readonly #victim: AgentProcess | undefined
  readonly #held = new Set<number>()
  readonly ends = new Map<number, number>()
  /** When the last job that died with its worker was started again. */
  recoveredAt = 0

  constructor(crew: Crew) {
    this.#victim = crew.members[0]
    crew.onRun((run, member) => this.#take(run, member))
  }

  #take({ n, what, at }: Run, member: AgentProcess): void {
    const isVictim = member === this.#victim
    if (what === 'end') this.ends.set(n, (this.ends.get(n) ?? 0) + 1)
    if (isVictim && what === 'start') this.#held.add(n)
    if (isVictim && what === 'end') this.#held.delete(n)
    if (!isVictim && what === 'start' && this.#held.delete(n)) this.recoveredAt = at
  }

  /** Nothing of the dead one is missing any more, and every job has ended. */
  isWhole(count: number): boolean {
    return this.ends.size >= count && this.#held.size === 0
  }
}

/** One of two workers is killed in the middle of its jobs; how long until its jobs have started elsewhere? */
export const kill: Measure = {
  ...everybody,
  name: 'kill',
  title: 'one of two workers killed',
  from: 'usual',
  figures: [
    { name: 'recovery', unit: 's (Infinity: not within the time that was waited)', better: 'less' },
    { name: 'never', unit: 'jobs that had not ended by then', better: 'less' },
    { name: 'twice', unit: 'jobs that ended twice', better: 'less' },
  ],
  async run(contest, { recoveryMs }) {
    const count = await fillFor(contest)
    const crew = await contest.crew({ processes: 2, concurrency: 10, keepsRuns: true })
    const trace = new Trace(crew)
    await crew.go()
    await crew.until(1, 15_000)
    await wait(killAfterMs)
    if (trace.isWhole(count)) throw new Error('all was done before the kill')
    crew.members[0]?.child.kill('SIGKILL')
    const killedAt = now()
    const isWhole = await crew.wait(() => trace.isWhole(count), recoveryMs)
    return {
      recovery: isWhole ? Math.max(0, trace.recoveredAt - killedAt) / 1_000 : Number.POSITIVE_INFINITY,
      never: count - trace.ends.size,
      twice: [...trace.ends.values()].filter((ends) => ends > 1).length,
    }
  },
}

function fillFor(contest: Contest): Promise<number> {
  return contest.fill({ count: jobs, kind: 'wait', waitMs: jobMs, tries: 2 })
}
