import type { Account } from './account.ts'
import type { Network } from './network.ts'
import type { Record } from './record.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { Timeline } from './timeline.ts'

/** A death on the same machine is seen by its process number; these are a look, a call and their delays. */
const sameHostMs = 2_000

export interface RecoveryParts {
  readonly timeline: Timeline
  readonly record: Record
  readonly network: Network
  readonly accounts: ReadonlyMap<number, Account>
  readonly processes: readonly SimulatedProcess[]
  readonly leaseMs: number
}

/** Accuses the living of leaving the jobs of a killed worker with it for too long. */
export class RecoveryCheck {
  readonly #parts: RecoveryParts

  constructor(parts: RecoveryParts) {
    this.#parts = parts
  }

  killed(victim: SimulatedProcess): void {
    const { timeline, leaseMs } = this.#parts
    const beatMs = leaseMs / 3
    const observers = this.#parts.processes.filter((process) => process !== victim && process.worker !== null)
    for (const observer of observers.filter(({ isToldToDrain }) => !isToldToDrain)) {
      const withinMs = observer.host === victim.host ? sameHostMs : leaseMs + beatMs + sameHostMs
      const killedAt = timeline.now
      timeline.after(withinMs, () => this.#check(victim, observer, killedAt))
    }
  }

  #check(victim: SimulatedProcess, observer: SimulatedProcess, killedAt: number): void {
    const { accounts, record, timeline, leaseMs } = this.#parts
    if (observer.isGone || observer.worker === null || !this.#wasUndisturbed(observer, killedAt - leaseMs)) return
    const held = [...accounts.values()].filter(({ holding }) => holding?.process === victim)
    if (held.length === 0) return
    const ids = held.map(({ id }) => id)
    const afterMs = (timeline.now - killedAt).toFixed(0)
    record.accuse(6, `${afterMs} ms after its death ${victim.name} still holds jobs, beside ${observer.name}`, ids)
  }

  #wasUndisturbed({ disturbedUntil, heldUntil, startedAt }: SimulatedProcess, since: number): boolean {
    const { network } = this.#parts
    const hasWeather = network.storms.some(({ process, until }) => process === null && until > since)
    return (
      !hasWeather &&
      network.clockSets.every((at) => at < since) &&
      Math.max(disturbedUntil, heldUntil, startedAt) < since
    )
  }
}
