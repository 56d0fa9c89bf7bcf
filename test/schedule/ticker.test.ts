import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/core/clock.ts'
import { KhepriError } from '../../src/core/errors.ts'
import type { ScheduleStore } from '../../src/core/store/schedule-store.ts'
import { parseCadence } from '../../src/schedule/cadence.ts'
import { Process, SharedMemory } from './stage.ts'

const hourMs = 3_600_000
const everyFive = { job: 'note', every: '5m', overlap: 'allow' } as const

describe('first sight', () => {
  test('a schedule that is new fires at its next slot and nothing before', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: everyFive }, database)
    await process.tick()
    expect(process.fired).toEqual([])

    await database.until('2026-03-01T12:05:00Z')
    await process.tick()
    await process.tick()
    expect(process.slots).toEqual(['2026-03-01T12:05:00.000Z'])
  })

  test('a restart between two slots neither repeats one nor leaves one out', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    for (const moment of ['12:05', '12:07', '12:10', '12:14', '12:15']) {
      await new Process({ five: everyFive }, database).tick()
      await database.until(`2026-03-01T${moment}:00Z`)
    }
    await new Process({ five: everyFive }, database).tick()

    expect(database.runs().map(({ scheduledFor }) => scheduledFor.slice(11, 16))).toEqual(['12:05', '12:10', '12:15'])
  })
})

describe('slots at which nobody looked in time', () => {
  /** Nobody looks from 12:02 until a moment; the slots that then have a run, with what each was told of missed ones. */
  async function after(moment: string, misfire: 'once' | 'skip' | { readonly catchUp: number }) {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: { ...everyFive, misfire } }, database)
    await process.tick()
    await database.until(`2026-03-01T${moment}Z`)
    await process.tick()
    return {
      runs: database.runs().map(({ scheduledFor, missed }) => `${scheduledFor.slice(11, 16)} missed ${missed}`),
      misfired: process.said('schedule.misfired').map(({ missed, runs }) => `${missed} by ${runs}`),
    }
  }

  test.each([
    // The last slot is in time, one minute later it is not.
    ['12:05:59', 'once', ['12:05 missed 0'], []],
    ['12:06:01', 'once', ['12:05 missed 0'], ['1 by 1']],
    ['12:30:01', 'once', ['12:30 missed 5'], ['5 by 1']],
    ['12:33:00', 'once', ['12:30 missed 5'], ['6 by 1']],
    ['12:05:59', 'skip', ['12:05 missed 0'], []],
    ['12:06:01', 'skip', [], ['1 by 0']],
    ['12:30:01', 'skip', ['12:30 missed 5'], ['5 by 1']],
    ['12:33:00', 'skip', [], ['6 by 0']],
    ['12:05:59', { catchUp: 3 }, ['12:05 missed 0'], []],
    ['12:30:01', { catchUp: 3 }, ['12:15 missed 2', '12:20 missed 0', '12:25 missed 0', '12:30 missed 0'], ['5 by 4']],
    ['12:33:00', { catchUp: 3 }, ['12:20 missed 3', '12:25 missed 0', '12:30 missed 0'], ['6 by 3']],
    ['12:12:00', { catchUp: 9 }, ['12:05 missed 0', '12:10 missed 0'], ['2 by 2']],
  ] as const)('at %s with %j the runs are %j', async (moment, misfire, runs, misfired) => {
    expect(await after(moment, misfire)).toEqual({ runs, misfired })
  })

  test('with skip the next run in time knows how many went by', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: { ...everyFive, misfire: 'skip' } }, database)
    await process.tick()
    await database.until('2026-03-01T12:33:00Z')
    await process.tick()
    await database.until('2026-03-01T12:35:00Z')
    await process.tick()

    expect(database.runs()).toEqual([{ scheduledFor: '2026-03-01T12:35:00.000Z', missed: 6 }])
  })

  test('a month in which nobody looked at a schedule of each second ends in one run', async () => {
    const database = new SharedMemory('2026-03-01T12:00:00Z')
    const process = new Process({ second: { job: 'note', every: '1s' } }, database)
    await process.tick()
    await database.until('2026-04-01T12:00:00Z')
    await process.tick()

    expect(database.runs()).toEqual([{ scheduledFor: '2026-04-01T12:00:00.000Z', missed: 9_999 }])
  })

  test('catching up takes the last slots of a long outage', async () => {
    const database = new SharedMemory('2026-03-01T12:00:00Z')
    const process = new Process({ second: { job: 'note', every: '1s', misfire: { catchUp: 500 } } }, database)
    await process.tick()
    await database.until('2026-04-01T12:00:00Z')
    await process.tick()

    expect(process.slots.length).toBe(501)
    expect(process.slots.at(0)).toBe('2026-04-01T11:51:40.000Z')
    expect(process.slots.at(-1)).toBe('2026-04-01T12:00:00.000Z')
  })
})

