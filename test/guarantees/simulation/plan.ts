import type { Backoff } from '../../../src/core/backoff.ts'
import type { Filter } from '../../../src/core/store/store.ts'
import type { WorkOptions } from '../../../src/core/work.ts'
import type { Weather } from './network.ts'
import { Seeded } from './seeded.ts'

/** What a handler does in one run. `obeys`: it ends as soon as its signal aborts; otherwise it does not look at it. */
export interface Act {
  readonly kind:
    | 'return'
    | 'throw'
    | 'final'
    | 'retry after'
    | 'release'
    /** Takes its whole process down. */
    | 'crash'
    /** Blocks the event loop. */
    | 'block'
    /** Throws from a timer of its own while it runs. */
    | 'throw aside'
    /** Throws from a timer of its own when it has ended. */
    | 'throw late'
  readonly ms: number
  readonly obeys: boolean
}

/** What a failed() hook does. */
export interface HookAct {
  readonly ms: number
  readonly throws: boolean
}

/** One job as a client dispatches it. `stranger` is a name that nobody knows, `rare` one that some workers do not. */
export interface JobPlan {
  readonly n: number
  readonly job: 'plain' | 'hooked' | 'rare' | 'stranger'
  readonly queue: string
  readonly priority: number
  readonly delayMs: number
  readonly tries: number
  readonly backoff: Backoff
  readonly timeoutMs: number | null
  readonly maxCrashes: number
  readonly unique: string | null
  readonly isPoison: boolean
  /** One for each run, in turn; whatever comes after the last one returns at once. */
  readonly acts: readonly Act[]
  readonly hook: HookAct
}

/** How one worker is started, at first and after each of its ends. */
export interface WorkerPlan {
  readonly options: WorkOptions
  readonly knowsRare: boolean
  /** Cannot import the module of `plain`. */
  readonly isBroken: boolean
  /** As the command line does; otherwise from its event loop. */
  readonly beatsFromThread: boolean
  /** Rounds that may be under way at once. */
  readonly flights: number
}

/** Something that happens at a moment. Worker numbers are places: what runs there at that time is meant. */
export type Happening =
  | { readonly kind: 'dispatch'; readonly jobs: readonly JobPlan[]; readonly dies: boolean }
  | { readonly kind: 'kill' | 'drain' | 'abort' | 'quiet' | 'resume'; readonly worker: number }
  | { readonly kind: 'stop'; readonly worker: number; readonly forMs: number }
  | { readonly kind: 'storm'; readonly worker: number | null; readonly weather: Weather; readonly forMs: number }
  | { readonly kind: 'set clock'; readonly worker: number; readonly byMs: number }
  | { readonly kind: 'retry failed' }
  | { readonly kind: 'cancel'; readonly queue: string }
  | { readonly kind: 'pause queue' | 'resume queue'; readonly queue: string }

export interface Plan {
  readonly seed: number
  readonly leaseMs: number
  /** One machine and its clock for the store and every worker, as with SQLite; otherwise each has its own. */
  readonly isOneHost: boolean
  readonly workers: readonly WorkerPlan[]
  /** How long faults go on. */
  readonly faultsMs: number
  readonly happenings: readonly (Happening & { readonly at: number })[]
}

export const queues = ['high', 'mail', 'low'] as const

const hourMs = 3_600_000

/** Families of trouble; a run has some of them and not the others, which finds more than a little of each. */
const families = [
  'kill',
  'stop',
  'storm',
  'blackout',
  'clock',
  'drain',
  'operator',
  'cancel',
  'crash',
  'long',
  'stuck',
] as const
type Family = (typeof families)[number]

/**
 * Draws what happens in the run of one seed.
 *
 * Source of the families: Groce et al., "Swarm Testing", ISSTA 2012.
 */
export function planFor(seed: number): Plan {
  return new Planner(seed).plan()
}

const usualActs: readonly [Act['kind'], ...Act['kind'][]] = [
  ...(['return', 'return', 'return', 'throw', 'throw', 'throw'] as const),
  ...(['final', 'retry after', 'release', 'block', 'throw aside', 'throw late'] as const),
]

class Planner {
  readonly #seed: number
  readonly #random: Seeded
  readonly #has: ReadonlySet<Family>
  readonly #leaseMs: number
  readonly #faultsMs: number
  readonly #workers: number
  #n = 0

  constructor(seed: number) {
    this.#seed = seed
    this.#random = new Seeded(seed)
    this.#has = new Set(families.filter(() => this.#random.chance(0.4)))
    this.#leaseMs = this.#random.pick([3_000, 6_000, 15_000])
    this.#faultsMs = this.#leaseMs * this.#random.between(2, 6)
    this.#workers = this.#random.whole(1, 3)
  }

