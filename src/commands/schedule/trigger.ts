import { KhepriCommand } from '../../cli/base-command.ts'
import { scheduleArgument, scheduleNamed } from '../../cli/known-schedules.ts'

/** `khepri schedule trigger`: one run now. */
export default class ScheduleTrigger extends KhepriCommand {
  static readonly id = 'schedule trigger'
  static readonly summary = 'Enqueue one run of a schedule now; its plan stays as it is'
  static readonly description =
    'The run is enqueued whatever the overlap policy says, and also where the schedule is paused or disabled: somebody asks for it. Until it has ended it counts as a run that the next slot may have to wait for. Prints the id of the job.'
  static readonly examples = [
    'khepri schedule trigger nightly-rollup',
    'khepri show $(khepri schedule trigger nightly-rollup --quiet)',
  ]
  static readonly args = { name: scheduleArgument({ required: true }) }
  static readonly flags = {}

  protected async run(): Promise<void> {
    const { args } = await this.parse(ScheduleTrigger)
    const app = await this.app()
    const schedule = await scheduleNamed(app, args.name as string)
    const now = Date.now()
    const run = { name: schedule.name, scheduledFor: now, firedAt: now, missed: 0 }
    const job = await app.scheduledJob(schedule, run)
    const id = await (await app.scheduleStore()).trigger(schedule.name, job)
    if (this.output.mode === 'json')
      return this.output.document({ id, schedule: schedule.name, job: job.job, queue: job.queue })
    await this.print(String(id))
    this.say(`Triggered ${schedule.name}: ${job.job} on ${job.queue}. How it goes: khepri show ${id}`)
  }
}
