import { expect, test } from 'vitest'
import { parseCrontab } from '../../src/schedule/crontab.ts'
import { schedulesFrom } from '../../src/schedule/from-crontab.ts'

function read(...lines: readonly string[]) {
  return schedulesFrom(parseCrontab(lines.join('\n')), 'Europe/Oslo')
}

test('an entry becomes a schedule that does what cron did: a shell, no catching up, overlaps', () => {
  expect(read('# Nightly backup', '30 2 * * * /usr/local/bin/backup.sh --all')).toEqual({
    backup: {
      description: 'Nightly backup',
      cron: '30 2 * * *',
      zone: 'Europe/Oslo',
      overlap: 'allow',
      misfire: 'skip',
      exec: '/bin/sh',
      args: ['-c', '/usr/local/bin/backup.sh --all'],
    },
  })
})

test('settings become the environment, the shell and the zone; nobody is mailed', () => {
  const { run } = read('MAILTO=root', 'SHELL=/bin/bash', 'PATH=/opt/bin:/bin', 'CRON_TZ=Asia/Tokyo', '@daily run')
  expect(run).toMatchObject({ zone: 'Asia/Tokyo', exec: '/bin/bash', env: { PATH: '/opt/bin:/bin' } })
})

test('what follows a % is the standard input of the command', () => {
  const { mail } = read("0 9 * * 1 mail -s it's root%Good morning%bye")
  expect(mail?.args).toEqual(['-c', "printf %s 'Good morning\nbye\n' | { mail -s it's root\n}"])
})

test('entries of one program have names of their own, and a folder that is changed to gives no name', () => {
  const lines = ['0 1 * * * cd /srv/app && LANG=C ./bin/report.sh -v', '0 2 * * * report', '0 3 * * * ( true )']
  expect(Object.keys(read(...lines))).toEqual(['report', 'report-2', 'job'])
})
