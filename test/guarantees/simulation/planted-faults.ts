import type { Admin } from '../../../src/core/store/admin.ts'
import type { MemoryState } from '../../../src/core/store/memory/state.ts'
import { free, type LiveJob } from '../../../src/core/store/memory/state.ts'
import type { Round, Settlement, Store } from '../../../src/core/store/store.ts'
import type { Plant } from './simulation.ts'

/** Faults that job queues have had, each put into the store on purpose: a simulation that misses one is worth nothing. */
export const plantedFaults: Readonly<Record<string, Plant>> = {
  'a settlement compares the id alone, no worker and no fence': inStore((store, state) => ({
    exchange: (round) => {
      for (const { id, fence } of round.settle)
        change(state.jobs.get(id), { worker: round.worker, fence: Math.max(fence, state.jobs.get(id)?.fence ?? 0) })
      const settle = round.settle.map((each) => ({ ...each, fence: state.jobs.get(each.id)?.fence ?? each.fence }))
      return store.exchange({ ...round, settle })
    },
  })),

  'a reservation does not look whether somebody holds the job': inStore((store, state) => ({
    exchange: (round) => {
      if (round.reserve) for (const job of state.jobs.values()) if (job.worker !== round.worker) free(job)
      return store.exchange(round)
    },
  })),

  'a job is taken back when it has run for a lease, though its worker beats': inStore((store, state) => ({
    recover: async (observation) => {
      for (const job of state.jobs.values()) {
        const worker = job.worker === null ? undefined : state.workers.get(job.worker)
        if (worker && job.startedAt !== null && job.startedAt + worker.profile.leaseMs < state.now()) free(job)
      }
      return store.recover(observation)
    },
  })),

  'a job leaves the queue when it is reserved': inStore((store, state) => {
    const taken = new Map<number, LiveJob>()
    return {
      exchange: async (round) => {
        for (const { id } of round.settle) putBack(state, taken, id)
        const answer = await store.exchange(round)
        for (const { id } of answer.reserved) takeOut(state, taken, id)
        return answer
      },
    }
  }),

  'the order forgets the priority': inStore((store) => ({
    enqueue: (jobs) => store.enqueue(jobs.map((job) => ({ ...job, priority: 0 }))),
  })),

  'a retry does not count its attempt': inStore((store) => ({
    exchange: (round) => store.exchange({ ...round, settle: round.settle.map(uncounted) }),
  })),

  'a release counts as a failure': inStore((store, state) => ({
    exchange: (round) => {
      for (const { id, fence, kind } of round.settle) {
        const job = state.jobs.get(id)
        if (kind === 'release' && job?.fence === fence) change(job, { failures: job.failures + 1 })
      }
      return store.exchange(round)
    },
  })),

  'a retry by hand keeps the attempts that were counted': inAdmin((admin, state) => ({
    retryFailed: async (jobs, delayMs) => {
      const failures = new Map(jobs.map(({ id }) => [id, state.failed.get(id)?.failures ?? 0]))
      const answer = await admin.retryFailed(jobs, delayMs)
      for (const id of answer.retried) change(state.jobs.get(id), { failures: failures.get(id) ?? 0 })
      return answer
    },
  })),

  'one dispatch in eight is acknowledged and not written': inStore((store, state) => ({
    enqueue: async (jobs) => {
      const answers = await store.enqueue(jobs)
      for (const { id } of answers) if (id % 8 === 0) state.jobs.delete(id)
      return answers
    },
  })),

  'one completion in eight is acknowledged and not written': inStore((store) => ({
    exchange: (round) => store.exchange({ ...round, settle: round.settle.filter((each) => !isEighthDone(each)) }),
  })),

  'what was reserved under a lost batch is never freed': inStore((store) => ({
    exchange: (round) => store.exchange({ ...round, disown: [] }),
  })),

  'a job fails without its envelope': inStore((store, state) => ({
    exchange: async (round) => {
      const answer = await store.exchange(round)
      for (const { id } of round.settle) change(state.failed.get(id), { envelope: '{}' })
      return answer
    },
  })),

  'a death is not counted': inStore((store, state) => ({
    recover: async (observation) => {
      const answer = await store.recover(observation)
      for (const job of state.jobs.values()) change(job, { crashes: 0 })
      return answer
    },
  })),

  'a worker is dead after half its lease': inStore((store) => ({
    beat: (beat) => {
      if (beat.kind !== 'joining') return store.beat(beat)
      return store.beat({ ...beat, profile: { ...beat.profile, leaseMs: beat.profile.leaseMs / 2 } })
    },
  })),

  'jobs of a paused queue are given out': inAdmin(() => ({ pause: async () => {} })),
}

function inStore(changes: (store: Store, state: MemoryState) => Partial<Store>): Plant {
  return (store, admin, state) => ({ store: changed(store, changes(store, state)), admin })
}

function inAdmin(changes: (admin: Admin, state: MemoryState) => Partial<Admin>): Plant {
  return (store, admin, state) => ({ store, admin: changed(admin, changes(admin, state)) })
}

/** The same object with some methods replaced. */
function changed<T extends object>(real: T, changes: Partial<T>): T {
  return new Proxy(real, {
    get: (target, key) => {
      const member = (changes as Record<PropertyKey, unknown>)[key] ?? Reflect.get(target, key)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** Changes what a store would never change. */
function change<T extends object>(row: T | undefined, changes: Partial<T>): void {
  if (row) Object.assign(row, changes)
}

function takeOut(state: MemoryState, taken: Map<number, LiveJob>, id: number): void {
  const job = state.jobs.get(id)
  if (job) taken.set(id, job)
  state.jobs.delete(id)
}

function putBack(state: MemoryState, taken: Map<number, LiveJob>, id: number): void {
  const job = taken.get(id)
  if (job) state.jobs.set(id, job)
  taken.delete(id)
}

function uncounted(settlement: Settlement): Settlement {
  if (settlement.kind !== 'retry') return settlement
  const { id, fence, delayMs } = settlement
  return { id, fence, kind: 'release', delayMs }
}

const isEighthDone = ({ kind, id }: Round['settle'][number]): boolean => kind === 'complete' && id % 8 === 0
