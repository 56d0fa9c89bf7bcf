import { ask } from '../cli/ask.ts'
import { KhepriCommand } from '../cli/base-command.ts'
import { cancelAll, type Ending, endingsOf } from '../cli/cancelling.ts'
import { exits } from '../cli/exit-codes.ts'
import { Flags, idsArgument } from '../cli/flags.ts'
import {
  type LiveSelection,
  liveFilter,
  liveFilterFlags,
  selectLive,
  statesOf,
  type Unselected,
  unselectedErrors,
} from '../cli/live-selection.ts'
import { hintAt, jobsText, jobText } from '../cli/selection.ts'
import { count, listed } from '../cli/words.ts'
import { KhepriError } from '../core/errors.ts'
import type { Admin, Cancelled, LiveFilter } from '../core/store/admin.ts'
import type { JobId } from '../core/store/store.ts'

/** What follows for marked jobs. */
const aborting = {
  one: 'Its worker aborts its signal within 2 s; --wait says how it ends',
  many: 'Their workers abort their signals within 2 s; --wait says how they end',
}

/** `khepri cancel`: ends jobs that have not ended by themselves. */
export default class Cancel extends KhepriCommand {
  static readonly id = 'cancel'
  static readonly summary = 'Cancel jobs, whether or not they run'
  static readonly description =
    `What no worker holds is cancelled at once. What a worker holds is marked: its abort signal fires within 2 s. A handler that returns all the same has done its job; one that throws, times out or loses its worker is cancelled and not tried again. A selection by filter is counted and asked about at a terminal; in a pipe --all needs --yes.`
  static readonly examples = [
    'khepri cancel 7 9',
    'khepri cancel 7 --wait',
    'khepri cancel --queue=mail --state=scheduled',
    'khepri cancel --all --yes',
  ]
  static readonly args = { id: idsArgument({ multiple: true }) }
  static readonly flags = {
    ...liveFilterFlags,
    all: Flags.boolean({ summary: 'every job that has not ended' }),
    wait: Flags.boolean({ summary: 'wait until they have ended, and say how' }),
    'dry-run': Flags.boolean({ summary: 'say which, and change nothing' }),
    yes: Flags.boolean({ char: 'y', summary: 'do not ask' }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Cancel)
    const filter = liveFilter(args.id ?? [], flags)
    this.#refuseVague(filter, flags)
    const admin = await (await this.app()).admin()
    const selection = await selectLive(admin, filter)
    if (flags['dry-run']) return this.#preview(selection)
    if (!flags.yes && !(await this.#isMeant(selection, filter))) return this.say('Nothing cancelled')
    const outcome = await this.#cancel(admin, selection.ids)
    const escaped = await this.#escaped(admin, outcome.missing, filter)
    await this.#tell(outcome, selection)
    if (selection.ids.length + selection.unselected.length === 0)
      this.#mention(`Nothing to cancel${await this.#hint(admin, filter)}`)
    const ended = flags.wait ? await this.#wait(admin, outcome.marked, selection) : null
    await this.#conclude(outcome, [...selection.unselected, ...escaped], ended)
  }

  /** Throws USAGE where nothing is selected, or everything by somebody who cannot be asked whether that is meant. */
  #refuseVague(filter: LiveFilter, flags: Readonly<Record<'all' | 'yes' | 'dry-run', boolean>>): void {
    if (flags.all && filter.ids) throw new KhepriError('USAGE', 'ids and --all exclude each other')
    if (!flags.all && Object.keys(filter).length === 0)
      throw new KhepriError('USAGE', 'nothing selected', { fix: 'name ids or a filter such as --queue, or say --all' })
    if (flags.all && !flags.yes && !flags['dry-run'] && !this.canAsk)
      throw new KhepriError('USAGE', 'cancel --all needs --yes where nobody can be asked', {
        fix: 'say --yes; --dry-run counts the jobs',
      })
  }

  /** Whoever named the ids has seen them; what a filter selects is shown first. */
  async #isMeant(selection: LiveSelection, filter: LiveFilter): Promise<boolean> {
    if (filter.ids || selection.ids.length === 0 || !this.canAsk) return true
    return ask(`Cancel ${jobsText(selection.ids, selection)}?`)
  }