describe('a year under a frozen clock', () => {
  const nightly = { job: 'note', cron: '30 2 * * *', zone: 'Europe/Oslo', overlap: 'allow' } as const
  const start = Date.UTC(2026, 0, 1)
  const end = Date.UTC(2027, 0, 1)
  const dayMs = 24 * hourMs

  function* slotsBetween(from: number, to: number) {
    const cadence = parseCadence({ cron: nightly.cron, zone: nightly.zone })
    for (let slot = cadence.next(from); slot <= to; slot = cadence.next(slot)) yield slot
  }

  /** Ticks whenever something is due, but not in the first five days of a month; answers the slots with a run. */
  async function year(misfire: 'once' | 'skip' | { readonly catchUp: number }) {
    const database = new SharedMemory(new Date(start).toISOString())
    const process = new Process({ nightly: { ...nightly, misfire } }, database)
    for (
      let { nextAt } = await process.tick();
      nextAt !== null && nextAt < end;
      nextAt = (await process.tick()).nextAt
    ) {
      const { clock } = database
      const at = new Date(nextAt)
      const isOut = at.getUTCDate() <= 5
      await database.until(isOut ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 6) : Math.max(nextAt, clock.now()))
    }
    return process.fired.map(({ slot }) => slot)
  }

  const isOut = (slot: number): boolean => new Date(slot).getUTCDate() <= 5
  const isLastOut = (slot: number): boolean => new Date(slot).getUTCDate() === 5

  test('with once each outage has one run, and every other night its own', async () => {
    const slots = [...slotsBetween(start, end - 1)]
    expect(await year('once')).toEqual(slots.filter((slot) => !isOut(slot) || isLastOut(slot)))
    expect(slots.length).toBe(365)
  })

  test('with skip the nights of an outage have none', async () => {
    expect(await year('skip')).toEqual([...slotsBetween(start, end - 1)].filter((slot) => !isOut(slot)))
  })

  test('with a catch-up of three the last three nights of an outage have theirs', async () => {
    const wanted = [...slotsBetween(start, end - 1)].filter((slot) => !isOut(slot) || new Date(slot).getUTCDate() >= 3)
    expect(await year({ catchUp: 3 })).toEqual(wanted)
  })

  /** Looks each hour; a run takes a day and a half. Answers when each run began, in hours. */
  async function longRuns(overlap: 'allow' | 'skip' | 'queue') {
    const database = new SharedMemory(new Date(start).toISOString())
    const process = new Process({ nightly: { job: 'note', every: '1d', overlap } }, database)
    const began: number[] = []
    process.app.events.on('schedule.fired', () => void began.push((process.now() - start) / hourMs))
    for (let hour = 0; hour < 365 * 24; hour++) {
      for (const job of [...database.state.jobs.values()])
        if (process.now() - job.enqueuedAt >= 36 * hourMs) database.state.end(job, 'done')
      await process.tick()
      await database.clock.advance(hourMs)
    }
    return began
  }

  test('runs of a day and a half begin every day where they may overlap', async () => {
    expect(await longRuns('allow')).toEqual(Array.from({ length: 364 }, (_, day) => 24 * (day + 1)))
  })

  test('and every second day where a run is passed over while another one runs', async () => {
    expect(await longRuns('skip')).toEqual(Array.from({ length: 182 }, (_, index) => 24 * (2 * index + 1)))
  })

  test('and one right after the other where one waits', async () => {
    expect(await longRuns('queue')).toEqual(Array.from({ length: 243 }, (_, index) => 24 + 36 * index))
  })

  test('the store remembers a hundred slots, not a year of them', async () => {
    const database = new SharedMemory(new Date(start).toISOString())
    const process = new Process({ nightly }, database)
    for (let day = 0; day < 365; day++) {
      await process.tick()
      await database.clock.advance(dayMs)
    }
    expect(process.fired.length).toBe(364)
    expect(database.state.schedules.get('nightly')?.slots.size).toBe(100)
  })
})

