import { KhepriCommand } from '../cli/base-command.ts'
import { exits } from '../cli/exit-codes.ts'
import { type LoadedJob, loadAll } from '../cli/loaded-jobs.ts'
import type { Config } from '../core/config.ts'
import { formatDuration } from '../core/duration.ts'

/** `khepri jobs`: lists the registered jobs and loads every one. */
export default class Jobs extends KhepriCommand {
  static readonly id = 'jobs'
  static readonly summary = 'List the registered jobs, and check that each loads'
  static readonly description =
    'Imports every job module and looks for every executable; exit 1 names those that are not in order.'
  static readonly examples = ['khepri jobs', 'khepri jobs --json']
  static readonly args = {}
  static readonly flags = {}

  protected async run(): Promise<void> {
    await this.parse(Jobs)
    const app = await this.app()
    const jobs = await loadAll(await app.registry())
    await this.#list(jobs, app.config)
    if (jobs.length === 0) this.say('No jobs are registered. Next:  khepri init, or put a module into ./jobs')
    for (const { terms, fault } of jobs) if (terms === null) this.report(fault, exits.failed)
  }

  /** A module that leaves an error behind has not loaded well. */
  protected override heardStray(): void {
    this.exitWith(exits.failed)
  }

  async #list(jobs: readonly LoadedJob[], config: Config): Promise<void> {
    const of = ({ terms }: LoadedJob) =>
      terms && {
        queue: terms.queue ?? config.queue,
        tries: terms.tries ?? config.tries,
        timeoutMs: terms.timeoutMs ?? config.timeoutMs,
      }
    await this.output.list(jobs, {
      columns: [
        { title: 'Job', value: ({ name }) => name },
        { title: 'Queue', value: (job) => of(job)?.queue ?? '-' },
        { title: 'Tries', value: (job) => String(of(job)?.tries ?? '-') },
        { title: 'Timeout', value: (job) => timeoutText(of(job)?.timeoutMs) },
        { title: 'Source', value: ({ source, terms }) => (terms === null ? `${source}  does not load` : source) },
      ],
      record: (job) => ({ job: job.name, source: job.source, loads: job.terms !== null, ...of(job) }),
    })
  }
}

const timeoutText = (ms: number | null | undefined): string => (typeof ms === 'number' ? formatDuration(ms) : '-')