  async #preview(selection: LiveSelection): Promise<void> {
    const { ids, unselected } = selection
    if (this.output.mode === 'json') await this.output.document({ wouldCancel: ids, missing: unselected })
    else if (ids.length > 0) await this.print(`Would cancel ${jobsText(ids, selection)}`)
    else if (unselected.length === 0) this.say('Nothing to cancel')
    this.#reportUnselected(unselected, ids.length === 0)
  }

  async #cancel(admin: Admin, ids: readonly JobId[]): Promise<Cancelled> {
    const progress = this.progress('cancelling', 'job')
    let done = 0
    try {
      return await cancelAll(admin, ids, (count) => {
        done = count
        progress.update(done, done / ids.length)
      })
    } catch (error) {
      if (done > 0) this.say(`Cancelled ${count(done, 'job')} before this; the rest is as it was`)
      throw error
    } finally {
      progress.end()
    }
  }

  /** What ended by itself before its turn came; of what was named it is said what has become of it. */
  async #escaped(admin: Admin, missing: readonly JobId[], { ids }: LiveFilter): Promise<readonly Unselected[]> {
    if (ids) return statesOf(admin, missing)
    if (missing.length > 0) this.#mention(`${count(missing.length, 'job')} had ended by then`)
    return []
  }

  async #tell({ cancelled, marked }: Cancelled, selection: LiveSelection): Promise<void> {
    if (this.output.mode === 'json') return
    if (cancelled.length > 0) await this.print(`Cancelled ${jobsText(cancelled, selection)}`)
    if (marked.length > 0) await this.print(`Marked ${jobsText(marked, selection)}`)
  }

  async #wait(admin: Admin, marked: readonly JobId[], selection: LiveSelection): Promise<readonly Ending[]> {
    const ended: Ending[] = []
    if (marked.length > 0) this.#mention(`Waiting for ${count(marked.length, 'job')} to end; Ctrl-C ends only the wait`)
    const name = (id: JobId): string => jobText(id, selection)
    for await (const ending of endingsOf(admin, marked, (left) => this.#sayWhoIsLeft(admin, left, name))) {
      ended.push(ending)
      if (this.output.mode !== 'json') await this.print(`${name(ending.id)} ended as ${ending.state}`)
    }
    return ended
  }

  async #sayWhoIsLeft(admin: Admin, left: readonly JobId[], name: (id: JobId) => string): Promise<void> {
    const [first] = left
    if (first === undefined) return
    const holder = (await admin.find(first))?.holder?.name ?? null
    const others = left.length === 1 ? '' : `, and for ${count(left.length - 1, 'other')}`
    this.#mention(`Still waiting for ${name(first)}${holder === null ? '' : ` on worker ${holder}`}${others}`)
  }

  async #conclude(
    { cancelled, marked }: Cancelled,
    missing: readonly Unselected[],
    ended: readonly Ending[] | null,
  ): Promise<void> {
    if (this.output.mode === 'json')
      await this.output.document({ cancelled, marked, missing, ...(ended !== null && { ended }) })
    else if (marked.length > 0 && ended === null) this.say(marked.length === 1 ? aborting.one : aborting.many)
    this.#reportUnselected(missing, cancelled.length + marked.length === 0)
  }

  #reportUnselected(unselected: readonly Unselected[], isAll: boolean): void {
    const before = unselected.filter(({ state }) => state === 'cancelled')
    if (before.length > 0) this.#mention(`Cancelled already: ${listed(before.map(({ id }) => id))}`)
    const isWholly = isAll && before.length === 0
    for (const error of unselectedErrors(unselected)) this.report(error, isWholly ? exits.notFound : exits.failed)
  }

  async #hint(admin: Admin, { queue, job }: LiveFilter): Promise<string> {
    const queues = queue === undefined ? [] : (await admin.counts()).map((counts) => counts.queue)
    const queueHint = queue === undefined ? '' : hintAt('queue', queue, queues)
    if (queueHint !== '' || job === undefined) return queueHint
    return hintAt('job', job, (await (await this.app()).registry()).names())
  }

  /** Prose that a program has no use for. */
  #mention(text: string): void {
    if (this.output.mode !== 'json') this.say(text)
  }
}
