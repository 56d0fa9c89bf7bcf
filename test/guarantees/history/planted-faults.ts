import type { Admin } from '../../../src/core/store/admin.ts'
import type { LiveJob, MemoryState } from '../../../src/core/store/memory/state.ts'
import type { Exchanged, Held, JobId, NewJob, Round, Settlement, Store } from '../../../src/core/store/store.ts'
import type { Tampering } from './stage.ts'
import type { PromiseName } from './violation.ts'

/** A store that is wrong in one way that queues have been wrong in, and the promise whose breach must be seen. */
export interface PlantedFault extends Tampering {
  readonly name: string
  readonly breaks: PromiseName
}

/** The same object with other methods in some places. */
function overriding<T extends object>(inner: T, methods: Partial<T>): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const method: unknown = Reflect.get(Object.hasOwn(methods, name) ? methods : target, name)
      return typeof method === 'function' ? method.bind(target) : method
    },
  })
}

type Before = (round: Round, state: MemoryState) => Round | undefined
type After = (round: Round, answer: Exchanged, state: MemoryState) => Exchanged | undefined

/** A fault of the one transaction in which a worker settles and reserves. */
function inExchange({
  before = () => undefined,
  after = () => undefined,
}: {
  before?: Before
  after?: After
}): Tampering {
  return {
    store: (inner, state) =>
      overriding(inner, {
        exchange: async (round) => {
          const sent = before(round, state) ?? round
          const answer = await inner.exchange(sent)
          return after(round, answer, state) ?? answer
        },
      }),
  }
}

function inEnqueue(
  enqueue: (jobs: readonly NewJob[], inner: Store, state: MemoryState) => ReturnType<Store['enqueue']>,
): Tampering {
  return { store: (inner, state) => overriding(inner, { enqueue: (jobs) => enqueue(jobs, inner, state) }) }
}

function inRecover(
  recover: (inner: Store, state: MemoryState, words: Parameters<Store['recover']>) => ReturnType<Store['recover']>,
): Tampering {
  return { store: (inner, state) => overriding(inner, { recover: (...words) => recover(inner, state, words) }) }
}

function inAdmin(methods: (inner: Admin, state: MemoryState) => Partial<Admin>): Tampering {
  return { admin: (inner, state) => overriding(inner, methods(inner, state)) }
}

/** The jobs whose settlement of these kinds the store has accepted. */
function accepted(round: Round, { lost }: Exchanged, ...kinds: readonly Settlement['kind'][]): readonly Settlement[] {
  const refused = new Set(lost.map(({ id }) => id))
  return round.settle.filter(({ id, kind }) => kinds.includes(kind) && !refused.has(id))
}

function eachLive(state: MemoryState, ids: Iterable<{ readonly id: JobId }>, change: (job: LiveJob) => void): void {
  for (const { id } of ids) {
    const job = state.jobs.get(id)
    if (job) change(job)
  }
}

/** Sends some settlements as others. */
function resettled(round: Round, change: (settlement: Settlement) => Settlement): Round {
  return { ...round, settle: round.settle.map(change) }
}

function silent<T>(answer: T, _: unknown): T {
  return answer
}

const nobodyIsDead = { dead: [], freed: 0, cancelled: 0, released: 0, bad: [] }

