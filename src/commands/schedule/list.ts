import { KhepriCommand } from '../../cli/base-command.ts'
import { listedSchedules, scheduleListing } from '../../cli/schedule-list.ts'

/** `khepri schedule list`: when each schedule runs next, and how its last run went. */
export default class ScheduleList extends KhepriCommand {
  static readonly id = 'schedule list'
  static readonly summary = 'List the schedules: when, the last run and its result, the next five times'
  static readonly description =
    'A schedule is new until somebody has looked after it once, paused by khepri schedule pause, disabled by its configuration, outdated where a newer process defines it otherwise, and an orphan where the store knows it and this configuration does not: it no longer fires. The result "ended" means that the store has forgotten the job, as it forgets done ones unless keepDone is set.'
  static readonly examples = [
    'khepri schedule list',
    'khepri schedule list --timezone=Europe/Oslo',
    'khepri schedule list --json',
  ]
  static readonly args = {}
  static readonly flags = {}

  protected async run(): Promise<void> {
    await this.parse(ScheduleList)
    const schedules = await listedSchedules(await this.app())
    const shown = await this.output.list(schedules, scheduleListing(this.output))
    if (shown === 0) this.say('No schedules. Put some into the configuration: schedules: { … }')
  }
}
