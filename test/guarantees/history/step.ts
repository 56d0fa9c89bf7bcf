import type { JobContext } from '../../../src/core/job.ts'
import { type LedgerLine, plannedFailure, type RunOutcome } from './history.ts'

/** What a job of a campaign is to do; its payload. */
export interface Plan {
  readonly key: string
  /** How long it works. */
  readonly ms: number
  /** It fails at so many attempts, from the first. */
  readonly fail?: number
  /** Before this moment, epoch ms, it asks to be given back. */
  readonly notBefore?: number
  /** It kills its worker this many times. */
  readonly crash?: number
  /** It lets nothing else of its process run while it works. */
  readonly blocks?: boolean
}

/** Where a job runs: a real process, or one that a test plays. */
export interface World {
  readonly worker: string
  readonly pid: number
  now(): number
  /** Resolves early when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  block(ms: number): void
  /** Writes one line of the ledger, at once. */
  note(line: LedgerLine): void
  /** Ends the process without a word. */
  crash(): Promise<never>
}

/** Carries out a plan, and writes down when it starts and how it ends. */
export async function step(plan: Plan, context: JobContext, world: World): Promise<void> {
  const { now, worker, pid } = world
  const facts = () => ({ id: context.id, key: plan.key, attempt: context.attempt, worker, pid, ms: now() })
  const end = (outcome: RunOutcome): void => world.note({ event: 'end', ...facts(), outcome })
  world.note({ event: 'start', ...facts() })
  if (context.crashes < (plan.crash ?? 0)) {
    end('crashed')
    await world.crash()
  }
  if (plan.blocks) world.block(plan.ms)
  else await world.wait(plan.ms, context.signal)
  if (context.signal.aborted) {
    end(outcomeOf(context.signal.reason))
    throw context.signal.reason
  }
  if (now() < (plan.notBefore ?? 0)) {
    end('released')
    context.release('200ms')
  }
  if (context.attempt <= (plan.fail ?? 0)) {
    end('threw')
    throw new Error(plannedFailure(plan.key, context.attempt))
  }
  end('done')
}

/** Why the signal aborted, by the name of its reason. */
function outcomeOf(reason: unknown): RunOutcome {
  const { name } = reason as Error
  if (name === 'LeaseLost') return 'lost'
  return name === 'Interrupted' ? 'interrupted' : 'threw'
}
