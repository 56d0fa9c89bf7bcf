import assert from 'node:assert/strict'
import type { Held, Settlement } from '../../../core/store/store.ts'
import { aWish, endings, enqueueAll, enqueueOne, gather, jobs, leaseMs } from '../builders.ts'
import type { ConformanceCase, Context } from '../context.ts'
import { idsOf, type TestWorker } from '../test-worker.ts'

interface Late {
  readonly worker: TestWorker
  readonly held: Held
  /** The one who may settle it in truth, if anybody holds it. */
  readonly holder?: { readonly worker: TestWorker; readonly held: Held }
}

/** Ways in which a worker comes to hold a job no longer; each is crossed with each ending. */
const ways: Readonly<Record<string, (context: Context) => Promise<Late>>> = {
  'by another worker': async ({ first, second }) => {
    const held = await first.reserveOne()
    return { worker: second, held, holder: { worker: first, held } }
  },
  'with a fence that is too high': async ({ first }) => {
    const held = await first.reserveOne()
    return { worker: first, held: { id: held.id, fence: held.fence + 1 }, holder: { worker: first, held } }
  },
  'with the fence of an earlier reservation by the same worker': async ({ first }) => {
    const early = await first.reserveOne()
    await first.release(early)
    return { worker: first, held: early, holder: { worker: first, held: await first.reserveOne() } }
  },
  'after the job was released': async ({ first }) => {
    const held = await first.reserveOne()
    await first.release(held)
    return { worker: first, held }
  },
  'after the job passed to another worker': async ({ first, second }) => {
    const held = await first.reserveOne()
    await first.release(held)
    return { worker: first, held, holder: { worker: second, held: await second.reserveOne() } }
  },
  'after the worker was declared dead': async ({ first, second, clock }) => {
    await first.join()
    const held = await first.reserveOne()
    await clock.advance(leaseMs + 1)
    await second.recover()
    return { worker: first, held }
  },
  'after it was retried': async ({ first }) => {
    const held = await first.reserveOne()
    await first.retry(held)
    return { worker: first, held }
  },
}

/** What can be seen of the store; a refused settlement must leave it the same. */
async function view({ admin, store }: Context) {
  const counts = (await admin.counts()).map((one) => ({ ...one }))
  const failed = (await gather(admin.failed({}, null))).map((one) => ({ ...one }))
  const next = await store.nextDue(aWish({ queues: 'all', maxVersion: 9, suspects: true }))
  return { counts, failed, next }
}

function refusal(kind: Settlement['kind'], way: string, lose: (context: Context) => Promise<Late>): ConformanceCase {
  return {
    name: `a ${kind} ${way} is refused and changes nothing`,
    needs: ['failed jobs'],
    async run(context) {
      const id = await enqueueOne(context.store)
      const { worker, held, holder } = await lose(context)
      const [before, history] = [await view(context), await context.admin.attempts(id)]

      assert.deepEqual(await worker.settle([endings[kind](held)]), [id])
      assert.deepEqual(await view(context), before)
      assert.deepEqual(await context.admin.attempts(id), history)
      if (holder) assert.deepEqual(await holder.worker.complete(holder.held), [], 'its holder still has it')
    },
  }
}

const kinds = Object.keys(endings) as Settlement['kind'][]
const refusals = Object.entries(ways).flatMap(([way, lose]) => kinds.map((kind) => refusal(kind, way, lose)))

/** A late result never changes a job: only the holder of the newest reservation does. */
export const fenceCases: readonly ConformanceCase[] = [
  ...refusals,
  {
    name: 'a job that has ended is lost to every further settlement, and only that is answered',
    async run({ store, first }) {
      const id = await enqueueOne(store)
      const held = await first.reserveOne()
      await first.complete(held)

      for (const kind of kinds) assert.deepEqual(await first.settle([endings[kind](held)]), [id], kind)
    },
  },
  {
    name: 'an id that never was is answered as lost',
    async run({ first }) {
      const { lost } = await first.exchange({ settle: [endings.complete({ id: 987_654_321, fence: 1 })] })

      assert.deepEqual(
        lost.map(({ id, fence }) => [id, fence]),
        [[987_654_321, 1]],
      )
    },
  },
  {
    name: 'a job that nobody holds cannot be settled under the fence it has',
    async run({ store, first }) {
      const id = await enqueueOne(store)

      assert.deepEqual(await first.complete({ id, fence: 0 }), [id])
      assert.equal((await first.reserveOne()).id, id)
    },
  },
  {
    name: 'in a mixed round the good settlements happen and only the lost ones are named',
    async run({ store, first, second }) {
      const ids = await enqueueAll(store, jobs(6))
      const held = await first.reserve()
      const gone = held.filter((_, index) => index % 2 === 1)
      for (const job of gone) await first.release(job)
      const taken = await second.reserve()

      assert.deepEqual(
        (await first.complete(...held)).toSorted((a, b) => a - b),
        [ids[1], ids[3], ids[5]],
      )
      assert.deepEqual(await second.complete(...taken), [])
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'lost settlements of all four kinds are named in one answer',
    async run({ store, first, second }) {
      const ids = await enqueueAll(store, jobs(4))
      const held = await first.reserve()
      const settle = held.map((job, index) => endings[kinds[index] as Settlement['kind']](job))

      assert.deepEqual(
        (await second.settle(settle)).toSorted((a, b) => a - b),
        ids,
      )
      assert.deepEqual(await first.settle(settle), [])
    },
  },
  {
    name: 'a start by another worker or under an old fence is refused and marks nothing',
    async run({ store, admin, first, second }) {
      const id = await enqueueOne(store)
      const [early] = await first.prefetch()
      assert.ok(early)
      await first.release(early)
      const [held] = await first.prefetch()
      assert.ok(held)

      assert.deepEqual(await first.start(early), [id])
      assert.deepEqual(await second.start(held), [id])
      assert.equal((await admin.counts())[0]?.running, 0)
    },
  },
  {
    name: 'a start and a settlement that are refused in one round are both named',
    async run({ store, first, second }) {
      await store.enqueue(jobs(2))
      const [one, two] = await first.prefetch()
      assert.ok(one && two)
      const { lost } = await second.exchange({
        settle: [endings.complete(one)],
        start: [{ id: two.id, fence: two.fence }],
      })

      assert.deepEqual(
        idsOf(lost).toSorted((a, b) => a - b),
        [one.id, two.id],
      )
    },
  },
  {
    name: 'a fence goes on growing through failed and retry, so that a result from before is refused',
    needs: ['failed jobs'],
    async run({ store, admin, first }) {
      const id = await enqueueOne(store)
      const before = await first.reserveOne()
      await first.fail(before)
      await admin.retryFailed(await admin.selectFailed({}), 0)
      const after = await first.reserveOne()

      assert.ok(after.fence > before.fence, `${after.fence} > ${before.fence}`)
      assert.deepEqual(await first.complete(before), [id])
      assert.deepEqual(await first.complete(after), [])
    },
  },
]
