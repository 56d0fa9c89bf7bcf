import { capabilities } from '../history/capabilities.ts'
import type { AskedJob } from '../history/history.ts'
import type { Plan } from '../history/step.ts'
import type { Seeded } from '../simulation/seeded.ts'

/** The queues of a campaign, in the order in which its workers serve them. */
export const queues = ['high', 'default', 'low'] as const

/** What a kind of job is like; drawn anew for each. */
type Make = (seeded: Seeded, now: number) => Omit<Plan, 'key'> & Partial<AskedJob>

/** The kinds of jobs that a campaign dispatches, by their shares. */
const shares: readonly (readonly [number, Make])[] = [
  [670, (seeded) => ({ ms: seeded.whole(0, 5) })],
  // Nothing else of its process runs meanwhile, and it takes longer than the lease of a quick machine.
  [capabilities.beatThread ? 4 : 0, () => ({ ms: 3_000, blocks: true })],
  [100, (seeded) => ({ ms: seeded.whole(0, 5), fail: 1, tries: 3 })],
  [50, (seeded) => ({ ms: seeded.whole(0, 5), fail: 9, tries: 2 })],
  [50, (seeded, now) => ({ ms: 1, notBefore: now + seeded.whole(100, 1_500) })],
  [30, (seeded) => ({ ms: 1, delayMs: seeded.whole(100, 1_500) })],
  [84, (seeded) => ({ ms: seeded.whole(200, 800) })],
  [6, () => ({ ms: 3_000 })],
  [9, () => ({ ms: 1, crash: 1 })],
  [1, () => ({ ms: 1, crash: 99 })],
]

/** As many places of each kind as it has shares. */
const table = shares.flatMap(([share, make]) => Array.from({ length: share }, () => make)) as [Make, ...Make[]]

/** Draws jobs of every kind; no two in one campaign have the same key. */
export class Workload {
  readonly #seeded: Seeded
  #count = 0

  constructor(seeded: Seeded) {
    this.#seeded = seeded
  }

  /** How many jobs were drawn. */
  get count(): number {
    return this.#count
  }

  draw(count: number): readonly AskedJob[] {
    return Array.from({ length: count }, () => this.#one())
  }

  /** Jobs that do nothing but take a moment, spread over all queues and two priorities. */
  drawPlain(count: number, ms: number): readonly AskedJob[] {
    return Array.from({ length: count }, (_, n) => this.#job({ ms, queue: queues[n % 3] as string, priority: n % 2 }))
  }

  #one(): AskedJob {
    const make = this.#seeded.pick(table)
    return this.#job({
      queue: this.#seeded.pick(queues),
      priority: this.#seeded.whole(-1, 1),
      ...make(this.#seeded, Date.now()),
    })
  }

  #job({ ms, fail, notBefore, crash, blocks, ...terms }: Omit<Plan, 'key'> & Partial<AskedJob>): AskedJob {
    const key = `k${++this.#count}`
    const plan = JSON.stringify({ ms, fail, notBefore, crash, blocks })
    const usual = { queue: 'default', priority: 0, tries: 1, backoffMs: 100, delayMs: 0, maxCrashes: 3 }
    // What a JSON parser and a JSON writer would change between them.
    const payload = String.raw`{"key":"${key}", "b":1,"a":12345678901234567890.10,"__proto__":{},"text":"\u00e9\ud800",${plan.slice(1)}`
    return { ...usual, ...terms, key, job: 'step', payload }
  }
}

/** The jobs as a file for `khepri dispatch`. */
export function fileOf(jobs: readonly AskedJob[]): string {
  return jobs
    .map(({ job, queue, priority, tries, backoffMs, delayMs, maxCrashes, payload }) => {
      const terms = {
        job,
        queue,
        priority,
        tries,
        backoff: `${backoffMs}ms`,
        maxCrashes,
        ...(delayMs > 0 && { delay: `${delayMs}ms` }),
      }
      return `${JSON.stringify(terms).slice(0, -1)},"payload":${payload}}\n`
    })
    .join('')
}
