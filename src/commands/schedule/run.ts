import type { Khepri } from '../../app.ts'
import { KhepriCommand } from '../../cli/base-command.ts'
import { describe } from '../../cli/lines.ts'
import { type Fired, firedListing, tickerName } from '../../cli/ticking.ts'
import { KhepriError } from '../../core/errors.ts'
import { version } from '../../core/package.ts'

/** `khepri schedule run`: looks after the schedules once. */
export default class ScheduleRun extends KhepriCommand {
  static readonly id = 'schedule run'
  static readonly summary = 'Look after the schedules once: enqueue what is due, and end'
  static readonly description =
    'For cron or a systemd timer, once a minute; it enqueues only, workers run the jobs. Any number may run at once. A schedule that is seen for the first time is planned from now on. Exit 1 where a schedule cannot fire; the others do.'
  static readonly examples = ['khepri schedule run', '* * * * * cd /srv/app && npx khepri schedule run --quiet']
  static readonly args = {}
  static readonly flags = {}

  protected async run(): Promise<void> {
    await this.parse(ScheduleRun)
    const app = await this.app()
    const ticker = await app.ticker({ name: tickerName(), tellsOutages: true })
    const fired = this.#listen(app)
    await ticker.tick()
    const shown = fired.length > 0 || this.output.mode === 'json'
    if (shown) await this.output.list(fired, firedListing(this.output))
    else this.say('Nothing is due')
  }

  #listen({ events, config }: Khepri): readonly Fired[] {
    const fired: Fired[] = []
    events.on('schedule.fired', (event) => void fired.push(event))
    events.on('schedule.failed', ({ schedule, error }) =>
      this.report(new KhepriError('SCHEDULE_FAILED', `schedule ${schedule} cannot fire: ${error.message}`)),
    )
    const facts = { version: version(), database: config.database.label }
    for (const name of ['schedule.misfired', 'schedule.skipped', 'schedule.waiting', 'schedule.outdated'] as const)
      events.on(name, (event) => {
        const shown = describe(name, event, facts)
        if (shown?.kind === 'sentence') this.say(shown.text)
      })
    return fired
  }
}
