/** A change of the clocks or of the calendar that schedulers get wrong, and what khepri does. */
interface HardCase {
  readonly name: string
  readonly cron: string
  readonly zone: string
  /** Firings that follow each other, as the clock on the wall shows them, with its offset and khepri's marks. */
  readonly fires: readonly string[]
}

/** The table of docs/schedules.md. */
export const hardCases: readonly HardCase[] = [
  {
    name: 'Oslo, clocks forward: 02:30 does not exist',
    cron: '30 2 * * *',
    zone: 'Europe/Oslo',
    fires: ['2026-03-28 02:30 +01:00', '2026-03-29 03:00 +02:00 (gap)', '2026-03-30 02:30 +02:00'],
  },
  {
    name: 'Oslo, clocks forward: four times in the gap are one run, with 03:00 itself',
    cron: '*/15 2,3 * * *',
    zone: 'Europe/Oslo',
    fires: ['2026-03-28 03:45 +01:00', '2026-03-29 03:00 +02:00 (gap)', '2026-03-29 03:15 +02:00'],
  },
  {
    name: 'Oslo, clocks back: 02:30 occurs twice',
    cron: '30 2 * * *',
    zone: 'Europe/Oslo',
    fires: ['2026-10-24 02:30 +02:00', '2026-10-25 02:30 +02:00 (twice)', '2026-10-26 02:30 +01:00'],
  },
  {
    name: 'Oslo, clocks forward: every half hour goes on in real time',
    cron: '*/30 * * * *',
    zone: 'Europe/Oslo',
    fires: ['2026-03-29 01:30 +01:00', '2026-03-29 03:00 +02:00', '2026-03-29 03:30 +02:00'],
  },
  {
    name: 'Oslo, clocks back: every half hour goes on in real time',
    cron: '*/30 * * * *',
    zone: 'Europe/Oslo',
    fires: [
      '2026-10-25 02:00 +02:00',
      '2026-10-25 02:30 +02:00',
      '2026-10-25 02:00 +01:00',
      '2026-10-25 02:30 +01:00',
      '2026-10-25 03:00 +01:00',
    ],
  },
  {
    name: 'New York, clocks forward',
    cron: '30 2 * * *',
    zone: 'America/New_York',
    fires: ['2026-03-07 02:30 -05:00', '2026-03-08 03:00 -04:00 (gap)', '2026-03-09 02:30 -04:00'],
  },
  {
    name: 'New York, clocks back',
    cron: '30 1 * * *',
    zone: 'America/New_York',
    fires: ['2026-10-31 01:30 -04:00', '2026-11-01 01:30 -04:00 (twice)', '2026-11-02 01:30 -05:00'],
  },
  {
    name: 'Lord Howe, half an hour forward',
    cron: '15 2 * * *',
    zone: 'Australia/Lord_Howe',
    fires: ['2026-10-03 02:15 +10:30', '2026-10-04 02:30 +11:00 (gap)', '2026-10-05 02:15 +11:00'],
  },
  {
    name: 'Lord Howe, half an hour back',
    cron: '45 1 * * *',
    zone: 'Australia/Lord_Howe',
    fires: ['2026-04-04 01:45 +11:00', '2026-04-05 01:45 +11:00 (twice)', '2026-04-06 01:45 +10:30'],
  },
  {
    name: 'Lord Howe, half an hour back, hourly',
    cron: '45 * * * *',
    zone: 'Australia/Lord_Howe',
    fires: ['2026-04-05 00:45 +11:00', '2026-04-05 01:45 +11:00', '2026-04-05 01:45 +10:30', '2026-04-05 02:45 +10:30'],
  },
  {
    name: 'Sao Paulo 2018: there is no midnight',
    cron: '@daily',
    zone: 'America/Sao_Paulo',
    fires: ['2018-11-03 00:00 -03:00', '2018-11-04 01:00 -02:00 (gap)', '2018-11-05 00:00 -02:00'],
  },
  {
    name: 'Sao Paulo 2018: midnight of a Sunday alone',
    cron: '@weekly',
    zone: 'America/Sao_Paulo',
    fires: ['2018-10-28 00:00 -03:00', '2018-11-04 01:00 -02:00 (gap)', '2018-11-11 00:00 -02:00'],
  },
  {
    name: 'Apia 2011: 30 December does not exist',
    cron: '0 12 * * *',
    zone: 'Pacific/Apia',
    fires: ['2011-12-29 12:00 -10:00', '2011-12-31 00:00 +14:00 (gap)', '2011-12-31 12:00 +14:00'],
  },
  {
    name: '29 February',
    cron: '0 12 29 2 *',
    zone: 'UTC',
    fires: ['2024-02-29 12:00 +00:00', '2028-02-29 12:00 +00:00'],
  },
  {
    name: '29 February: the year 2100 has none',
    cron: '0 12 29 2 *',
    zone: 'Europe/Oslo',
    fires: ['2096-02-29 12:00 +01:00', '2104-02-29 12:00 +01:00'],
  },
  {
    name: 'The end of the month: months without a 31st are passed over',
    cron: '0 23 31 * *',
    zone: 'Europe/Oslo',
    fires: [
      '2026-01-31 23:00 +01:00',
      '2026-03-31 23:00 +02:00',
      '2026-05-31 23:00 +02:00',
      '2026-07-31 23:00 +02:00',
      '2026-08-31 23:00 +02:00',
    ],
  },
  {
    name: 'A day of the month with a day of the week: either will do',
    cron: '0 0 13 * fri',
    zone: 'UTC',
    fires: ['2026-10-09 00:00 +00:00', '2026-10-13 00:00 +00:00', '2026-10-16 00:00 +00:00'],
  },
  {
    name: 'A field that begins with * is no such restriction: both must fit',
    cron: '0 0 */2 * mon',
    zone: 'UTC',
    fires: ['2026-10-05 00:00 +00:00', '2026-10-19 00:00 +00:00', '2026-11-09 00:00 +00:00'],
  },
]
