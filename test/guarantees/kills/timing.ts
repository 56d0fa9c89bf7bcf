import { capabilities } from '../history/capabilities.ts'
import type { Timing } from '../history/history.ts'

/** The lease where commands are as quick as they should be. */
const leastLeaseMs = 2_000

/**
 * The durations that a campaign goes by, from how long one small command takes.
 *
 * A machine on which that takes seconds starves processes for seconds: a lease must outlast that, or workers that live
 * are silent for longer than it and dead by their own terms.
 */
export function timingFor(commandMs: number): Timing {
  const leaseMs = Math.round(Math.max(leastLeaseMs, 5 * commandMs))
  const beatMs = Math.min(leaseMs / 3, 10_000)
  return {
    leaseMs,
    beatMs,
    // A beat may lie just before the death, and a look at the neighbours just before the end of the lease.
    recoverMs: capabilities.deathByPid ? 2_000 : leaseMs + 2 * beatMs,
    // It waits 5 s for its turn, and for the longest job of a worker that lets its slots run empty.
    recoverSuspectMs: capabilities.suspectsGetATurn ? 2_000 + 5_000 + 3_000 : null,
    promptMs: leaseMs / 2,
    slackMs: 2.5 * leaseMs,
  }
}
