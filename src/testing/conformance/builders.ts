import type {
  AttemptRecord,
  FollowUp,
  Held,
  JobId,
  NewJob,
  Recovery,
  Settlement,
  Store,
  Wish,
  WorkerProfile,
} from '../../core/store/store.ts'

/** Silence after which the workers of the suite are dead. */
export const leaseMs = 90_000

/** Builds a job that is due now, on the queue "default". */
export function aJob(parts: Partial<NewJob> = {}): NewJob {
  const job = parts.job ?? 'note'
  return {
    job,
    queue: 'default',
    priority: 0,
    due: { delayMs: 0 },
    uniqueKey: null,
    version: 1,
    envelope: JSON.stringify({ job, payload: { text: 'hello' } }),
    ...parts,
  }
}

/** Builds as many equal jobs. */
export function jobs(count: number, parts: Partial<NewJob> = {}): readonly NewJob[] {
  return Array.from({ length: count }, () => aJob(parts))
}

export function aFollowUp(parent: Held, parts: Partial<NewJob> = {}): FollowUp {
  return { ...aJob({ job: 'follow-up', ...parts }), parent: parent.id }
}

/** Builds a wish for whatever is on the queue "default"; all of it is marked as started. */
export function aWish(parts: Partial<Wish> = {}): Wish {
  const limit = parts.limit ?? 200
  return {
    queues: [['default']],
    exceptQueues: [],
    only: null,
    except: [],
    exclude: [],
    maxVersion: 1,
    suspects: false,
    sleepMs: null,
    limit,
    maxBytes: 16 * 1024 * 1024,
    batch: 1,
    started: limit,
    ...parts,
  }
}

export function aRecord(parts: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    attempt: 1,
    worker: 'alpha',
    startedAt: 1_000,
    endedAt: 1_083,
    errorType: 'Error',
    message: 'it broke',
    stack: null,
    output: null,
    ...parts,
  }
}

export function aProfile(parts: Partial<WorkerProfile> = {}): WorkerProfile {
  return {
    name: 'alpha',
    version: '1.2.3',
    host: 'here',
    bootId: null,
    pidNamespace: null,
    pid: 4_321,
    pidStart: null,
    queues: 'default',
    concurrency: 4,
    leaseMs,
    ...parts,
  }
}

/** Builds the answer of a recovery that found nothing but these. */
export function aRecovery(parts: Partial<Recovery> = {}): Recovery {
  return { dead: [], freed: 0, cancelled: 0, released: 0, bad: [], ...parts }
}

/** Every ending that an attempt can have, for one job. */
export const endings: Readonly<Record<Settlement['kind'], (held: Held) => Settlement>> = {
  complete: ({ id, fence }) => ({ id, fence, kind: 'complete', keep: false }),
  retry: ({ id, fence }) => ({ id, fence, kind: 'retry', delayMs: 0, attempt: aRecord() }),
  fail: ({ id, fence }) => ({ id, fence, kind: 'fail', reason: 'tries', attempt: aRecord() }),
  cancel: ({ id, fence }) => ({ id, fence, kind: 'cancel', attempt: aRecord() }),
  release: ({ id, fence }) => ({ id, fence, kind: 'release', delayMs: null }),
}

/** Enqueues jobs and answers their ids. */
export async function enqueueAll(store: Store, all: readonly NewJob[]): Promise<readonly JobId[]> {
  return (await store.enqueue(all)).map(({ id }) => id)
}

/** Enqueues one job and answers its id. */
export async function enqueueOne(store: Store, parts: Partial<NewJob> = {}): Promise<JobId> {
  const [enqueued] = await store.enqueue([aJob(parts)])
  if (!enqueued) throw new Error('the store answered nothing for one new job')
  return enqueued.id
}

/** Gathers a stream. */
export async function gather<Item>(stream: AsyncIterable<Item>): Promise<readonly Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}

/** Sorts numbers upwards: where a store promises a set and no order. */
export function sorted(numbers: readonly number[]): readonly number[] {
  return numbers.toSorted((a, b) => a - b)
}
