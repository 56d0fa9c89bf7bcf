import { KhepriCommand } from '../cli/base-command.ts'
import { durationFlag, Flags } from '../cli/flags.ts'
import { count } from '../cli/words.ts'
import { type AgedCounts, countPrunable, prune, type Retention, retentionOf } from '../core/retention.ts'
import type { Admin } from '../core/store/admin.ts'

/** `khepri prune`: deletes what ended longer ago than it is to be kept. */
export default class Prune extends KhepriCommand {
  static readonly id = 'prune'
  static readonly summary = 'Delete done, failed and cancelled jobs that are older than they are to be kept'
  static readonly description =
    'Keeps what keepDone, keepFailed and keepCancelled say, or the flags; what has neither is left alone. Deletes in small batches, so that workers hardly notice; it may be stopped and run again at any time.'
  static readonly examples = ['khepri prune', 'khepri prune --dry-run', 'khepri prune --keep-failed=30d --keep-done=0s']
  static readonly args = {}
  static readonly flags = {
    'keep-done': durationFlag({ helpValue: '7d', summary: 'delete done jobs that are older' }),
    'keep-failed': durationFlag({ helpValue: '30d', summary: 'delete failed jobs that are older' }),
    'keep-cancelled': durationFlag({ helpValue: '7d', summary: 'delete cancelled jobs that are older' }),
    'dry-run': Flags.boolean({ summary: 'count them, and change nothing' }),
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(Prune)
    const app = await this.app()
    const configured = retentionOf(app.config)
    const retention: Retention = {
      done: flags['keep-done'] ?? configured.done,
      failed: flags['keep-failed'] ?? configured.failed,
      cancelled: flags['keep-cancelled'] ?? configured.cancelled,
    }
    const admin = await app.admin()
    if (flags['dry-run']) return this.#tell('Would prune', await countPrunable(admin, retention))
    await this.#tell('Pruned', await this.#prune(admin, retention))
  }

  async #prune(admin: Admin, retention: Retention): Promise<AgedCounts> {
    const progress = this.progress('pruning', 'jobs')
    let done = 0
    try {
      return await prune(admin, retention, (counts) => {
        done = totalOf(counts)
        progress.update(done)
      })
    } catch (error) {
      if (done > 0) this.say(`Pruned ${count(done, 'job')} before this`)
      throw error
    } finally {
      progress.end()
    }
  }

  async #tell(verb: string, counts: AgedCounts): Promise<void> {
    if (this.output.mode === 'json') return this.output.document({ [keys[verb] ?? verb]: counts })
    const parts = Object.entries(counts).filter(([, number]) => number > 0)
    const each = parts.map(([state, number]) => `${number.toLocaleString('en-US')} ${state}`).join(', ')
    if (parts.length === 0) this.say('Nothing to prune')
    else await this.print(`${verb} ${count(totalOf(counts), 'job')}: ${each}`)
  }
}

/** What programs call what people read. */
const keys: Readonly<Record<string, string>> = { Pruned: 'pruned', 'Would prune': 'wouldPrune' }

const totalOf = ({ done, failed, cancelled }: AgedCounts): number => done + failed + cancelled
