import { expect, test } from 'vitest'
import { testKhepri } from '../../src/testing/index.ts'

test('runSchedule moves the clock and runs the job of each slot, which is told its slot', async () => {
  const seen: unknown[] = []
  const khepri = testKhepri({
    jobs: {},
    schedules: {
      hourly: {
        cron: '@hourly',
        payload: { n: 7 },
        handle: (payload, { schedule, scheduledFor, firedAt, missed }) => {
          seen.push({ payload, schedule, scheduledFor, firedAt, missed })
        },
      },
    },
  })
  const fired = await khepri.runSchedule('2026-01-05T11:30:00Z')

  const slots = [Date.UTC(2026, 0, 5, 10), Date.UTC(2026, 0, 5, 11)]
  expect(fired.map(({ schedule, slot }) => ({ schedule, slot }))).toEqual(
    slots.map((slot) => ({ schedule: 'hourly', slot })),
  )
  expect(seen).toEqual(
    slots.map((slot) => ({ payload: { n: 7 }, schedule: 'hourly', scheduledFor: slot, firedAt: slot, missed: 0 })),
  )
  expect(khepri.clock.now()).toBe(Date.UTC(2026, 0, 5, 11, 30))
  await khepri.close()
})

test('runSchedule goes on from where the last call stopped, and not back', async () => {
  const khepri = testKhepri({ jobs: { note: () => {} }, schedules: { hourly: { job: 'note', cron: '@hourly' } } })
  await khepri.runSchedule('2026-01-05T10:30:00Z')

  expect(await khepri.runSchedule(new Date('2026-01-05T11:00:00Z'))).toHaveLength(1)
  await expect(khepri.runSchedule('2026-01-05T10:00:00Z')).rejects.toMatchObject({
    code: 'DATA_INVALID',
    message: 'at must not be past: it is 2026-01-05T10:00:00.000Z, and the clock stands at 2026-01-05T11:00:00.000Z',
  })
  await khepri.close()
})

test('a job that no schedule has dispatched knows of none', async () => {
  const seen: unknown[] = []
  const khepri = testKhepri({
    jobs: {
      note: (_: unknown, { schedule, scheduledFor, firedAt, missed }) => {
        seen.push({ schedule, scheduledFor, firedAt, missed })
      },
    },
  })
  await khepri.dispatch('note')
  await khepri.runJobs()

  expect(seen).toEqual([{ schedule: null, scheduledFor: null, firedAt: null, missed: 0 }])
  await khepri.close()
})
