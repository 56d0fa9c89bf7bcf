import {
  judgeBounds,
  judgeDispatches,
  judgeFailures,
  judgeFates,
  judgeIds,
  judgeRetries,
  judgeTerms,
} from './endings.ts'
import { evidenceOf } from './evidence.ts'
import type { History } from './history.ts'
import { judgeOrder } from './order.ts'
import { judgeProcesses, judgeSoundness } from './processes.ts'
import { judgeRecovery } from './recovery.ts'
import { judgeFences, judgeLeases, judgeSecondStarts } from './second-starts.ts'
import type { Violation } from './violation.ts'

const rules = [
  judgeSoundness,
  judgeDispatches,
  judgeIds,
  judgeFates,
  judgeSecondStarts,
  judgeFences,
  judgeLeases,
  judgeRecovery,
  judgeBounds,
  judgeTerms,
  judgeFailures,
  judgeRetries,
  judgeProcesses,
  judgeOrder,
]

/**
 * Decides which promises a history breaks; none, if the result is empty.
 *
 * Pure: it looks at nothing but what handlers, clients and processes were seen to do.
 */
export function violationsIn(history: History): readonly Violation[] {
  const evidence = evidenceOf(history)
  return rules.flatMap((rule) => rule(evidence))
}
