import assert from 'node:assert/strict'
import type { Definition, ScheduleStore, StoredSchedule, Taking } from '../../../core/store/schedule-store.ts'
import { aJob } from '../builders.ts'
import type { ConformanceCase } from '../context.ts'
import { idsOf } from '../test-worker.ts'

const needs = ['schedules'] as const

const minuteMs = 60_000

function aDefinition(parts: Partial<Definition> = {}): Definition {
  return { name: 'nightly', definition: 'report at night', cadence: '30 2 * * * UTC', ...parts }
}

async function theOne(schedules: ScheduleStore, name = 'nightly'): Promise<StoredSchedule> {
  const found = (await schedules.look()).schedules.find((schedule) => schedule.name === name)
  assert.ok(found, `${name} is known`)
  return found
}

/** Defines a schedule and builds what takes its first slots, a minute apart. */
async function aTaking(schedules: ScheduleStore, parts: Partial<Taking> = {}, slots = 1): Promise<Taking> {
  await schedules.define([aDefinition()], 1)
  const { name, definition, lastSlot } = await theOne(schedules)
  const runs = Array.from({ length: slots }, (_, index) => ({
    slot: lastSlot + (index + 1) * minuteMs,
    job: aJob({ job: `run-${index + 1}` }),
  }))
  const upTo = runs.at(-1)?.slot ?? lastSlot
  return { name, definition, after: lastSlot, upTo, missed: 0, overlap: 'allow', runs, ...parts }
}

/** Takes the slot that follows the last one. */
async function takeNext(schedules: ScheduleStore, overlap: Taking['overlap']) {
  const { name, definition, lastSlot } = await theOne(schedules)
  const slot = lastSlot + minuteMs
  const [taken] =
    (await schedules.take({
      ...{ name, definition, after: lastSlot, upTo: slot, missed: 0, overlap },
      runs: [{ slot, job: aJob() }],
    })) ?? []
  assert.ok(taken)
  return taken
}

