import { lineMode } from '../../cli/attend.ts'
import { KhepriCommand } from '../../cli/base-command.ts'
import { exits } from '../../cli/exit-codes.ts'
import { isStartedByNpm, watchNpm } from '../../cli/npm-parent.ts'
import { tickerName } from '../../cli/ticking.ts'
import { count } from '../../cli/words.ts'
import { WorkerLog } from '../../cli/worker-log.ts'
import { systemClock } from '../../core/clock.ts'
import { version } from '../../core/package.ts'

/** `khepri schedule work`: looks after the schedules until it is told to stop. */
export default class ScheduleWork extends KhepriCommand {
  static readonly id = 'schedule work'
  static readonly summary = 'Look after the schedules until told to stop; runs no job'
  static readonly description =
    'Enqueues the jobs of slots as they come; workers run them. Any number of processes may do it, each slot has one job. khepri work --schedule does both. Stops on Ctrl-C or SIGTERM, exit 0.'
  static readonly examples = ['khepri schedule work', 'khepri schedule work --json']
  static readonly args = {}
  static readonly flags = {}

  protected async run(): Promise<void> {
    await this.parse(ScheduleWork)
    const app = await this.app()
    const ticker = await app.ticker({ name: tickerName(), tellsOutages: true })
    const log = this.#log(app.config.database.label)
    const stopFollowing = log.follow(app.events)
    const stop = (): void => void ticker.stop()
    const stopHearing = onStop(stop)
    this.output.stdout.onFault(stop)
    this.say(
      `khepri ${version()} looks after ${count((await app.schedules()).length, 'schedule')}  ${app.config.database.label}    Ctrl-C stops`,
    )
    await ticker.run()
    stopHearing()
    stopFollowing()
    log.close()
    if (this.output.stdout.fault !== null) this.exitWith(exits.io)
  }

  /** Lines as a worker writes them, without a screen: there is nothing to draw. */
  #log(database: string): WorkerLog {
    const { stdout, options } = this.output
    const mode = lineMode(this.output)
    return new WorkerLog({
      ...{ mode: mode === 'terminal' ? 'pipe' : mode, log: 'all', quiet: options.quiet, stacks: options.verbose },
      ...{ worker: { version: version(), database }, clock: systemClock, screen: null },
      out: (text) => void stdout.write(text).catch(() => {}),
      err: (text) => void process.stderr.write(text),
    })
  }
}

/** Hears what stops a process, the end of its npm included; the result ends it. */
function onStop(stop: () => void): () => void {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, stop)
  const stopWatching = isStartedByNpm(process.env) ? watchNpm(systemClock, stop) : () => {}
  return () => {
    for (const signal of signals) process.off(signal, stop)
    stopWatching()
  }
}