describe('a clock that is set', () => {
  test('back by an hour: no slot twice, and the next one is on time', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: everyFive }, database)
    await process.tick()
    await database.until('2026-03-01T12:10:00Z')
    await process.tick()
    database.clock.set(database.clock.now() - hourMs)
    for (let minute = 0; minute <= 65; minute++) {
      await process.tick()
      await database.clock.advance(60_000)
    }

    expect(process.slots.map((slot) => slot.slice(11, 16))).toEqual(['12:10', '12:15'])
  })

  test('forward by an hour: the misfire policy', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: everyFive }, database)
    await process.tick()
    database.clock.set(database.clock.now() + hourMs)
    await process.tick()

    expect(database.runs()).toEqual([{ scheduledFor: '2026-03-01T13:00:00.000Z', missed: 11 }])
  })

  test('forward while it sleeps: it is seen within ten seconds', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: everyFive }, database)
    const running = process.run()
    await database.clock.advance(0)
    database.clock.set(database.clock.now() + hourMs)
    await database.clock.advance(10_000)
    await process.stop()
    await running

    expect(process.slots).toEqual(['2026-03-01T13:00:00.000Z'])
  })
})

test('a clock that is off by up to 15 ms at each look fires 1,000 slots of a second once each', async () => {
  const database = new SharedMemory('2026-03-01T12:00:00Z')
  let state = 7
  const wobble = (): number => {
    state = (state * 48_271) % 2_147_483_647
    return (state % 31) - 15
  }
  const { clock } = database
  const now = clock.now.bind(clock)
  clock.now = () => now() + wobble()
  const early: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, run) => clock.after(ms + wobble(), run),
  }
  const process = new Process({ second: { job: 'note', every: '1s', overlap: 'allow' } }, database, early)
  const running = process.run()
  await clock.advance(1_000_500)
  await process.stop()
  await running

  const first = Date.parse(process.slots[0] ?? '')
  expect(process.fired.map(({ slot }) => slot)).toEqual(
    Array.from({ length: 1_000 }, (_, index) => first + index * 1_000),
  )
})

describe('several processes', () => {
  test('five that tick together fire each slot once', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const processes = Array.from({ length: 5 }, () => new Process({ five: everyFive }, database))
    for (let minute = 0; minute < 60; minute++) {
      await Promise.all(processes.map((process) => process.tick()))
      await database.clock.advance(60_000)
    }
    expect(new Set(database.runs().map(({ scheduledFor }) => scheduledFor)).size).toBe(12)
    expect(database.runs().length).toBe(12)
  })

  test('only the newest definition ticks, and the older process says so once', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const older = new Process({ five: everyFive }, database)
    await older.tick()
    await database.clock.advance(1_000)
    const newer = new Process({ five: { ...everyFive, every: '10m' } }, database)
    await newer.tick()
    for (let minute = 0; minute < 30; minute++) {
      await older.tick()
      await newer.tick()
      await database.clock.advance(60_000)
    }

    expect(older.fired).toEqual([])
    expect(older.said('schedule.outdated')).toEqual([{ event: 'schedule.outdated', schedule: 'five' }])
    expect(newer.slots.map((slot) => slot.slice(11, 16))).toEqual(['12:10', '12:20', '12:30'])
  })

  test('a schedule that was renamed fires under its new name only, and the old one has no definition any more', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const older = new Process({ old: everyFive }, database)
    await older.tick()
    await database.clock.advance(1_000)
    const newer = new Process({ renamed: everyFive }, database)
    await newer.tick()
    await database.until('2026-03-01T12:05:00Z')
    await older.tick()
    await newer.tick()

    expect([older.slots.length, newer.slots.length]).toEqual([0, 1])
    expect(database.state.schedules.get('old')).toMatchObject({ definition: '', cadence: '' })
  })

  test('a schedule that comes back is planned from then on', async () => {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    for (const schedules of [{ five: everyFive }, {}, { five: everyFive }]) {
      const process = new Process(schedules, database)
      await process.tick()
      expect(process.fired).toEqual([])
      await database.clock.advance(hourMs)
    }
  })
})

