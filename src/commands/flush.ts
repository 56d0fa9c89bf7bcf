import { ask } from '../cli/ask.ts'
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
import type { Admin, FailedFilter } from '../core/store/admin.ts'

/** `khepri flush`: deletes failed jobs. */
export default class Flush extends KhepriCommand {
  static readonly id = 'flush'
  static readonly summary = 'Delete failed jobs'
  static readonly description =
    'Deletes what had failed when it began, with the attempts; asks first at a terminal. In a pipe, where nobody can be ' +
    'asked, all of it goes only with --all or --yes.'
  static readonly examples = [
    'khepri flush',
    'khepri flush 4 7',
    'khepri flush --all',
    'khepri flush --older-than=7d --yes',
  ]
  static readonly args = { id: idsOrAllArgument({ multiple: true }) }
  static readonly flags = {
    ...filterFlags,
    'older-than': durationFlag({ helpValue: '7d', summary: 'failed longer ago than this' }),
    all: Flags.boolean({ summary: 'every failed job' }),
    yes: Flags.boolean({ char: 'y', summary: 'do not ask' }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Flush)
    const { ids, all } = idsOrAll(args.id ?? [], flags.all)
    const filter = olderThan(failedFilter(ids, flags), flags['older-than'])
    // `flush $IDS` in a script whose IDS is empty must not delete everything.
    if (!this.canAsk && !all && !flags.yes && !isSelective(filter)) throw nothingSelected()
    const admin = await (await this.app()).admin()
    const selection = await select(admin, filter)
    if (
      selection.held.length > 0 &&
      this.canAsk &&
      !flags.yes &&
      !(await ask(`Delete ${jobsText(idsOf(selection), selection)}?`))
    )
      return this.say('Nothing deleted')
    await this.#tell(selection, await this.#flush(admin, selection), await this.#hint(admin, selection, filter))
  }

  async #flush(admin: Admin, { held }: Selection): Promise<readonly number[]> {
    const flushed: number[] = []
    const progress = this.progress('deleting', 'job')
    try {
      for (const chunk of inChunks(held)) {
        flushed.push(...(await admin.deleteFailed(chunk)))
        progress.update(flushed.length, flushed.length / held.length)
      }
    } catch (error) {
      if (flushed.length > 0) this.say(`Deleted ${count(flushed.length, 'job')} before this`)
      throw error
    } finally {
      progress.end()
    }
    return flushed
  }

  async #tell(selection: Selection, flushed: readonly number[], hint: string): Promise<void> {
    const { missing } = selection
    if (this.output.mode === 'json') await this.output.document({ deleted: flushed.length, missing })
    else if (flushed.length > 0) await this.print(`Deleted ${jobsText(flushed, selection)}`)
    else if (missing.length === 0) this.say(`Nothing to delete${hint}`)
    const error = missingError(missing)
    if (error !== null) this.report(error, flushed.length === 0 ? exits.notFound : exits.failed)
  }

  async #hint(admin: Admin, { held }: Selection, filter: FailedFilter): Promise<string> {
    return held.length > 0 ? '' : hintFor(admin, filter)
  }
}

const idsOf = ({ held }: Selection): readonly number[] => held.map(({ id }) => id)

/** Both bounds hold where both are given. */
function olderThan(filter: FailedFilter, ms: number | undefined): FailedFilter {
  if (ms === undefined) return filter
  return { ...filter, until: Math.min(filter.until ?? Number.POSITIVE_INFINITY, Date.now() - ms) }
}
