import type { Khepri } from '../app.ts'
import { sleep, systemClock } from '../core/clock.ts'
import type { WorkHandle, WorkOptions } from '../core/work.ts'

/** How large a measurement is. */
export interface BenchSize {
  /** Jobs that are dispatched in batches, and then worked off with the others. */
  readonly jobs: number
  /** Jobs that the worker runs at once. */
  readonly concurrency: number
}

/** So many jobs in so many milliseconds. */
export interface Rate {
  readonly jobs: number
  readonly ms: number
}

/** From the call that dispatches a job to the first line of its handler; milliseconds. */
export interface PickUp {
  readonly jobs: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** What was measured. */
export interface BenchResult {
  readonly single: Rate
  readonly batched: Rate
  readonly work: Rate
  readonly pickUp: PickUp
}

/** What the measurement needs: an empty, migrated place to open installations in, a way to stop it, somebody to tell how far it is. */
export interface BenchPlace {
  readonly open: (jobs: Readonly<Record<string, unknown>>) => Khepri
  readonly signal: AbortSignal
  readonly onPart: (label: string) => PartProgress
}

/** How far a part of the measurement is; share: 0 to 1. */
export interface PartProgress {
  update(done: number, share: number): void
  end(): void
}

/** Jobs of one transaction; as many as `khepri dispatch` writes at a time from a stream. */
export const batchSize = 10_000

/** How the pick-up is measured: so many jobs, one every so many milliseconds, once the worker has been idle for so long. */
export const pickUps = { jobs: 200, everyMs: 20, restMs: 1_000 } as const

/** Single dispatches are made for so long, whatever the disk. */
const singleMs = 2_000

/** Measures dispatching, working, and the way from one to the other. Rejects with the signal's reason once it is aborted. */
export async function measure({ open, signal, onPart }: BenchPlace, size: BenchSize): Promise<BenchResult> {
  const clocked = { starts: new Span(), ages: [] as number[] }
  const jobs = {
    // They return at once: what is seen is what khepri itself costs.
    work: () => clocked.starts.note(),
    'pick-up': ({ sentAt }: { readonly sentAt: number }) => void clocked.ages.push(systemClock.monotonic() - sentAt),
  }
  const place: Place = { signal, ...clocked, ...size, dispatching: open(jobs), working: open(jobs) }
  const inPart = async <T>(label: string, part: Part<T>): Promise<T> => {
    const progress = onPart(label)
    try {
      return await part(place, (done, share) => progress.update(done, share))
    } finally {
      progress.end()
    }
  }
  try {
    return {
      single: await inPart('dispatching one by one', dispatchOneByOne),
      batched: await inPart('dispatching in batches', dispatchInBatches),
      work: await inPart('working', workOff),
      pickUp: await inPart('measuring the pick-up', pickUp),
    }
  } finally {
    await Promise.all([place.dispatching.close(), place.working.close()])
  }
}

/** What every part of the measurement is given: two installations, as two processes would be, and what their handlers note. */
interface Place extends BenchSize, Pick<BenchPlace, 'signal'> {
  readonly dispatching: Khepri
  readonly working: Khepri
  readonly starts: Span
  readonly ages: number[]
}

/** One part of the measurement; it tells how far it is. */
type Part<T> = (place: Place, update: PartProgress['update']) => Promise<T>

/** The time between the first and the last of some moments. */
class Span {
  #first: number | null = null
  #last = 0
  count = 0

  note(): void {
    this.#last = systemClock.monotonic()
    this.#first ??= this.#last
    this.count += 1
  }

  get ms(): number {
    return this.#last - (this.#first ?? this.#last)
  }
}

async function dispatchOneByOne({ dispatching, signal }: Place, update: PartProgress['update']): Promise<Rate> {
  const since = systemClock.monotonic()
  let jobs = 0
  for (let ms = 0; ms < singleMs; ms = systemClock.monotonic() - since) {
    signal.throwIfAborted()
    await dispatching.dispatch('work')
    update(++jobs, ms / singleMs)
  }
  return { jobs, ms: systemClock.monotonic() - since }
}

async function dispatchInBatches({ dispatching, signal, jobs }: Place, update: PartProgress['update']): Promise<Rate> {
  const since = systemClock.monotonic()
  for (let done = 0; done < jobs; update(done, done / jobs)) {
    signal.throwIfAborted()
    const batch = Math.min(batchSize, jobs - done)
    await dispatching.dispatchMany(Array.from({ length: batch }, () => ({ job: 'work', payload: {} })))
    done += batch
  }
  return { jobs, ms: systemClock.monotonic() - since }
}

/** Everything that was dispatched so far. */
async function workOff(place: Place, update: PartProgress['update']): Promise<Rate> {
  const { working, starts, jobs } = place
  const stopHearing = working.events.on('job.done', () => update(starts.count, Math.min(1, starts.count / jobs)))
  await whileWorking(place, { stopWhenEmpty: true }, ({ finished }) => finished).finally(stopHearing)
  return { jobs: starts.count, ms: starts.ms }
}

async function pickUp(place: Place, update: PartProgress['update']): Promise<PickUp> {
  const { dispatching, ages, signal } = place
  await whileWorking(place, {}, async () => {
    await sleep(systemClock, pickUps.restMs, signal)
    for (let sent = 1; sent <= pickUps.jobs && !signal.aborted; sent++) {
      await dispatching.dispatch('pick-up', { sentAt: systemClock.monotonic() })
      await sleep(systemClock, pickUps.everyMs, signal)
      update(sent, sent / pickUps.jobs)
    }
    while (ages.length < pickUps.jobs && !signal.aborted) await sleep(systemClock, pickUps.everyMs, signal)
  })
  return { jobs: ages.length, p50: quantile(ages, 0.5), p95: quantile(ages, 0.95), p99: quantile(ages, 0.99) }
}

/** Runs a worker for as long as something takes, and ends it in any case. */
async function whileWorking(
  { working, signal, concurrency }: Place,
  options: Partial<WorkOptions>,
  use: (worker: WorkHandle) => Promise<unknown>,
): Promise<void> {
  const worker = await working.work({ concurrency, ...options })
  const stop = (): void => worker.drain()
  signal.addEventListener('abort', stop)
  try {
    await use(worker)
  } finally {
    signal.removeEventListener('abort', stop)
    worker.drain()
    await worker.finished
  }
  signal.throwIfAborted()
}

/** The value below which this share of the values lies. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