/** Every fault that the checker is known to see. */
export const plantedFaults: readonly PlantedFault[] = [
  {
    name: 'a settlement that compares no fence',
    breaks: 'fenced',
    store: (inner, state) =>
      overriding(inner, {
        exchange: (round) => {
          const { settle, worker } = round
          for (const { id, fence } of settle) eachLive(state, [{ id }], (job) => Object.assign(job, { worker, fence }))
          return inner.exchange(round)
        },
        // Its beat must not be the first to tell a frozen worker that it is dead.
        beat: async (beat) => ({ ...(await inner.beat(beat)), known: true }),
        look: async (look) => ({ ...(await inner.look(look)), known: true }),
      }),
  },
  {
    name: 'a failed job that is deleted before it is recorded',
    breaks: 'ended',
    ...inExchange({
      before: (round) =>
        resettled(round, (each) => (each.kind === 'fail' ? { ...asHeld(each), kind: 'complete', keep: false } : each)),
    }),
  },
  {
    name: 'a job that leaves the store when it is reserved',
    breaks: 'ended',
    ...inExchange({
      after: (_, answer, state) => {
        for (const { id } of answer.reserved) state.jobs.delete(id)
        return { ...answer, lost: [] }
      },
    }),
  },
  {
    name: 'a lease by the wall clock, whatever its holder beats',
    breaks: 'overlap',
    ...inRecover(async (inner, state, words) => {
      for (const job of state.jobs.values())
        if (job.startedAt !== null && job.startedAt + 2_000 < state.now()) release(job)
      return inner.recover(...words)
    }),
  },
  {
    name: 'a retry that moves in two steps and dies between them',
    breaks: 'ended',
    ...inAdmin((inner) => ({
      retryFailed: async (jobs) => {
        await inner.deleteFailed(jobs)
        return { retried: jobs.map(({ id }) => id), missing: [], blocked: [] }
      },
    })),
  },
  {
    name: 'a forgotten order column: priority',
    breaks: 'ordered',
    ...inEnqueue((jobs, inner) => inner.enqueue(jobs.map((job) => ({ ...job, priority: 0 })))),
  },
  {
    name: 'queues that are merged although their order is strict',
    breaks: 'ordered',
    ...inExchange({
      before: (round) =>
        round.reserve && round.reserve.queues !== 'all'
          ? { ...round, reserve: { ...round.reserve, queues: [round.reserve.queues.flat()] } }
          : undefined,
    }),
  },
  {
    name: 'the last one in that comes out first',
    breaks: 'ordered',
    ...inEnqueue((jobs, inner, state) =>
      inner.enqueue(jobs.map((job, n) => ({ ...job, due: { at: state.now() - n } }))),
    ),
  },
  {
    name: 'an attempt that is not counted',
    breaks: 'terms',
    ...inExchange({
      after: (round, answer, state) => {
        eachLive(state, accepted(round, answer, 'retry'), (job) => {
          job.failures -= 1
        })
        return undefined
      },
    }),
  },
  {
    name: 'an attempt that is counted twice',
    breaks: 'terms',
    ...inExchange({
      after: (round, answer, state) => {
        eachLive(state, accepted(round, answer, 'retry'), (job) => {
          job.failures += 1
        })
        return undefined
      },
    }),
  },
  {
    name: 'tries that count one too few',
    breaks: 'bounded',
    ...inExchange({
      before: (round) =>
        resettled(round, (each) =>
          each.kind === 'retry' ? { ...asHeld(each), kind: 'fail', reason: 'tries', attempt: each.attempt } : each,
        ),
    }),
  },
  {
    name: 'a release that costs an attempt',
    breaks: 'terms',
    ...inExchange({
      after: (round, answer, state) => {
        eachLive(state, accepted(round, answer, 'release'), (job) => {
          job.failures += 1
        })
        return undefined
      },
    }),
  },
  {
    name: 'a retry by hand that keeps the attempts',
    breaks: 'bounded',
    ...inAdmin((inner, state) => ({
      retryFailed: async (jobs, delayMs) => {
        const failures = new Map(jobs.map(({ id }) => [id, state.failed.get(id)?.failures ?? 0]))
        const answer = await inner.retryFailed(jobs, delayMs)
        eachLive(state, jobs, (job) => {
          job.failures = failures.get(job.id) ?? 0
        })
        return answer
      },
    })),
  },
  {
    name: 'a dispatch that is written twice',
    breaks: 'durable',
    ...inEnqueue(async (jobs, inner) => {
      const answer = await inner.enqueue(jobs)
      return silent(answer, await inner.enqueue(jobs))
    }),
  },
  {
    name: 'a dispatch that answers before it has committed',
    breaks: 'durable',
    ...inEnqueue(async (jobs, inner, state) => {
      const answer = await inner.enqueue(jobs)
      const last = answer.at(-1)
      if (last && jobs.length > 3) state.jobs.delete(last.id)
      return answer
    }),
  },
  {
    name: 'a file that is dispatched line by line',
    breaks: 'durable',
    // The command with three jobs is the one that is killed.
    ...inEnqueue((jobs, inner) => inner.enqueue(jobs.length === 3 ? jobs.slice(0, 2) : jobs)),
  },
  {
    name: 'two jobs that are given one id',
    breaks: 'durable',
    ...inEnqueue(async (jobs, inner) => {
      const answer = await inner.enqueue(jobs)
      return answer.map((each, n) => (n === 1 ? (answer[0] ?? each) : each))
    }),
  },
  {
    name: 'a delay that is forgotten',
    breaks: 'terms',
    ...inEnqueue((jobs, inner) => inner.enqueue(jobs.map((job) => ({ ...job, due: { delayMs: 0 } })))),
  },
  {
    name: 'a backoff that is forgotten',
    breaks: 'terms',
    ...inExchange({
      before: (round) => resettled(round, (each) => (each.kind === 'retry' ? { ...each, delayMs: 0 } : each)),
    }),
  },
  {
    name: 'a death that is not counted against its job',
    breaks: 'bounded',
    ...inRecover(async (inner, state, words) => {
      const answer = await inner.recover(...words)
      for (const job of state.jobs.values()) job.crashes = 0
      return answer
    }),
  },
  {
    name: 'a death that uses up an attempt',
    breaks: 'terms',
    ...inRecover(async (inner, state, words) => {
      const held = [...state.jobs.values()].filter(({ worker }) => worker !== null)
      const answer = await inner.recover(...words)
      for (const job of held) if (job.worker === null) job.failures += 1
      return answer
    }),
  },
  {
    name: 'a job that fails at the first death of its worker',
    breaks: 'bounded',
    ...inRecover(async (inner, state, words) => {
      const answer = await inner.recover(...words)
      for (const job of state.jobs.values()) if (job.crashes > 0) job.crashes = 3
      return answer
    }),
  },
  {
    name: 'a reservation without compare-and-swap',
    breaks: 'overlap',
    ...inExchange({
      before: ({ reserve, worker }, state) => {
        // Twice for each job: two workers that took it from one another for ever would never finish it.
        const isTaken = (job: LiveJob): boolean => job.worker !== null && job.worker !== worker && job.fence < 3
        if (reserve) for (const job of state.jobs.values()) if (isTaken(job)) release(job)
        return undefined
      },
    }),
  },
  {
    name: 'an envelope that is parsed and written anew',
    breaks: 'kept',
    ...inExchange({
      after: (_, __, state) => {
        for (const [id, row] of state.failed)
          state.failed.set(id, { ...row, envelope: JSON.stringify(JSON.parse(row.envelope)) })
        return undefined
      },
    }),
  },
  {
    name: 'errors of attempts that go with their row',
    breaks: 'kept',
    ...inExchange({
      after: (round, answer, state) => {
        for (const { id } of accepted(round, answer, 'fail')) state.attempts.delete(id)
        return undefined
      },
    }),
  },
  { name: 'orphans that nobody frees', breaks: 'ended', ...inRecover(async () => nobodyIsDead) },
  {
    name: 'orphans that are freed after three leases',
    breaks: 'recovered',
    ...inRecover(async (inner, state, words) => {
      const silentForLong = [...state.workers.values()].some(({ beatAt }) => beatAt + 5_000 < state.now())
      return silentForLong ? inner.recover(...words) : nobodyIsDead
    }),
  },
  {
    name: 'a job that stays after it is done',
    breaks: 'needless',
    ...inExchange({
      before: (round) =>
        resettled(round, (each) =>
          each.kind === 'complete' && each.id % 10 === 0 ? { ...asHeld(each), kind: 'release', delayMs: 1_000 } : each,
        ),
    }),
  },
  {
    name: 'a failed job that stays on its queue too',
    breaks: 'fenced',
    ...inExchange({
      before: (round, state) => {
        copies.set(
          state,
          round.settle.filter(({ kind }) => kind === 'fail').flatMap(({ id }) => state.jobs.get(id) ?? []),
        )
        return undefined
      },
      after: (_, __, state) => {
        // Thrice for each job: one that failed and ran for ever would keep the day from ending.
        for (const job of copies.get(state) ?? []) {
          release(job)
          if (job.fence < 5) state.jobs.set(job.id, job)
        }
        return undefined
      },
    }),
  },
  {
    name: 'a stop that counts as a failure',
    breaks: 'terms',
    ...inExchange({
      after: (round, answer, state) => {
        const interrupted = accepted(round, answer, 'release').filter(
          (each) => each.kind === 'release' && each.delayMs === null,
        )
        eachLive(state, interrupted, (job) => {
          job.failures += 1
        })
        return undefined
      },
    }),
  },
  {
    name: 'a flush that deletes what it was not asked to',
    breaks: 'ended',
    ...inAdmin((inner) => ({
      deleteFailed: async (jobs) =>
        silent(await inner.deleteFailed(jobs), await inner.deleteFailed(await inner.selectFailed({}))),
    })),
  },
  {
    name: 'a retry that says yes and does nothing',
    breaks: 'kept',
    ...inAdmin(() => ({
      retryFailed: async (jobs) => ({ retried: jobs.map(({ id }) => id), missing: [], blocked: [] }),
    })),
  },
  {
    name: 'a failed job that comes back on another queue',
    breaks: 'kept',
    ...inExchange({
      after: (_, __, state) => {
        for (const [id, row] of state.failed) state.failed.set(id, { ...row, queue: 'default-2' })
        return undefined
      },
    }),
  },
]

const copies = new WeakMap<MemoryState, LiveJob[]>()

const asHeld = ({ id, fence }: Settlement): Held => ({ id, fence })

/** Gives a job back behind its holder's back. */
function release(job: LiveJob): void {
  Object.assign(job, { worker: null, batch: null, startedAt: null })
}