test('a schedule that cannot fire is told once, and the others go on', async () => {
  const database = new SharedMemory('2026-03-01T12:02:00Z')
  const process = new Process({ broken: { ...everyFive, job: 'nowt' }, five: everyFive }, database)
  for (let minute = 0; minute < 10; minute++) {
    await process.tick()
    await database.clock.advance(60_000)
  }

  expect(process.said('schedule.failed').map(({ schedule, error }) => `${schedule}: ${error.message}`)).toEqual([
    'broken: unknown job "nowt"',
  ])
  expect(process.slots.length).toBe(2)
})

test('an outage of the store is told once when it starts and once when it ends, and costs only what the policy says', async () => {
  const database = new SharedMemory('2026-03-01T12:02:00Z')
  const { schedules, clock } = database
  let isThere = true
  const look = async () => {
    if (!isThere) throw new KhepriError('STORE_UNREACHABLE', 'cannot reach the database')
    return schedules.look()
  }
  const faulty = Object.assign(Object.create(schedules) as ScheduleStore, {
    look,
    define: schedules.define.bind(schedules),
    take: schedules.take.bind(schedules),
    tick: schedules.tick.bind(schedules),
  })
  const process = new Process({ five: everyFive }, { schedules: faulty, clock })
  const running = process.run()
  for (const [moment, next] of [
    ['12:04', false],
    ['12:22', true],
    ['12:26', true],
  ] as const) {
    await database.until(`2026-03-01T${moment}:00Z`)
    isThere = next
  }
  await process.stop()
  await running

  expect(process.said('store.lost').map(({ message }) => message)).toEqual(['cannot reach the database'])
  expect(process.said('store.back').length).toBe(1)
  expect(database.runs()).toEqual([
    { scheduledFor: '2026-03-01T12:20:00.000Z', missed: 3 },
    { scheduledFor: '2026-03-01T12:25:00.000Z', missed: 0 },
  ])
})

test('a process that began earlier is the older one, however late it comes to look', async () => {
  const database = new SharedMemory('2026-03-01T12:02:00Z')
  const older = new Process({ five: { ...everyFive, payload: 'old' } }, database)
  await database.clock.advance(1_000)
  const newer = new Process({ five: { ...everyFive, payload: 'new' } }, database)
  await newer.tick()
  await database.clock.advance(1_000)
  await older.tick()

  expect(older.said('schedule.outdated').length).toBe(1)
  expect(newer.said('schedule.outdated').length).toBe(0)
})

describe('overlap', () => {
  async function hour(overlap: 'allow' | 'skip' | 'queue', finishAt: readonly number[]) {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: { ...everyFive, overlap } }, database)
    for (let minute = 2; minute < 24; minute++) {
      await process.tick()
      if (finishAt.includes(minute)) database.finishJobs()
      await database.clock.advance(60_000)
    }
    const told = process.events.map((facts) => {
      const at = 'slot' in facts ? new Date(facts.slot).toISOString().slice(11, 16) : ''
      return `${facts.event.replace('schedule.', '')} ${at}`
    })
    return told.filter((line) => !line.startsWith('job.'))
  }

  test('is allowed where the definition says so', async () => {
    expect(await hour('allow', [])).toEqual(['fired 12:05', 'fired 12:10', 'fired 12:15', 'fired 12:20'])
  })

  test('skips slots while a run has not ended, with an event', async () => {
    expect(await hour('skip', [17])).toEqual(['fired 12:05', 'skipped 12:10', 'skipped 12:15', 'fired 12:20'])
  })

  test('lets one slot wait for the run before it to end', async () => {
    expect(await hour('queue', [17])).toEqual([
      'fired 12:05',
      'waiting 12:10',
      'skipped 12:15',
      'fired 12:10',
      'waiting 12:20',
    ])
  })
})

