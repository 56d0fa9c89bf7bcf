import assert from 'node:assert/strict'
import { aRecovery, enqueueAll, enqueueOne, gather, jobs, leaseMs } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { loseFirst } from '../steps.ts'
import { holding, idsOf } from '../test-worker.ts'

const dayMs = 86_400_000

/** Who is dead, and what that costs the jobs it held. */
export const recoveryCases: readonly ConformanceCase[] = [
  {
    name: 'recovering where nobody is dead does nothing',
    async run({ first }) {
      assert.deepEqual(await first.recover(), aRecovery())
      await first.join()
      assert.deepEqual(await first.recover(), aRecovery())
    },
  },
  {
    name: 'a worker silent for exactly its lease lives, and a millisecond later it is dead',
    async run({ first, second, clock }) {
      await first.join()
      await clock.advance(leaseMs)
      assert.deepEqual((await second.recover()).dead, [])

      await clock.advance(1)
      assert.deepEqual((await second.recover()).dead, [first.id])
    },
  },
  {
    name: 'each worker is measured by its own lease, not by that of the observer',
    async run({ first, second, third, clock }) {
      await first.join({ leaseMs: 5_000 })
      await second.join({ leaseMs: 600_000 })
      await third.join({ leaseMs: 1_000_000 })
      await clock.advance(5_001)
      assert.deepEqual((await third.recover()).dead, [first.id])

      await clock.advance(600_000)
      assert.deepEqual((await third.recover()).dead, [second.id])
    },
  },
  {
    name: 'beats keep a worker alive however long it holds a job',
    async run({ store, first, second, clock }) {
      await enqueueOne(store)
      await first.join()
      const held = await first.reserveOne()
      for (let hour = 0; hour < 24; hour += 1) {
        await clock.advance(leaseMs)
        await first.beat()
        assert.deepEqual(await second.recover(), aRecovery())
      }

      assert.deepEqual(await first.complete(held), [])
    },
  },
  {
    name: 'a job whose worker has no row is not held for ever: it is free after the lease of the observer, at no cost',
    async run({ store, first, second, clock }) {
      await enqueueOne(store)
      await second.join()
      const held = await first.reserveOne()
      assert.deepEqual(await second.recover(), aRecovery(), 'a worker that may live is given a lease')
      await clock.advance(leaseMs)
      await second.beat()
      assert.deepEqual(await second.recover(), aRecovery())

      await clock.advance(1)
      assert.deepEqual(await second.recover(), aRecovery({ dead: [first.id], freed: 1 }))
      assert.deepEqual(await first.complete(held), [held.id], 'what it held is lost')
      const again = await second.reserveOne()
      assert.deepEqual([again.crashes, again.suspect, again.failures], [0, false, 0])
    },
  },
  {
    name: 'a worker whose row was deleted keeps its job where it beats within the lease',
    async run({ store, first, second, clock }) {
      await enqueueOne(store)
      await second.join()
      const held = await first.reserveOne()
      await second.recover()
      await clock.advance(leaseMs)
      await Promise.all([first.beat(), second.beat()])
      await clock.advance(1)

      assert.deepEqual(await second.recover(), aRecovery())
      assert.deepEqual(await first.complete(held), [])
    },
  },
  {
    name: 'an observer does not declare itself dead',
    async run({ store, first, clock }) {
      await enqueueOne(store)
      await first.join()
      const held = await first.reserveOne()
      await clock.advance(leaseMs * 2)

      assert.deepEqual(await first.recover(), aRecovery())
      assert.deepEqual(await first.complete(held), [])
    },
  },
  {
    name: 'who is dead is told before the first of their jobs is free, to every observer that frees, and only then',
    async run(context) {
      const { store, first, second, third } = context
      const id = await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      await second.join()
      const told: (readonly number[])[] = []
      const recover = (observer: number, gone: readonly number[]) =>
        store.recover({ observer, gone, rebooted: [], silent: false }, async (dead) => {
          told.push(dead)
          assert.deepEqual(await third.reserve(), [], 'the job must not be free yet')
        })

      assert.deepEqual(await recover(second.id, []), aRecovery())
      assert.deepEqual(told, [])
      assert.deepEqual(await recover(second.id, [first.id]), aRecovery({ dead: [first.id], freed: 1 }))
      assert.deepEqual(told, [[first.id]])
      assert.deepEqual(await recover(second.id, []), aRecovery())
      assert.equal(told.length, 1)

      const again = await third.reserveOne()
      assert.equal(again.id, id)
      await third.complete(again)
      // Frozen rather than dead, it takes a job after it was judged: whoever frees that is told as well.
      await enqueueOne(store)
      await first.reserveOne()
      assert.equal((await recover(third.id, [])).freed, 1)
      assert.deepEqual(told[1], [first.id])
    },
  },
  {
    name: 'a worker that died with one started job costs that job a crash and no failure',
    async run(context) {
      const { store, first, second } = context
      const id = await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      assert.deepEqual(await loseFirst(context), aRecovery({ dead: [first.id], freed: 1 }))
      const again = await second.reserveOne()

      assert.deepEqual(
        { id: again.id, failures: again.failures, crashes: again.crashes, suspect: again.suspect },
        { id, failures: 0, crashes: 1, suspect: false },
      )
    },
  },
  {
    name: 'three deaths alone count three crashes',
    async run({ store, first, second, clock }) {
      await enqueueOne(store)
      const seen = []
      for (let death = 0; death < 3; death += 1) {
        await first.join()
        seen.push((await first.reserveOne()).crashes)
        await clock.advance(leaseMs + 1)
        await second.recover()
      }

      assert.deepEqual([...seen, (await second.reserveOne()).crashes], [0, 1, 2, 3])
    },
  },
  {
    name: 'a worker that died with one job it had not started costs that job nothing',
    async run(context) {
      const { store, first, second } = context
      await enqueueOne(store)
      await first.join()
      await first.prefetch()
      await loseFirst(context)
      const { crashes, suspect } = await second.reserveOne()

      assert.deepEqual({ crashes, suspect }, { crashes: 0, suspect: false })
    },
  },
  {
    name: 'a prefetched job that was started later counts as started when its worker dies',
    async run(context) {
      const { store, first, second } = context
      await enqueueOne(store)
      await first.join()
      const held = await first.prefetch()
      await first.start(...held)
      await loseFirst(context)

      assert.equal((await second.reserveOne()).crashes, 1)
    },
  },
  {
    name: 'a worker that died while draining costs its jobs nothing',
    async run({ store, first, second, clock }) {
      const [alone] = await enqueueAll(store, jobs(1))
      await first.join()
      await first.reserveOne()
      await first.beat('draining')
      await clock.advance(leaseMs + 1)
      assert.deepEqual(await second.recover(), aRecovery({ dead: [first.id], freed: 1 }))
      const { id, crashes, suspect } = await second.reserveOne()

      assert.deepEqual({ id, crashes, suspect }, { id: alone, crashes: 0, suspect: false })
    },
  },
  {
    name: '1,200 jobs that were not started are free after one recovery',
    async run(context) {
      const { store, first, second } = context
      const ids = await enqueueAll(store, jobs(1_200))
      await first.join()
      await first.prefetch({ limit: 2_000 })
      await loseFirst(context)

      assert.deepEqual(idsOf(await second.reserve({ limit: 2_000 })), ids)
    },
  },
  {
    name: 'a second recovery frees nothing more and counts nothing twice',
    async run(context) {
      const { store, first, second, third } = context
      await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      await loseFirst(context)

      assert.deepEqual(await second.recover(), aRecovery())
      assert.deepEqual(await third.recover(), aRecovery())
      assert.equal((await third.reserveOne()).crashes, 1)
    },
  },
  {
    name: 'two recoveries at once find one death and one crash',
    async run({ store, first, second, third, clock }) {
      await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      await clock.advance(leaseMs + 1)
      const answers = await Promise.all([second.recover(), third.recover()])

      assert.deepEqual(
        answers.flatMap(({ dead }) => dead),
        [first.id],
      )
      assert.equal(
        answers.reduce((sum, { freed }) => sum + freed, 0),
        1,
      )
      assert.equal((await second.reserveOne()).crashes, 1)
    },
  },
  {
    name: 'recovery does not touch what the living hold',
    async run(context) {
      const { store, first, second } = context
      await store.enqueue(jobs(4))
      await first.join()
      await second.join()
      await first.reserve({ limit: 2 })
      const theirs = await second.reserve({ limit: 2 })
      assert.equal((await loseFirst(context)).freed, 2)

      assert.deepEqual(await second.complete(...theirs), [])
    },
  },
  {
    name: 'a freed job keeps its place: it comes before what was dispatched after it',
    async run(context) {
      const { store, first, second } = context
      const id = await enqueueOne(store)
      await first.join()
      await first.prefetch()
      await loseFirst(context)
      const later = await enqueueOne(store)

      assert.deepEqual(idsOf(await second.reserve()), [id, later])
    },
  },
  {
    name: 'a freed job has a higher fence, so that its dead worker is refused even under the old number',
    async run(context) {
      const { store, first, second } = context
      const id = await enqueueOne(store)
      await first.join()
      const before = await first.reserveOne()
      await loseFirst(context)
      assert.deepEqual(await first.complete(before), [id])
      const after = await second.reserveOne()

      assert.ok(after.fence > before.fence)
      assert.deepEqual(await second.complete(after), [])
    },
  },
  {
    name: 'what a frozen worker reserves after it was declared dead is freed by the next recovery, at no cost',
    async run(context) {
      const { store, first, second } = context
      await first.join()
      await loseFirst(context)
      const id = await enqueueOne(store)
      const late = await first.reserveOne()
      assert.deepEqual(await second.recover(), aRecovery({ freed: 1 }))
      const { crashes, suspect } = await second.reserveOne()

      assert.deepEqual({ crashes, suspect }, { crashes: 0, suspect: false })
      assert.deepEqual(await first.complete(late), [id])
    },
  },
  {
    name: 'the row of a dead worker stays for a day and then goes',
    async run({ admin, first, second, clock }) {
      await first.join()
      await clock.advance(leaseMs + 1)
      await second.recover()
      await clock.advance(dayMs - 1_000)
      await second.recover()
      assert.deepEqual(
        (await admin.workers()).map(({ id, state }) => [id, state]),
        [[first.id, 'dead']],
      )

      await clock.advance(2_000)
      await second.recover()
      assert.deepEqual(await admin.workers(), [])
    },
  },
  {
    name: 'recovery writes no attempt and fails no job, whatever the crashes',
    needs: ['failed jobs'],
    async run({ store, admin, first, second, clock }) {
      const id = await enqueueOne(store)
      for (let death = 0; death < 10; death += 1) {
        await first.join()
        await first.reserveOne()
        await clock.advance(leaseMs + 1)
        await second.recover()
      }

      assert.deepEqual(await admin.attempts(id), [])
      assert.deepEqual(await gather(admin.failed({}, null)), [])
      assert.equal((await second.reserveOne()).crashes, 10)
    },
  },
  {
    name: 'crashes are kept when a job is retried, and among the failed jobs',
    needs: ['failed jobs'],
    async run(context) {
      const { store, admin, first, second } = context
      const id = await enqueueOne(store)
      await first.join()
      await first.reserveOne()
      await loseFirst(context)
      await second.retry(await second.reserveOne())
      const held = await second.reserveOne()
      await second.fail(holding(held), {}, 'crashes')

      assert.equal(held.crashes, 1)
      assert.deepEqual(await admin.findFailed(id).then((job) => [job?.crashes, job?.failures]), [1, 2])
    },
  },
]
