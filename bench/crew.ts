import { setTimeout as wait } from 'node:timers/promises'
import type { AgentProcess } from './agent-process.ts'
import { now } from './peer.ts'
import type { Run, Tallied } from './tally.ts'

/** How a crew has worked. */
export interface Worked {
  readonly count: number
  /** From the first handler's start to the last one's end. */
  readonly ms: number
  /** How many had ended at moments of this time; ms since the first start. */
  readonly course: readonly { readonly ms: number; readonly count: number }[]
}

/** The worker processes of one contest, and what they have done together. */
export class Crew {
  readonly members: AgentProcess[] = []
  readonly #go: () => Promise<void>
  readonly #tallies = new Map<AgentProcess, Tallied>()
  readonly #runListeners: ((run: Run, member: AgentProcess) => void)[] = []
  readonly #seen: { at: number; count: number }[] = []
  #wake = (): void => {}

  constructor(members: readonly AgentProcess[], go: () => Promise<void>) {
    this.#go = go
    for (const member of members) this.add(member)
  }

  add(member: AgentProcess): void {
    this.members.push(member)
    member.onTally((tallied) => this.#take(member, tallied))
  }

  /** Lets all begin. */
  go(): Promise<void> {
    return this.#go()
  }

  onRun(listener: (run: Run, member: AgentProcess) => void): void {
    this.#runListeners.push(listener)
  }

  get count(): number {
    return [...this.#tallies.values()].reduce((sum, { ended }) => sum + ended, 0)
  }

  /** Waits until so many first attempts have ended, or the time is over; a contestant that did nothing has failed. */
  async until(count: number, boxMs: number): Promise<Worked> {
    await this.wait(() => this.count >= count, boxMs)
    const tallies = [...this.#tallies.values()].filter(({ firstAt }) => firstAt > 0)
    if (tallies.length === 0) throw new Error(`no job ran within ${boxMs} ms`)
    const firstAt = Math.min(...tallies.map((each) => each.firstAt))
    const lastAt = Math.max(...tallies.map((each) => each.lastAt))
    const course = this.#seen.map((each) => ({ ms: each.at - firstAt, count: each.count }))
    return { count: this.count, ms: lastAt - firstAt, course }
  }

  /** Waits until something is so, looking at each report; false: the time was over before. */
  async wait(isSo: () => boolean, boxMs: number): Promise<boolean> {
    const deadline = now() + boxMs
    while (!isSo()) {
      const leftMs = deadline - now()
      if (leftMs <= 0) return false
      const timer = new AbortController()
      const reported = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      await Promise.race([reported, wait(leftMs, undefined, { signal: timer.signal }).catch(() => {})])
      timer.abort()
    }
    return true
  }

  #take(member: AgentProcess, tallied: Tallied): void {
    this.#tallies.set(member, tallied)
    this.#seen.push({ at: tallied.lastAt, count: this.count })
    for (const run of tallied.runs) for (const listener of this.#runListeners) listener(run, member)
    this.#wake()
  }
}
