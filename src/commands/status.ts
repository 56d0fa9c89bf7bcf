import type { Khepri } from '../app.ts'
import { KhepriCommand } from '../cli/base-command.ts'
import { exits } from '../cli/exit-codes.ts'
import { Flags } from '../cli/flags.ts'
import { excessError, excesses, type Limits, limitFlags } from '../cli/limits.ts'
import { printStatus, type Status } from '../cli/status-report.ts'
import { stateOf } from '../cli/worker-list.ts'
import { defaults } from '../core/defaults.ts'
import { KhepriError } from '../core/errors.ts'

/** `khepri status`: tells how the queues and the workers are, and whether they keep within limits. */
export default class StatusCommand extends KhepriCommand {
  static readonly id = 'status'
  static readonly summary = 'Show the queues, the workers, and what has run for long'
  static readonly description =
    'Jobs of each queue by state, how long the oldest ready one has waited, and jobs that have run for more than five minutes. With --check the exit code is 1 where a limit is exceeded, and each such limit is named.'
  static readonly examples = ['khepri status', 'khepri status --check --max-ready=1000 --max-wait=5m --max-failed=0']
  static readonly args = {}
  static readonly flags = {
    check: Flags.boolean({ summary: 'exit 1 where a limit is exceeded' }),
    ...limitFlags,
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(StatusCommand)
    refuseUseless(flags)
    const status = await statusOf(await this.app())
    const over = flags.check ? excesses(status.queues, flags, status.at) : null
    await printStatus(this.output, status, over)
    for (const excess of over ?? []) this.report(excessError(excess), exits.failed)
    if (this.output.mode !== 'json' && isIdle(status))
      this.say('Jobs are ready and no worker is there. Start one: khepri work')
  }
}

/** Throws USAGE for limits that nobody checks, and for a check without limits, which could not fail. */
function refuseUseless(flags: Limits & { readonly check: boolean }): void {
  const names = Object.keys(limitFlags) as (keyof Limits)[]
  const given = names.find((name) => flags[name] !== undefined)
  if (given !== undefined && !flags.check) throw new KhepriError('USAGE', `--${given} needs --check`)
  if (given === undefined && flags.check)
    throw new KhepriError('USAGE', '--check needs a limit', { fix: 'say --max-ready, --max-wait or --max-failed' })
}

async function statusOf(app: Khepri): Promise<Status> {
  const { database } = app.config
  // First: it refuses a database without tables, or with too old or too new ones.
  const admin = await app.admin()
  const [queues, pauses, workers, busy] = await Promise.all([
    admin.counts(),
    admin.pauses(),
    admin.workers(),
    admin.busy(defaults.busyMs),
  ])
  const schema = database.kind === 'memory' ? null : await (await app.migrations()).status()
  return { at: Date.now(), database: database.label, schema, queues, pauses, workers, busy }
}

/** Nobody will take what is ready. */
function isIdle({ at, queues, workers }: Status): boolean {
  const waits = queues.some(({ ready, paused }) => ready > 0 && !paused)
  return waits && workers.every((worker) => ['dead', 'silent'].includes(stateOf(worker, at)))
}