/** What a store keeps of schedules, and that a slot is taken once. */
export const scheduleCases: readonly ConformanceCase[] = [
  {
    name: 'a schedule that is new counts as planned up to now',
    needs,
    async run({ schedules, clock }) {
      const [store] = schedules()
      await store.define([aDefinition()], 1)

      assert.deepEqual(await store.look(), {
        now: clock.now(),
        schedules: [
          {
            ...aDefinition(),
            ...{ definedAt: 1, lastSlot: clock.now(), missed: 0 },
            ...{ waitingSlot: null, pausedAt: null, lastJob: null, firedAt: null },
          },
        ],
        pausedQueues: [],
        lastTick: null,
      })
    },
  },
  {
    name: 'a later process defines a schedule anew, and an earlier one does not',
    needs,
    async run({ schedules }) {
      const [store, other] = schedules()
      await store.define([aDefinition()], 10)
      await other.define([aDefinition({ definition: 'later' })], 20)
      await store.define([aDefinition({ definition: 'earlier' })], 15)
      await store.define([aDefinition({ definition: 'at the same time' })], 20)

      const { definition, definedAt } = await theOne(store)
      assert.deepEqual({ definition, definedAt }, { definition: 'later', definedAt: 20 })
    },
  },
  {
    name: 'a new cadence begins its plan at now, and any other change keeps the plan',
    needs,
    async run({ schedules, clock }) {
      const [store] = schedules()
      await store.define([aDefinition()], 1)
      const planned = clock.now()
      await clock.advance(minuteMs)
      await store.define([aDefinition({ definition: 'another payload' })], 2)
      assert.equal((await theOne(store)).lastSlot, planned)

      await store.define([aDefinition({ cadence: '0 3 * * * UTC' })], 3)
      assert.equal((await theOne(store)).lastSlot, clock.now())
    },
  },
  {
    name: 'a slot is taken with its job, and known from then on',
    needs,
    async run({ schedules, first, clock }) {
      const [store] = schedules()
      const taking = await aTaking(store, { missed: 0 })
      const taken = await store.take(taking)

      const [reserved] = await first.reserve()
      assert.deepEqual(taken, [{ slot: taking.upTo, id: reserved?.id, fate: 'enqueued' }])
      const { lastSlot, lastJob, firedAt } = await theOne(store)
      assert.deepEqual(
        { lastSlot, lastJob, firedAt },
        { lastSlot: taking.upTo, lastJob: reserved?.id, firedAt: clock.now() },
      )
    },
  },
  {
    name: 'of two that take one slot at once one gets it, and there is one job',
    needs,
    async run({ schedules, first }) {
      const [store, other] = schedules()
      const taking = await aTaking(store)
      const answers = await Promise.all([store, other, store, other].map((each) => each.take(taking)))

      assert.equal(answers.filter((answer) => answer !== null).length, 1)
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'several slots are taken in one call, each with its job',
    needs,
    async run({ schedules, first }) {
      const [store] = schedules()
      const taken = await store.take(await aTaking(store, {}, 3))

      const reserved = await first.reserve()
      assert.deepEqual(
        taken?.map(({ id }) => id),
        idsOf(reserved),
      )
      assert.deepEqual(
        reserved.map(({ job }) => job),
        ['run-1', 'run-2', 'run-3'],
      )
    },
  },
  {
    name: 'slots that are passed over leave no job and count as missed',
    needs,
    async run({ schedules, first }) {
      const [store] = schedules()
      const taking = await aTaking(store, {}, 3)
      assert.deepEqual(await store.take({ ...taking, runs: [], missed: 3 }), [])

      const { lastSlot, missed } = await theOne(store)
      assert.deepEqual({ lastSlot, missed }, { lastSlot: taking.upTo, missed: 3 })
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'a slot that was taken before is not taken again, even where the plan was set back',
    needs,
    async run({ schedules, clock, first }) {
      const [store] = schedules()
      const taking = await aTaking(store)
      await store.take(taking)
      await store.pause('nightly')
      await store.resume('nightly')
      assert.equal((await theOne(store)).lastSlot, clock.now())

      assert.deepEqual(await store.take(taking), [])
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'nothing is taken by somebody who knows another definition',
    needs,
    async run({ schedules, first }) {
      const [store] = schedules()
      const taking = await aTaking(store)

      assert.equal(await store.take({ ...taking, definition: 'as it was' }), null)
      assert.deepEqual(await first.reserve(), [])
    },
  },
  {
    name: 'nothing is taken of a paused schedule; one that is resumed goes on from now',
    needs,
    async run({ schedules, clock }) {
      const [store] = schedules()
      const taking = await aTaking(store, {}, 3)
      await store.pause('nightly')
      assert.equal((await theOne(store)).pausedAt, clock.now())
      assert.equal(await store.take(taking), null)

      await clock.advance(2 * minuteMs)
      assert.equal(await store.resume('nightly'), true)
      assert.equal(await store.resume('nightly'), false)
      assert.equal((await theOne(store)).lastSlot, clock.now())
    },
  },
  {
    name: 'a schedule may be paused before anybody defines it, and stays so',
    needs,
    async run({ schedules }) {
      const [store] = schedules()
      await store.pause('nightly')
      await store.define([aDefinition()], 1)

      const { pausedAt, definition } = await theOne(store)
      assert.notEqual(pausedAt, null)
      assert.equal(definition, aDefinition().definition)
    },
  },
  {
    name: 'a schedule that nobody knows cannot be resumed',
    needs,
    async run({ schedules }) {
      assert.equal(await schedules()[0].resume('nightly'), false)
    },
  },
  {
    name: 'with skip a run is passed over while the one before waits or runs, and not once it has ended',
    needs,
    async run({ schedules, first }) {
      const [store] = schedules()
      await aTaking(store)
      const one = await takeNext(store, 'skip')
      assert.equal((await takeNext(store, 'skip')).fate, 'skipped', 'it waits')
      const held = await first.reserveOne()
      assert.equal((await takeNext(store, 'skip')).fate, 'skipped', 'it runs')
      await first.complete(held)

      assert.equal(held.id, one.id)
      assert.equal((await takeNext(store, 'skip')).fate, 'enqueued')
    },
  },
  {
    name: 'with skip a run that waits for a retry counts as waiting, and one that has failed for good does not',
    needs: ['schedules', 'failed jobs'],
    async run({ schedules, first }) {
      const [store] = schedules()
      await aTaking(store)
      await takeNext(store, 'skip')
      await first.retry(await first.reserveOne(), 0)
      assert.equal((await takeNext(store, 'skip')).fate, 'skipped')

      await first.fail(await first.reserveOne())
      assert.equal((await takeNext(store, 'skip')).fate, 'enqueued')
    },
  },
  {
    name: 'with queue one run waits, further ones are passed over, and it is enqueued when the one before has ended',
    needs,
    async run({ schedules, first }) {
      const [store] = schedules()
      await aTaking(store)
      await takeNext(store, 'queue')
      const waiting = await takeNext(store, 'queue')
      const third = await takeNext(store, 'queue')
      assert.deepEqual([waiting.fate, third.fate], ['waiting', 'skipped'])
      assert.equal((await theOne(store)).waitingSlot, waiting.slot)

      const { name, definition } = aDefinition()
      const run = { name, definition, slot: waiting.slot, job: aJob() }
      assert.equal(await store.takeWaiting(run), null)
      await first.complete(await first.reserveOne())
      const id = await store.takeWaiting(run)

      assert.equal((await first.reserveOne()).id, id)
      assert.equal((await theOne(store)).waitingSlot, null)
      assert.equal(await store.takeWaiting(run), null, 'once')
    },
  },
  {
    name: 'of two that enqueue a waiting run at once one does',
    needs,
    async run({ schedules, first }) {
      const [store, other] = schedules()
      await aTaking(store)
      await takeNext(store, 'queue')
      const { slot } = await takeNext(store, 'queue')
      await first.complete(await first.reserveOne())
      const { name, definition } = aDefinition()
      const run = { name, definition, slot, job: aJob() }
      const ids = await Promise.all([store, other, store, other].map((each) => each.takeWaiting(run)))

      assert.equal(ids.filter((id) => id !== null).length, 1)
      assert.equal((await first.reserve()).length, 1)
    },
  },
  {
    name: 'a run that a person asks for leaves the plan as it is, and counts as a run',
    needs,
    async run({ schedules, first }) {
      const [store] = schedules()
      const { after } = await aTaking(store)
      const id = await store.trigger('nightly', aJob())

      const { lastSlot, lastJob } = await theOne(store)
      assert.deepEqual({ lastSlot, lastJob }, { lastSlot: after, lastJob: id })
      assert.equal((await takeNext(store, 'skip')).fate, 'skipped')
      assert.deepEqual(idsOf(await first.reserve()), [id])
    },
  },
  {
    name: 'a job of a schedule goes to its queue, as any other does',
    needs,
    async run({ schedules, first }) {
      const [store] = schedules()
      await store.trigger('nightly', aJob({ queue: 'reports', priority: 3 }))

      const [reserved] = await first.reserve({ queues: [['reports']] })
      assert.deepEqual([reserved?.queue, reserved?.priority], ['reports', 3])
    },
  },
  {
    name: 'paused queues are seen with the schedules',
    needs: ['schedules', 'pauses'],
    async run({ schedules, admin, clock }) {
      await admin.pause(['mail'], null, null)
      await admin.pause(['over'], clock.now() + 1, null)
      await clock.advance(1)

      assert.deepEqual((await schedules()[0].look()).pausedQueues, ['mail'])
    },
  },
  {
    name: 'it is known who looked last, and when',
    needs,
    async run({ schedules, clock }) {
      const [store, other] = schedules()
      await store.tick('alpha')
      await clock.advance(1_000)
      await other.tick('beta')

      assert.deepEqual((await store.look()).lastTick, { at: clock.now(), ticker: 'beta' })
    },
  },
]
