import { KhepriCommand } from '../../cli/base-command.ts'
import { knownSchedule, scheduleArgument } from '../../cli/known-schedules.ts'

/** `khepri schedule resume`: ends the pause of a schedule. */
export default class ScheduleResume extends KhepriCommand {
  static readonly id = 'schedule resume'
  static readonly summary = 'Resume a paused schedule'
  static readonly description =
    'It goes on with its next slot; slots that came during the pause are not made up for. One that is not paused stays as it is.'
  static readonly examples = ['khepri schedule resume nightly-rollup']
  static readonly args = { name: scheduleArgument({ required: true }) }
  static readonly flags = {}

  protected async run(): Promise<void> {
    const { args } = await this.parse(ScheduleResume)
    const app = await this.app()
    const name = await knownSchedule(app, args.name as string)
    const resumed = await (await app.scheduleStore()).resume(name)
    if (this.output.mode === 'json') return this.output.document({ schedule: name, resumed })
    if (resumed) await this.print(`Resumed schedule ${name}`)
    else this.say(`Schedule ${name} is not paused`)
  }
}
