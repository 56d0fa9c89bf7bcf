import { describe, expect, it } from 'vitest'
import { type CrontabEntry, parseCrontab } from '../../src/schedule/crontab.ts'

/** The one entry of a crontab that has no other and in which nothing is refused. */
function onlyEntry(text: string): CrontabEntry {
  const { entries, refused } = parseCrontab(text)
  expect(refused).toEqual([])
  expect(entries).toHaveLength(1)
  return entries[0] as CrontabEntry
}

it('a crontab of the kind that people have is read: settings, comments, nicknames, what is refused', () => {
  const text = [
    '# Edit this file to introduce tasks to be run by cron.',
    '#',
    '# m h  dom mon dow   command',
    'MAILTO=ops@example.com',
    'PATH = "/usr/local/bin:/usr/bin"',
    '',
    '# Nightly rollup of the orders',
    '# and their totals',
    '30 2 * * 1-5  /opt/shop/rollup --full  >>/var/log/rollup.log 2>&1',
    '@daily find /tmp/uploads -mtime +7 -delete',
    '@reboot /opt/shop/start',
    '  CRON_TZ=Europe/Oslo',
    '#0 4 * * * /opt/shop/old',
    '0 9 1 jan,jul * echo "Happy half-year"',
    '61 * * * * /opt/shop/never',
    'whatever',
  ].join('\n')
  const environment = { MAILTO: 'ops@example.com', PATH: '/usr/local/bin:/usr/bin' }
  const common = { zone: null, stdin: null, environment, description: null }
  expect(parseCrontab(text)).toEqual({
    entries: [
      {
        ...common,
        line: 9,
        cron: '30 2 * * 1-5',
        command: '/opt/shop/rollup --full  >>/var/log/rollup.log 2>&1',
        description: 'Nightly rollup of the orders and their totals',
      },
      { ...common, line: 10, cron: '@daily', command: 'find /tmp/uploads -mtime +7 -delete' },
      { ...common, line: 14, cron: '0 9 1 jan,jul *', zone: 'Europe/Oslo', command: 'echo "Happy half-year"' },
    ],
    refused: [
      {
        line: 11,
        text: '@reboot /opt/shop/start',
        reason:
          'the cron expression "@reboot" names no time: nothing fires when a machine starts; let a systemd unit with WantedBy=multi-user.target dispatch the job',
      },
      {
        line: 15,
        text: '61 * * * * /opt/shop/never',
        reason: 'the cron expression "61 * * * *" has "61" as its minute, which must be 0 to 59',
      },
      {
        line: 16,
        text: 'whatever',
        reason: 'this is no entry: it needs five fields, or a nickname such as @daily, and a command',
      },
    ],
  })
})

describe('a percent sign', () => {
  it.each<[string, string, string | null]>([
    ['mail -s hello%Dear all,%good night', 'mail -s hello', 'Dear all,\ngood night\n'],
    ['date +\\%F', 'date +%F', null],
    ['date +\\%F%in%\\%', 'date +%F', 'in\n%\n'],
    ['cat%one%', 'cat', 'one\n'],
    ['cat%', 'cat', ''],
    ['printf a\\\\%b', 'printf a\\\\', 'b\n'],
    ['printf a\\\\\\%b', 'printf a\\\\%b', null],
    ['grep "\\d\\."', 'grep "\\d\\."', null],
  ])('%j runs %j with the input %j', (written, command, stdin) => {
    expect(onlyEntry(`* * * * * ${written}`)).toMatchObject({ command, stdin })
  })
})

