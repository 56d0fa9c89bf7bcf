import { setTimeout as wait } from 'node:timers/promises'
import type { Handle } from './peer.ts'
import { Tally } from './tally.ts'

/** The environment variable that asks for a report of each single run. */
export const keepRunsVariable = 'BENCH_KEEP_RUNS'

/** Makes what every contestant's workers run: it counts, waits or throws as the payload says. */
export function countingHandle(): Handle {
  const tally = new Tally(process.env[keepRunsVariable] === '1')
  return (payload, attempt) => {
    tally.start(payload.n, payload.at)
    if (payload.kind === 'wait') return wait(payload.ms).then(() => tally.end(payload.n, attempt))
    tally.end(payload.n, attempt)
    if (attempt <= payload.failures) throw new Error('planned')
    return undefined
  }
}
