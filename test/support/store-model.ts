import fc from 'fast-check'
import type {
  Beat,
  Filter,
  Held,
  JobId,
  NewJob,
  Observation,
  OnParentFailure,
  Settlement,
  WorkerId,
} from '../../src/core/store/store.ts'
import { aJob, aProfile, aRecord, aWish, gather, sorted } from '../../src/testing/conformance/builders.ts'
import type { Opened } from '../../src/testing/index.ts'

const leaseMs = 1_000
const workers: readonly WorkerId[] = [11, 22]
const queueNames = ['a', 'b', 'c'] as const

/** Which of the jobs that were ever reserved, or ever written; taken modulo their number. */
type Pick = number

interface SettleOperation {
  readonly kind: 'settle'
  readonly worker: WorkerId
  readonly endings: readonly { readonly held: Pick; readonly ending: Ending; readonly delayMs: number }[]
  readonly starts: readonly Pick[]
  readonly followUps: readonly { readonly parent: Pick; readonly job: NewJob }[]
}

/** A job that waits for some of those that were ever written. */
interface Child {
  readonly job: NewJob
  readonly parents: readonly Pick[]
  readonly onParentFailure: OnParentFailure
}

type Ending = 'complete' | 'keep' | 'retry' | 'fail' | 'cancel' | 'cancel unstarted' | 'release' | 'release later'

/** One step of a history, the same for every store. */
export type Operation =
  | SettleOperation
  | { readonly kind: 'enqueue'; readonly jobs: readonly NewJob[] }
  | { readonly kind: 'enqueue after'; readonly children: readonly Child[] }
  | {
      readonly kind: 'reserve'
      readonly worker: WorkerId
      readonly filter: FilterParts
      readonly limit: number
      readonly maxBytes: number
      readonly started: number
    }
  | { readonly kind: 'next due'; readonly filter: FilterParts }
  | { readonly kind: 'disown'; readonly worker: WorkerId; readonly back: number }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'beat'; readonly worker: WorkerId; readonly beat: Beat['kind'] }
  | { readonly kind: 'recover'; readonly worker: WorkerId; readonly silent: boolean }
  /** The other one sees its process gone, or its machine started anew; then it joins anew. */
  | { readonly kind: 'kill'; readonly worker: WorkerId; readonly rebooted: boolean }
  | { readonly kind: 'look'; readonly worker: WorkerId; readonly filter: FilterParts; readonly held: readonly Pick[] }
  | { readonly kind: 'cancel'; readonly jobs: readonly Pick[] }
  /** The worker falls silent until it is declared dead, while the other goes on beating; then it joins anew. */
  | { readonly kind: 'lose'; readonly worker: WorkerId }
  | { readonly kind: 'pause'; readonly queue: string; readonly forMs: number | null }
  | { readonly kind: 'resume'; readonly queue: string }
  | { readonly kind: 'retry failed' | 'delete failed'; readonly selection: Selection }

/** stale: what was selected the last time, whatever has become of it since. */
type Selection = 'all' | 'a' | 'stale'

type FilterParts = Omit<Filter, 'exclude'> & { readonly exclude: readonly Pick[] }

const aWorker = fc.constantFrom(...workers)
const aPick = fc.nat(999)
const aQueue = fc.constantFrom(...queueNames)
const anEnding = fc.constantFrom<Ending>(
  ...(['complete', 'keep', 'retry', 'fail', 'fail', 'cancel', 'cancel unstarted', 'release', 'release later'] as const),
)
const aSelection = fc.constantFrom<Selection>('all', 'a', 'stale')

