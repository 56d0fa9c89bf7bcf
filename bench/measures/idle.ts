import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { costOf } from '../agent-process.ts'
import { builtFolder } from '../build.ts'
import type { Contest } from '../contest.ts'
import { everybody, type Measure } from './measure.ts'
import { restingCrew } from './pick-up.ts'

const settleMs = 2_000

/** What a worker costs that has nothing to do; the limit is a process with the same driver and thread that never looks. */
export const idle: Measure = {
  ...everybody,
  name: 'idle',
  title: 'a worker with nothing to do',
  from: 'usual',
  figures: [
    { name: 'cpu', unit: 'ms of a core in 30 s', better: 'less' },
    { name: 'rss', unit: 'MB', better: 'less' },
  ],
  async run(contest, { idleMs }) {
    if (contest.contestant.role === 'limit') return floor(contest, idleMs)
    const [worker] = (await restingCrew(contest)).members
    return rest(worker?.child.pid ?? 0, idleMs)
  },
}

async function floor({ place }: Contest, idleMs: number): Promise<Readonly<Record<string, number>>> {
  const child = spawn(process.execPath, [join(builtFolder, 'idle-floor.js'), place.database], { stdio: 'ignore' })
  try {
    return await rest(child.pid ?? 0, idleMs)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

async function rest(pid: number, idleMs: number): Promise<Readonly<Record<string, number>>> {
  await wait(settleMs)
  const before = costOf(pid)
  await wait(idleMs)
  const after = costOf(pid)
  return { cpu: ((after.cpuMs - before.cpuMs) / idleMs) * 30_000, rss: after.rss / 1e6 }
}