describe('a paused queue', () => {
  async function pausedUntil(whilePaused: 'enqueue' | 'hold') {
    const database = new SharedMemory('2026-03-01T12:02:00Z')
    const process = new Process({ five: { ...everyFive, whilePaused, queue: 'mail' } }, database)
    await process.tick()
    await database.admin.pause(['mail'], null, null)
    for (let minute = 0; minute < 15; minute++) {
      await database.clock.advance(60_000)
      await process.tick()
    }
    const during = process.slots.length
    await database.admin.resume(['mail'])
    await process.tick()
    return {
      during,
      runs: database.runs().map(({ scheduledFor, missed }) => `${scheduledFor.slice(11, 16)} ${missed}`),
    }
  }

  test('is filled where its schedule does not mind', async () => {
    expect(await pausedUntil('enqueue')).toEqual({ during: 3, runs: ['12:05 0', '12:10 0', '12:15 0'] })
  })

  test('holds its schedule back, which then has the run of its misfire policy', async () => {
    expect(await pausedUntil('hold')).toEqual({ during: 0, runs: ['12:15 2'] })
  })
})

test('a paused schedule has no slots, and goes on from where it is resumed', async () => {
  const database = new SharedMemory('2026-03-01T12:02:00Z')
  const process = new Process({ five: everyFive }, database)
  await process.tick()
  await database.schedules.pause('five')
  await database.until('2026-03-01T12:33:00Z')
  await process.tick()
  await database.schedules.resume('five')
  await database.until('2026-03-01T12:35:00Z')
  await process.tick()

  expect(database.runs()).toEqual([{ scheduledFor: '2026-03-01T12:35:00.000Z', missed: 0 }])
})

test('a schedule that is not enabled never fires', async () => {
  const database = new SharedMemory('2026-03-01T12:02:00Z')
  const process = new Process({ five: { ...everyFive, enabled: false } }, database)
  await process.tick()
  await database.until('2026-03-01T13:00:00Z')

  expect(await process.tick()).toMatchObject({ fired: 0, nextAt: null })
})

test('five hundred schedules of midnight spread over their jitter, each at the same moment of every night', async () => {
  const database = new SharedMemory('2026-03-01T12:00:00Z')
  const names = Array.from({ length: 500 }, (_, index) => `tenant-${index}`)
  const schedules = Object.fromEntries(names.map((name) => [name, { job: 'note', cron: '0 0 * * *', jitter: '1h' }]))
  const process = new Process(schedules, database)
  const firedAt = new Map<string, number[]>()
  process.app.events.on('schedule.fired', ({ schedule }) => {
    firedAt.set(schedule, [...(firedAt.get(schedule) ?? []), process.now() % (24 * hourMs)])
  })
  for (let { nextAt } = await process.tick(); nextAt !== null && nextAt < Date.UTC(2026, 2, 3, 12); ) {
    await database.until(nextAt)
    nextAt = (await process.tick()).nextAt
    database.finishJobs()
  }

  expect(firedAt.size).toBe(500)
  for (const [first, second, ...more] of firedAt.values()) expect([first, more]).toEqual([second, []])
  const quarters = Map.groupBy(firedAt.values(), ([first = 0]) => Math.floor((4 * first) / hourMs))
  expect([...quarters.keys()].sort()).toEqual([0, 1, 2, 3])
  for (const quarter of quarters.values()) expect(quarter.length).toBeGreaterThan(80)
})