const aNewJob = fc
  .record({
    job: fc.constantFrom('x', 'y'),
    queue: aQueue,
    priority: fc.integer({ min: -1, max: 2 }),
    due: fc.constantFrom({ delayMs: 0 }, { delayMs: 0 }, { delayMs: 1 }, { delayMs: 700 }, { at: 1_000 }),
    uniqueKey: fc.constantFrom(null, null, null, null, 'k', 'l'),
    version: fc.constantFrom(1, 1, 2),
    envelope: fc.constantFrom('{}', '{"text":"🐸"}', '{"text":"0123456789"}'),
  })
  .map((parts) => aJob(parts))

const aFollowUp = fc.record({ parent: aPick, job: aNewJob.map((job) => ({ ...job, uniqueKey: null })) })

const aGenerousFilter: fc.Arbitrary<FilterParts> = fc.record({
  queues: fc.constantFrom<Filter['queues']>('all', [['c', 'b', 'a']], [['b'], ['a', 'c']]),
  exceptQueues: fc.constant([]),
  only: fc.constant(null),
  except: fc.constant([]),
  exclude: fc.constant([]),
  maxVersion: fc.constant(2),
  suspects: fc.boolean(),
})

const aPickyFilter: fc.Arbitrary<FilterParts> = fc.record({
  queues: fc.constantFrom<Filter['queues']>(
    'all',
    'all',
    [['c', 'b', 'a']],
    [['a', 'c'], ['b']],
    [['b'], ['a']],
    [['a']],
  ),
  exceptQueues: fc.constantFrom([], [], [], [], ['a']),
  only: fc.constantFrom(null, null, null, null, null, ['x'], []),
  except: fc.constantFrom([], [], [], [], ['y']),
  exclude: fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(aPick, { maxLength: 3 }) },
  ),
  maxVersion: fc.constantFrom(2, 2, 2, 1),
  suspects: fc.boolean(),
})

/** Mostly generous, so that histories get somewhere. */
const aFilter = fc.oneof({ weight: 3, arbitrary: aGenerousFilter }, { weight: 2, arbitrary: aPickyFilter })

const enqueuing = fc.record({ kind: fc.constant('enqueue'), jobs: fc.array(aNewJob, { maxLength: 6, size: 'max' }) })

const enqueuingAfter = fc.record({
  kind: fc.constant('enqueue after'),
  children: fc.array(
    fc.record({
      job: aNewJob,
      parents: fc.array(aPick, { minLength: 1, maxLength: 3 }),
      onParentFailure: fc.constantFrom<OnParentFailure>('wait', 'cancel', 'run'),
    }),
    { minLength: 1, maxLength: 3 },
  ),
})

const reserving = fc.record({
  kind: fc.constant('reserve'),
  worker: aWorker,
  filter: aFilter,
  limit: fc.constantFrom(5, 4, 3, 2, 1, 1, 0),
  maxBytes: fc.constantFrom(1_000, 1_000, 1_000, 40, 10),
  started: fc.constantFrom(4, 2, 1, 0),
})

const settling: fc.Arbitrary<SettleOperation> = fc.record({
  kind: fc.constant('settle'),
  worker: aWorker,
  endings: fc.array(fc.record({ held: aPick, ending: anEnding, delayMs: fc.constantFrom(0, 1, 500) }), {
    maxLength: 3,
  }),
  starts: fc.array(aPick, { maxLength: 2 }),
  followUps: fc.array(aFollowUp, { maxLength: 2 }),
})

const beating = fc.record({
  kind: fc.constant('beat'),
  worker: aWorker,
  beat: fc.constantFrom<Beat['kind']>('joining', 'joining', 'working', 'draining', 'leaving'),
})

const looking = fc.record({
  kind: fc.constant('look'),
  worker: aWorker,
  filter: aFilter,
  held: fc.array(aPick, { maxLength: 4 }),
})

const pausing = fc.record({ kind: fc.constant('pause'), queue: aQueue, forMs: fc.constantFrom(300, 300, 0, null) })

