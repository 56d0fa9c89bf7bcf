import type { Khepri } from '../app.ts'
import { attend } from '../cli/attend.ts'
import { KhepriCommand } from '../cli/base-command.ts'
import { exits } from '../cli/exit-codes.ts'
import type { LogLevel } from '../cli/lines.ts'
import { undeclared, unregistered } from '../cli/unserved.ts'
import { count } from '../cli/words.ts'
import { type WorkFlags, withEnvironment, workFlags, workOptions } from '../cli/work-flags.ts'
import type { WorkerReport } from '../core/events.ts'

/** `khepri work`: runs jobs until it is told to stop. */
export default class Work extends KhepriCommand {
  static readonly id = 'work'
  static readonly summary = 'Run jobs'
  static readonly description =
    'Takes jobs from the queues, runs them, tries them again when they fail. Stops gently on Ctrl-C or SIGTERM: what runs may end. ' +
    'Each flag but --job, --except-job and --migrate may also be set as KHEPRI_WORK_<FLAG>.'
  static readonly examples = [
    'khepri work --queue=high,default --concurrency=4',
    'khepri work --stop-when-empty',
    'khepri work --once --exit-code',
    'khepri work --schedule',
  ]
  static readonly args = {}
  static readonly flags = workFlags

  /** With --json a reader finds nothing but events on stdout; otherwise what jobs print belongs to the worker's output. */
  protected override get sharesStdout(): boolean {
    return !this.output.options.json
  }

  protected async run(): Promise<void> {
    const parsed = await this.parse(Work)
    const app = await this.app()
    const flags = await withEnvironment(parsed.flags, app.config.work)
    if (flags.migrate) await this.#migrate()
    for (const warning of await strangers(app, flags)) this.warn(warning)
    if (!flags.schedule) await this.#hint(app)
    const broken = new Set<string>()
    app.events.on('module.broken', ({ job }) => broken.add(job))
    const { report, status } = await attend({
      app,
      output: this.output,
      options: { ...workOptions(flags), schedule: flags.schedule },
      log: (flags.log ?? 'all') as LogLevel,
      watched: {
        healthFile: flags['health-file'],
        healthPort: flags['health-port'],
        maxMemoryBytes: flags['max-memory'],
      },
      report: (error, exit) => this.report(error, exit),
    })
    this.exitWith(status ?? statusOf(report, flags, broken.size > 0))
  }

  /** A store that cannot be asked is the worker's own business. */
  async #hint(app: Khepri): Promise<void> {
    if (app.config.schedules.length === 0) return
    const { unwatched, watchFix } = await import('../cli/unwatched.ts')
    const text = await unwatched(app).catch(() => null)
    if (text !== null) this.say(`hint: ${text}: ${watchFix}`)
  }

  async #migrate(): Promise<void> {
    const applied = await (await (await this.app()).migrations()).apply()
    if (applied.length > 0) this.say(`applied ${count(applied.length, 'migration')}`)
  }
}

/** Names on the command line that nobody knows: a worker that waits for them would wait for ever. */
async function strangers(
  app: Khepri,
  { queue, pool, job, 'except-job': except }: WorkFlags,
): Promise<readonly string[]> {
  const queues = pool?.keys() ?? (queue === 'all' ? [] : (queue ?? []))
  const names = [...(job ?? []), ...(except ?? [])]
  return [
    ...undeclared(queues, app.config.queues?.map(({ name }) => name) ?? null),
    ...(names.length === 0 ? [] : unregistered(names, (await app.registry()).names())),
  ]
}

/** What the outcome of the jobs means for the exit code, where that was asked for. */
function statusOf(
  { done, retried, failed, released, lost }: WorkerReport,
  flags: WorkFlags,
  hasBrokenModules: boolean,
): number {
  if (!flags['exit-code']) return exits.ok
  if (failed > 0) return exits.failed
  if (hasBrokenModules) return exits.config
  return flags.once && done + retried + released + lost === 0 ? exits.notFound : exits.ok
}
