import { attemptCases } from './cases/attempts.ts'
import { beatCases } from './cases/beats.ts'
import { cancelCases } from './cases/cancels.ts'
import { conflictCases } from './cases/conflicts.ts'
import { continuationCases } from './cases/continuations.ts'
import { countCases } from './cases/counts.ts'
import { deathCases } from './cases/deaths.ts'
import { enqueueCases } from './cases/enqueue.ts'
import { failedCases } from './cases/failed.ts'
import { failedAgainCases } from './cases/failed-again.ts'
import { fenceCases } from './cases/fences.ts'
import { filterCases } from './cases/filters.ts'
import { followUpCases } from './cases/follow-ups.ts'
import { listingCases } from './cases/listings.ts'
import { lookCases } from './cases/looks.ts'
import { nameCases } from './cases/names.ts'
import { nextDueCases } from './cases/next-due.ts'
import { orderCases } from './cases/order.ts'
import { parentFailureCases } from './cases/parent-failures.ts'
import { pauseCases } from './cases/pauses.ts'
import { pruneCases } from './cases/prunes.ts'
import { recoveryCases } from './cases/recovery.ts'
import { reserveCases } from './cases/reserve.ts'
import { scheduleCases } from './cases/schedules.ts'
import { settleCases } from './cases/settle.ts'
import { suspectCases } from './cases/suspects.ts'
import { uniqueCases } from './cases/unique.ts'
import type { ConformanceCase } from './context.ts'

/** Every case, from dispatch to the failed jobs. */
export const allCases: readonly ConformanceCase[] = [
  ...enqueueCases,
  ...orderCases,
  ...reserveCases,
  ...settleCases,
  ...fenceCases,
  ...followUpCases,
  ...continuationCases,
  ...parentFailureCases,
  ...uniqueCases,
  ...conflictCases,
  ...filterCases,
  ...pauseCases,
  ...nextDueCases,
  ...beatCases,
  ...recoveryCases,
  ...deathCases,
  ...suspectCases,
  ...lookCases,
  ...cancelCases,
  ...attemptCases,
  ...failedCases,
  ...failedAgainCases,
  ...pruneCases,
  ...countCases,
  ...listingCases,
  ...nameCases,
  ...scheduleCases,
]