const anOperation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 11, arbitrary: enqueuing },
  { weight: 4, arbitrary: enqueuingAfter },
  { weight: 13, arbitrary: reserving },
  { weight: 12, arbitrary: settling },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('next due'), filter: aFilter }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('disown'), worker: aWorker, back: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance'), ms: fc.constantFrom(0, 1, 300, 1_001) }) },
  { weight: 2, arbitrary: beating },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('lose'), worker: aWorker }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('recover'), worker: aWorker, silent: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('kill'), worker: aWorker, rebooted: fc.boolean() }) },
  { weight: 3, arbitrary: looking },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel'), jobs: fc.array(aPick, { maxLength: 3 }) }) },
  { weight: 1, arbitrary: pausing },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('resume'), queue: aQueue }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('retry failed'), selection: aSelection }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete failed'), selection: aSelection }) },
)

/** Histories of so many operations, of which the first two let two workers join. */
export function histories(length: number): fc.Arbitrary<readonly Operation[]> {
  const joined = workers.map((worker) => ({ kind: 'beat', worker, beat: 'joining' }) as const)
  const rest = length - joined.length
  // Without fast-check's bias to small values, under which hardly a worker dies in company.
  return fc
    .noBias(fc.array(anOperation, { minLength: rest, maxLength: rest }))
    .map((operations) => [...joined, ...operations])
}

/**
 * Plays a history on one store.
 *
 * Jobs are told by the order in which they were written: ids may have gaps, and which ones is a store's own affair.
 */
export class StorePlayer {
  readonly #opened: Opened
  readonly #ids: JobId[] = []
  readonly #everHeld: (Held & { readonly worker: WorkerId })[] = []
  #selected: readonly Held[] = []
  #batch = 0

  constructor(opened: Opened) {
    this.#opened = opened
  }

  /** The recorded attempts of every job there ever was. */
  async attempts(): Promise<unknown> {
    const all = []
    for (const id of this.#ids) all.push((await this.#opened.admin.attempts(id)).map((record) => ({ ...record })))
    return all
  }

  /** Does it, and answers what the store answered. */
  play(operation: Operation): Promise<unknown> {
    const { admin, clock } = this.#opened
    switch (operation.kind) {
      case 'enqueue':
        return this.#enqueue(operation.jobs)
      case 'enqueue after':
        return this.#enqueue(operation.children.map((child) => this.#childOf(child)))
      case 'reserve':
        return this.#reserve(operation)
      case 'settle':
        return this.#settle(operation)
      case 'next due':
        return this.#storeOf(0).nextDue(this.#filter(operation.filter))
      case 'disown':
        return this.#exchange(operation.worker, { disown: [this.#batch - operation.back] })
      case 'advance':
        return clock.advance(operation.ms)
      case 'beat':
        return this.#beat(operation.worker, operation.beat)
      case 'recover':
        return this.#recover(operation.worker, { silent: operation.silent })
      case 'kill':
        return this.#kill(operation.worker, operation.rebooted)
      case 'look':
        return this.#look(operation)
      case 'cancel':
        return this.#cancel(operation.jobs)
      case 'lose':
        return this.#lose(operation.worker)
      case 'pause':
        return admin.pause([operation.queue], operation.forMs === null ? null : clock.now() + operation.forMs, null)
      case 'resume':
        return admin.resume([operation.queue])
      case 'retry failed':
        return this.#retryFailed(operation.selection)
      case 'delete failed':
        return this.#deleteFailed(operation.selection)
    }
  }

  /** Workers take turns on the two stores, as if they were two processes. */
  #storeOf(worker: number) {
    return this.#opened.stores[worker % 2 === 0 ? 0 : 1]
  }

