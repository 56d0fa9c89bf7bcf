import { KhepriCommand } from '../../cli/base-command.ts'
import { scheduleArgument, scheduleNamed } from '../../cli/known-schedules.ts'
import { showRan } from '../../cli/ran-here.ts'
import { runHere } from '../../cli/run-here.ts'
import { unstored } from '../../core/lone-attempt.ts'

/** `khepri schedule test`: one run of a schedule in the foreground. */
export default class ScheduleTest extends KhepriCommand {
  static readonly id = 'schedule test'
  static readonly summary = 'Run the job of a schedule once, here and now, without touching the store'
  static readonly description =
    'With its payload and its terms, as for a slot of this moment. Nothing is written, nothing is retried. What the job prints goes to stdout, what it logs to stderr. Exit 0: done; 1: failed; 75: it asked to run later.'
  static readonly examples = ['khepri schedule test nightly-rollup']
  static readonly args = { name: scheduleArgument({ required: true }) }
  static readonly flags = {}

  /** What the job prints is the result; with --json a reader finds only the document. */
  protected override get sharesStdout(): boolean {
    return !this.output.options.json
  }

  protected async run(): Promise<void> {
    const { args } = await this.parse(ScheduleTest)
    const app = await this.app()
    const schedule = await scheduleNamed(app, args.name as string)
    const now = Date.now()
    const row = await app.scheduledJob(schedule, { name: schedule.name, scheduledFor: now, firedAt: now, missed: 0 })
    const job = unstored(row, now)
    const ran = await runHere(app, job, (text) => this.say(text))
    await showRan(job, ran, {
      output: this.output,
      say: (text) => this.say(text),
      report: (error, exit) => this.report(error, exit),
    })
  }
}
