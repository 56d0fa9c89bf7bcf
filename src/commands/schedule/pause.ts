import { KhepriCommand } from '../../cli/base-command.ts'
import { knownSchedule, scheduleArgument } from '../../cli/known-schedules.ts'

/** `khepri schedule pause`: a schedule has no runs until it is resumed. */
export default class SchedulePause extends KhepriCommand {
  static readonly id = 'schedule pause'
  static readonly summary = 'Pause a schedule: none of its slots has a run until it is resumed'
  static readonly description =
    'The pause is stored and holds for everybody who looks after the schedules. What is enqueued already runs. To keep jobs of a whole queue from running: khepri pause.'
  static readonly examples = ['khepri schedule pause nightly-rollup']
  static readonly args = { name: scheduleArgument({ required: true }) }
  static readonly flags = {}

  protected async run(): Promise<void> {
    const { args } = await this.parse(SchedulePause)
    const app = await this.app()
    const name = await knownSchedule(app, args.name as string)
    await (await app.scheduleStore()).pause(name)
    if (this.output.mode === 'json') return this.output.document({ paused: name })
    await this.print(`Paused schedule ${name}`)
    this.say(`Go on: khepri schedule resume ${name}`)
  }
}
