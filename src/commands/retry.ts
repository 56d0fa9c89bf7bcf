import { KhepriCommand } from '../cli/base-command.ts'
import { exits } from '../cli/exit-codes.ts'
import { durationFlag, Flags, idsOrAllArgument } from '../cli/flags.ts'
import {
  failedFilter,
  filterFlags,
  hintFor,
  idsOrAll,
  inChunks,
  isSelective,
  jobsText,
  missingError,
  nothingSelected,
  type Selection,
  select,
} from '../cli/selection.ts'
import { count } from '../cli/words.ts'
import { KhepriError } from '../core/errors.ts'
import type { Admin, Retried } from '../core/store/admin.ts'

/** `khepri retry`: puts failed jobs back on their queues. */
export default class Retry extends KhepriCommand {
  static readonly id = 'retry'
  static readonly summary = 'Put failed jobs back on their queues'
  static readonly description =
    'Each goes back to the queue it failed on, with its envelope and its id, at attempt one.'
  static readonly examples = [
    'khepri retry 4 7',
    'khepri retry --all',
    'khepri retry --queue=mail --since=2h --delay=10m',
  ]
  static readonly args = {
    id: idsOrAllArgument({ multiple: true }),
  }
  static readonly flags = {
    ...filterFlags,
    all: Flags.boolean({ summary: 'every failed job' }),
    delay: durationFlag({ summary: 'run them no earlier than so long from now' }),
    'dry-run': Flags.boolean({ summary: 'say which, and change nothing' }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Retry)
    const { ids, all } = idsOrAll(args.id ?? [], flags.all)
    const filter = failedFilter(ids, flags)
    if (!all && !isSelective(filter)) throw nothingSelected()
    const admin = await (await this.app()).admin()
    const selection = await select(admin, filter)
    if (flags['dry-run']) return this.#preview(selection)
    const hint = selection.held.length > 0 ? '' : await hintFor(admin, filter)
    await this.#tell(selection, await this.#retry(admin, selection, flags.delay ?? 0), hint)
  }

  async #preview(selection: Selection): Promise<void> {
    const ids = selection.held.map(({ id }) => id)
    if (this.output.mode === 'json') await this.output.document({ wouldRetry: ids.length, missing: selection.missing })
    else if (ids.length > 0) await this.print(`Would retry ${jobsText(ids, selection)}`)
    this.#reportMissing(selection.missing, ids.length === 0)
  }

  /** Chunk by chunk, each in a transaction of its own: whoever stops half-way leaves every job either failed or live. */
  async #retry(admin: Admin, { held, missing }: Selection, delayMs: number): Promise<Retried> {
    const total = { retried: [] as number[], missing: [...missing], blocked: [] as Retried['blocked'][number][] }
    const progress = this.progress('retrying', 'job')
    try {
      for (const chunk of inChunks(held)) {
        const { retried, missing, blocked } = await admin.retryFailed(chunk, delayMs)
        total.retried.push(...retried)
        total.missing.push(...missing)
        total.blocked.push(...blocked)
        progress.update(total.retried.length, total.retried.length / held.length)
      }
    } catch (error) {
      if (total.retried.length > 0)
        this.say(`Retried ${count(total.retried.length, 'job')} before this; the rest is still failed`)
      throw error
    } finally {
      progress.end()
    }
    return total
  }

  async #tell(selection: Selection, { retried, missing, blocked }: Retried, hint: string): Promise<void> {
    const isNothing = retried.length + missing.length + blocked.length === 0
    if (this.output.mode === 'json') await this.output.document({ retried: retried.length, missing, blocked })
    else if (retried.length > 0) await this.print(`Retried ${jobsText(retried, selection)}`)
    else if (isNothing) this.say(`Nothing to retry${hint}`)
    this.#reportMissing(missing, retried.length + blocked.length === 0)
    this.#reportBlocked(blocked)
  }

  #reportMissing(missing: readonly number[], isAll: boolean): void {
    const error = missingError(missing)
    if (error !== null) this.report(error, isAll ? exits.notFound : exits.failed)
  }

  #reportBlocked(blocked: Retried['blocked']): void {
    const [first] = blocked
    if (first === undefined) return
    const rest = blocked.length === 1 ? '' : `, and ${count(blocked.length - 1, 'other')} likewise`
    const message = `job ${first.id} stays failed: live job ${first.holder} has its unique key${rest}`
    this.report(new KhepriError('KEY_HELD', message, { fix: 'retry it when that job has ended' }))
  }
}
