import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { KhepriCommand } from '../../cli/base-command.ts'
import { exits } from '../../cli/exit-codes.ts'
import { Args, textFlag } from '../../cli/flags.ts'
import { checkTimezone } from '../../cli/time.ts'
import { count } from '../../cli/words.ts'
import { KhepriError } from '../../core/errors.ts'
import { parseCrontab } from '../../schedule/crontab.ts'
import { schedulesFrom } from '../../schedule/from-crontab.ts'

/** `khepri schedule import`: a crontab as schedules. */
export default class ScheduleImport extends KhepriCommand {
  static readonly id = 'schedule import'
  static readonly summary = 'Print the schedules of a crontab, ready for a configuration'
  static readonly description =
    'Reads a FILE as crontab -l prints it ("-" is stdin) and prints { "schedules": … }, which a khepri.config.json takes as it is; changes nothing. Comments become descriptions, settings the environment, CRON_TZ and TZ the zone; without them it is the zone of this machine, which cron uses, unless --zone says another. Lines that cannot be taken are named with the reason, exit 1.'
  static readonly examples = [
    'crontab -l | khepri schedule import - > khepri.config.json',
    'khepri schedule import my.crontab --zone=Europe/Oslo',
  ]
  static readonly args = { file: Args.string({ description: 'a crontab, or -', required: true, ignoreStdin: true }) }
  static readonly flags = {
    zone: textFlag({
      helpValue: 'TZ',
      summary: 'the zone of entries that name none',
      parse: async (input) => checkTimezone(input, '--zone'),
    }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(ScheduleImport)
    const crontab = parseCrontab(await contentOf(args.file as string))
    const zone = flags.zone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone
    const schedules = schedulesFrom(crontab, zone)
    if (this.output.mode === 'json') await this.output.document({ schedules, refused: crontab.refused })
    else await this.print(JSON.stringify({ schedules }, null, 2))
    for (const { line, reason } of crontab.refused)
      this.report(new KhepriError('DATA_INVALID', `line ${line}: ${reason}`), exits.failed)
    this.say(`Read ${count(crontab.entries.length, 'entry').replace(/entrys$/, 'entries')}`)
    if (crontab.entries.some((entry) => entry.zone === null) && flags.zone === undefined)
      this.say(`The zone is that of this machine, ${zone}; --zone says another`)
  }
}

/** Throws INPUT_MISSING. */
async function contentOf(file: string): Promise<string> {
  if (file === '-') return text(process.stdin)
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new KhepriError('INPUT_MISSING', `cannot read ${file}: ${code}`, { cause })
  }
}