  plan(): Plan {
    const random = this.#random
    return {
      seed: this.#seed,
      leaseMs: this.#leaseMs,
      isOneHost: random.chance(0.5),
      workers: Array.from({ length: this.#workers }, (_, index) => this.#workerPlan(index)),
      faultsMs: this.#faultsMs,
      happenings: [...this.#dispatches(), ...this.#troubles()].sort((a, b) => a.at - b.at),
    }
  }

  #workerPlan(index: number): WorkerPlan {
    const random = this.#random
    const knowsRare = random.chance(0.7)
    const options: WorkOptions = {
      ...steady(`worker-${index}`, this.#leaseMs),
      queues: random.pick<Filter['queues']>(['all', 'all', [['high'], ['mail', 'low']], [['low', 'high', 'mail']]]),
      concurrency: random.whole(1, 3),
      restMs: random.chance(0.1) ? 200 : 0,
      once: random.chance(0.05),
      maxJobs: random.chance(0.1) ? 3 : null,
      stopWhenEmpty: random.chance(0.05),
      drainTimeoutMs: random.chance(0.3) ? this.#leaseMs / 2 : null,
      unknownJobs: random.chance(knowsRare ? 0.3 : 0.8) ? 'wait' : 'fail',
    }
    const isBroken = random.chance(0.05)
    return { options, knowsRare, isBroken, beatsFromThread: random.chance(0.5), flights: random.whole(1, 2) }
  }

  #dispatches(): (Happening & { at: number })[] {
    const random = this.#random
    return Array.from({ length: random.whole(2, 5) }, (_, index) => ({
      kind: 'dispatch' as const,
      at: index === 0 ? 0 : random.between(0, this.#faultsMs),
      jobs: Array.from({ length: random.whole(1, 5) }, () => this.#jobPlan()),
      dies: this.#has.has('kill') && random.chance(0.2),
    }))
  }

  #jobPlan(): JobPlan {
    const random = this.#random
    const job = random.pick<JobPlan['job']>(['plain', 'plain', 'plain', 'hooked', 'hooked', 'rare', 'plain', 'hooked'])
    return {
      n: this.#n++,
      job: random.chance(0.03) ? 'stranger' : job,
      queue: random.pick(queues),
      priority: random.whole(-1, 1),
      delayMs: random.chance(0.2) ? Math.floor(random.between(0, this.#leaseMs)) : 0,
      tries: random.whole(1, 4),
      backoff: this.#backoff(),
      timeoutMs: this.#has.has('stuck') && random.chance(0.5) ? random.whole(500, 5_000) : null,
      maxCrashes: random.pick([3, 3, 2, 1, 0]),
      unique: random.chance(0.15) ? `key-${random.whole(1, 3)}` : null,
      isPoison: random.chance(0.03),
      acts: Array.from({ length: random.whole(0, 4) }, () => this.#act()),
      hook: { ms: random.chance(0.1) ? 40_000 : random.between(0, 200), throws: random.chance(0.2) },
    }
  }

  #backoff(): Backoff {
    return this.#random.pick<Backoff>([
      { kind: 'none' },
      { kind: 'fixed', delayMs: 500 },
      { kind: 'exponential', baseMs: 300, maxMs: 5_000, jitter: true },
    ])
  }

  #act(): Act {
    const random = this.#random
    const kind = this.#has.has('crash') && random.chance(0.2) ? 'crash' : random.pick(usualActs)
    const isLong = this.#has.has('long') && random.chance(0.3)
    const isStuck = this.#has.has('stuck') && random.chance(0.3)
    const usualMs = random.chance(0.5) ? 0 : random.between(0, 800)
    const ms = isLong ? this.#leaseMs * random.between(1, 3) : isStuck ? random.between(5_000, 16_000) : usualMs
    return { kind, ms, obeys: !isStuck && random.chance(0.7) }
  }

  #troubles(): (Happening & { at: number })[] {
    const random = this.#random
    const happenings: (Happening & { at: number })[] = []
    const add = (family: Family, most: number, draw: () => readonly Happening[]): void => {
      if (!this.#has.has(family)) return
      for (let left = random.whole(1, most); left > 0; left--) {
        const at = random.between(0, this.#faultsMs)
        for (const each of draw()) happenings.push({ ...each, at })
      }
    }
    const worker = (): number => random.whole(0, this.#workers - 1)
    const aWhile = (): number => this.#leaseMs * random.pick([0.05, 0.3, 1.2, 2]) * random.between(0.5, 1.5)
    const weather = (): Weather => random.pick<Weather>(['slow', 'flaky', 'flaky', 'refused', 'silent'])

    add('kill', 4, () => [{ kind: 'kill', worker: worker() }])
    add('stop', 3, () => [{ kind: 'stop', worker: worker(), forMs: aWhile() }])
    add('storm', 4, () => [{ kind: 'storm', worker: worker(), weather: weather(), forMs: aWhile() }])
    add('blackout', 2, () => [{ kind: 'storm', worker: null, weather: weather(), forMs: aWhile() }])
    add('clock', 2, () => [
      { kind: 'set clock', worker: worker(), byMs: random.pick([hourMs, -hourMs, 20_000, -20_000]) },
    ])
    add('drain', 3, () => [{ kind: random.pick(['drain', 'abort', 'quiet', 'resume']), worker: worker() }])
    add('operator', 5, () => [
      random.pick<Happening>([
        { kind: 'retry failed' },
        { kind: 'retry failed' },
        { kind: 'pause queue', queue: random.pick(queues) },
        { kind: 'resume queue', queue: random.pick(queues) },
      ]),
    ])
    add('cancel', 2, () => [{ kind: 'cancel', queue: random.pick(queues) }])
    return happenings
  }
}

/** A worker without peculiarities. */
export function steady(name: string, leaseMs: number): WorkOptions {
  return {
    queues: 'all',
    queueLimits: new Map(),
    concurrency: 3,
    sleepMs: leaseMs / 3,
    restMs: 0,
    once: false,
    stopWhenEmpty: false,
    maxJobs: null,
    maxTimeMs: null,
    drainTimeoutMs: null,
    timeoutMs: null,
    maxPayloadBytes: 1_000_000,
    tries: 1,
    backoff: { kind: 'none' },
    retryAfterMs: leaseMs,
    unknownJobs: 'fail',
    keepDoneMs: null,
    endsWhenBlocked: false,
    name,
    only: null,
    except: [],
  }
}