  #exchange(worker: WorkerId, parts: Partial<Parameters<Opened['stores'][0]['exchange']>[0]>) {
    const nothing = { settle: [], enqueue: [], start: [], disown: [], reserve: null }
    return this.#storeOf(worker).exchange({ worker, ...nothing, ...parts })
  }

  async #enqueue(jobs: readonly NewJob[]): Promise<unknown> {
    const answers = await this.#storeOf(0).enqueue(jobs)
    return answers.map(({ id, duplicate }) => ({ job: this.#told(id), duplicate }))
  }

  /** One of the last that were written, most of which have not ended. */
  #childOf({ job, parents, onParentFailure }: Child): NewJob {
    const recent = this.#ids.slice(-8)
    const after = parents.flatMap((pick) => recent[pick % (recent.length || 1)] ?? [])
    return after.length === 0 ? job : { ...job, after, onParentFailure }
  }

  async #reserve(operation: Operation & { kind: 'reserve' }): Promise<unknown> {
    this.#batch += 1
    const { limit, maxBytes, started } = operation
    const wish = aWish({ ...this.#filter(operation.filter), limit, maxBytes, started, batch: this.#batch })
    const { reserved } = await this.#exchange(operation.worker, { reserve: wish })
    this.#everHeld.push(...reserved.map(({ id, fence }) => ({ id, fence, worker: operation.worker })))
    return reserved.map(({ id, fence: _, ...facts }) => ({ ...facts, id: this.#told(id) }))
  }

  #filter({ exclude, ...parts }: FilterParts): Filter {
    return { ...parts, exclude: this.#idsAt(exclude) }
  }

  /** One round never names a job twice: which of the two would win is nobody's business. */
  async #settle({ worker, endings, starts, followUps }: SettleOperation): Promise<unknown> {
    const named = new Set<JobId>()
    const fresh = (held: Held | undefined): held is Held => {
      const isFresh = held !== undefined && !named.has(held.id)
      if (isFresh) named.add(held.id)
      return isFresh
    }
    const settle = endings.flatMap(({ held, ending, delayMs }) => {
      const found = this.#heldAt(held, worker)
      return fresh(found) ? [settlementOf(found, ending, delayMs)] : []
    })
    const start = starts.map((pick) => this.#heldAt(pick, worker)).filter(fresh)
    const enqueue = followUps.map(({ parent, job }) => ({ ...job, parent: this.#heldAt(parent, worker)?.id ?? 0 }))
    const { lost, ids, cancelled } = await this.#exchange(worker, { settle, start, enqueue })
    return {
      cancelled: cancelled.map((id) => this.#told(id)),
      lost: this.#toldSet(lost.map(({ id }) => id)),
      ids: ids.map((id) => (id === null ? null : this.#told(id))),
    }
  }

  /** Mostly one of the last that this worker was given; now and then anybody's, however old. */
  #heldAt(pick: Pick, worker: WorkerId): Held | undefined {
    const own = this.#everHeld.filter((held) => held.worker === worker).slice(-6)
    const choice = pick < 900 ? own : this.#everHeld
    const held = choice[pick % (choice.length || 1)]
    return held && { id: held.id, fence: held.fence }
  }

  #beat(worker: WorkerId, kind: Beat['kind']): Promise<unknown> {
    const store = this.#storeOf(worker)
    return kind === 'joining'
      ? store.beat({ kind, worker, profile: aProfile({ leaseMs, name: `worker ${worker}` }) })
      : store.beat({ kind, worker })
  }

  async #recover(observer: WorkerId, parts: Partial<Observation> = {}): Promise<unknown> {
    const observation = { observer, gone: [], rebooted: [], silent: true, ...parts }
    const { dead, ...counts } = await this.#storeOf(observer).recover(observation)
    return { dead: sorted(dead), ...counts }
  }

  async #kill(worker: WorkerId, isRebooted: boolean): Promise<unknown> {
    const gone = [worker]
    const observation = { gone, rebooted: isRebooted ? gone : [], silent: false }
    return [await this.#recover(otherThan(worker), observation), await this.#beat(worker, 'joining')]
  }

  async #look({ worker, filter, held }: Operation & { kind: 'look' }): Promise<unknown> {
    const { host } = aProfile()
    const look = { worker, host, held: this.#idsAt(held), filter: this.#filter(filter) }
    const { cancelled, neighbours, ...rest } = await this.#storeOf(worker).look(look)
    return { cancelled: new Set(cancelled.map((id) => this.#told(id))), neighbours: new Set(neighbours), ...rest }
  }

  async #cancel(jobs: readonly Pick[]): Promise<unknown> {
    const { cancelled, marked, missing } = await this.#opened.admin.cancel(this.#idsAt(jobs))
    return [cancelled, marked, missing].map((ids) => ids.map((id) => this.#told(id)))
  }

  #idsAt(picks: readonly Pick[]): readonly JobId[] {
    return picks.flatMap((pick) => this.#ids[pick % (this.#ids.length || 1)] ?? [])
  }

  async #lose(worker: WorkerId): Promise<unknown> {
    const observer = otherThan(worker)
    await this.#opened.clock.advance(leaseMs - 100)
    const beat = await this.#beat(observer, 'working')
    await this.#opened.clock.advance(101)
    return [beat, await this.#recover(observer), await this.#beat(worker, 'joining')]
  }

  async #retryFailed(selection: Selection): Promise<unknown> {
    const { retried, missing, blocked } = await this.#opened.admin.retryFailed(await this.#select(selection), 100)
    const told = blocked.map(({ id, holder }) => ({ job: this.#told(id), holder: this.#told(holder) }))
    return { retried: this.#toldSet(retried), missing: this.#toldSet(missing), blocked: told }
  }

  async #deleteFailed(selection: Selection): Promise<unknown> {
    return this.#toldSet(await this.#opened.admin.deleteFailed(await this.#select(selection)))
  }

  async #select(selection: Selection): Promise<readonly Held[]> {
    if (selection !== 'stale')
      this.#selected = await this.#opened.admin.selectFailed(selection === 'a' ? { queue: 'a' } : {})
    return this.#selected
  }

  /** What operators see at this moment. */
  async view(): Promise<unknown> {
    const { admin } = this.#opened
    const [counts, rows, failed] = [await admin.counts(), await admin.workers(), await gather(admin.failed({}, null))]
    return {
      counts: new Set(counts.map((one) => ({ ...one }))),
      workers: new Set(rows.map((row) => ({ ...row }))),
      failed: failed.map(({ id, fence: _, ...facts }) => ({ ...facts, id: this.#told(id) })),
      homes: await this.#homes(),
    }
  }

  /** Where every job is that there ever was. */
  async #homes(): Promise<unknown> {
    const all = []
    for (const id of this.#ids) {
      const found = await this.#opened.admin.find(id)
      all.push(found && { ...found, id: this.#told(id) })
    }
    return all
  }

  #told(id: JobId): number {
    if (!this.#ids.includes(id)) this.#ids.push(id)
    return this.#ids.indexOf(id)
  }

  #toldSet(ids: readonly JobId[]): readonly number[] {
    return sorted(ids.map((id) => this.#told(id)))
  }
}

function otherThan(worker: WorkerId): WorkerId {
  return worker === 11 ? 22 : 11
}

function settlementOf(held: Held, ending: Ending, delayMs: number): Settlement {
  const attempt = aRecord({ message: `${ending} after ${delayMs}` })
  if (ending === 'complete' || ending === 'keep') return { ...held, kind: 'complete', keep: ending === 'keep' }
  if (ending === 'cancel') return { ...held, kind: 'cancel', attempt }
  if (ending === 'cancel unstarted') return { ...held, kind: 'cancel', attempt: null }
  if (ending === 'release') return { ...held, kind: 'release', delayMs: null }
  if (ending === 'release later') return { ...held, kind: 'release', delayMs }
  return ending === 'retry'
    ? { ...held, kind: 'retry', delayMs, attempt }
    : { ...held, kind: 'fail', reason: 'tries', attempt }
}
