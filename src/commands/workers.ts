import { KhepriCommand } from '../cli/base-command.ts'
import { livingFirst, workerListing } from '../cli/worker-list.ts'
import { defaults } from '../core/defaults.ts'

/** `khepri workers`: lists the worker processes that the store knows. */
export default class Workers extends KhepriCommand {
  static readonly id = 'workers'
  static readonly summary = 'List the workers: where they run, what they serve, when they last beat'
  static readonly description =
    'A silent worker has not beaten for its whole lease and counts as dead as soon as another one looks; dead ones stay in the list for a day. Busy names jobs that have run for more than five minutes.'
  static readonly examples = ['khepri workers', 'khepri workers --json']
  static readonly args = {}
  static readonly flags = {}

  protected async run(): Promise<void> {
    await this.parse(Workers)
    const admin = await (await this.app()).admin()
    const [workers, busy] = await Promise.all([admin.workers(), admin.busy(defaults.busyMs)])
    const shown = await this.output.list(livingFirst(workers), workerListing(this.output, busy))
    if (shown === 0) this.say('No workers. Start one: khepri work')
  }
}