describe('a setting', () => {
  it.each([
    ['A=1', { A: '1' }],
    [' A = 1 2 ', { A: '1 2' }],
    ['A="1 2 "', { A: '1 2 ' }],
    ["A='1'", { A: '1' }],
    ['"A"="1"', { A: '1' }],
    ['A=', { A: '' }],
    ['A=$HOME/x=y', { A: '$HOME/x=y' }],
    ['A=1\nA=2', { A: '2' }],
    ['A="1', { A: '"1' }],
  ])('%j is handed to the commands below it', (text, environment) => {
    expect(onlyEntry(`${text}\n@daily x`).environment).toEqual(environment)
  })

  it('does not reach the commands above it', () => {
    const { entries } = parseCrontab('@daily x\nA=1\n@daily y')
    expect(entries.map((entry) => entry.environment)).toEqual([{}, { A: '1' }])
  })

  it('of a name that objects have stays an ordinary setting', () => {
    const { environment } = onlyEntry('__proto__=x\n@daily y')
    expect(Object.entries(environment)).toEqual([['__proto__', 'x']])
  })
})

describe('the zone', () => {
  it.each<[string, string | null]>([
    ['', null],
    ['CRON_TZ=Asia/Tokyo\n', 'Asia/Tokyo'],
    ['TZ=Asia/Tokyo\n', 'Asia/Tokyo'],
    ['CRON_TZ=Asia/Tokyo\nTZ=Europe/Oslo\n', 'Asia/Tokyo'],
    ['CRON_TZ=Asia/Tokyo\nCRON_TZ=\n', null],
  ])('under %j it is %j', (settings, zone) => {
    expect(onlyEntry(`${settings}@daily x`).zone).toBe(zone)
  })

  it('in CRON_TZ is for cron alone; TZ is handed to the command too', () => {
    expect(onlyEntry('CRON_TZ=Asia/Tokyo\nTZ=Europe/Oslo\n@daily x').environment).toEqual({ TZ: 'Europe/Oslo' })
  })

  it.each([[':Europe/Oslo'], ['CET-1CEST']])('in %j is refused with each line below it', (zone) => {
    expect(parseCrontab(`TZ=${zone}\n@daily x\n@daily y`).refused).toEqual([
      expect.objectContaining({
        line: 2,
        reason: expect.stringContaining('zone must be the name of an IANA time zone'),
      }),
      expect.objectContaining({ line: 3 }),
    ])
  })
})

describe('a comment', () => {
  it.each<[string, string | null]>([
    ['# one', 'one'],
    ['#one\n   ## two', 'one two'],
    ['# one\n', null],
    ['# one\nA=1', null],
    ['# one\n#\n# two', 'two'],
    ['# m h  dom mon dow   command', null],
    ['# 0 5 * * 1 tar -zcf /var/backups/home.tgz /home/', null],
    ['# 5 minutes after the import has ended', '5 minutes after the import has ended'],
  ])('%j describes the line below it as %j', (comment, description) => {
    expect(onlyEntry(`${comment}\n@daily x`).description).toBe(description)
  })

  it('describes one line only, and none when its own is refused', () => {
    const { entries } = parseCrontab('# one\n@daily x\n@daily y\n# two\n@reboot z\n@daily w')
    expect(entries.map((entry) => entry.description)).toEqual(['one', null, null])
  })
})

it.each([
  ['CRLF at the ends of lines', 'A=1\r\n# one\r\n@daily x\r\n'],
  ['a byte order mark', '\ufeffA=1\n# one\n@daily x'],
  ['tabs', '\tA\t=\t1\n\t# one\n@daily\tx\t'],
])('%s do not matter', (_, text) => {
  expect(onlyEntry(text)).toMatchObject({ cron: '@daily', command: 'x', environment: { A: '1' }, description: 'one' })
})

it.each([['* * * * *'], ['@daily'], ['* * * * * '], ['root']])('%j lacks a command and is refused', (text) => {
  expect(parseCrontab(text).refused).toEqual([
    { line: 1, text: text.trim(), reason: expect.stringContaining('this is no entry') },
  ])
})

it('an empty crontab has no entries', () => {
  expect(parseCrontab('')).toEqual({ entries: [], refused: [] })
})
