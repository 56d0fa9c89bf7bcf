import { KhepriCommand } from '../cli/base-command.ts'
import { exits } from '../cli/exit-codes.ts'
import { Flags } from '../cli/flags.ts'
import { knownQueues, queuesArgument } from '../cli/known-queues.ts'
import { count, listed } from '../cli/words.ts'
import { KhepriError } from '../core/errors.ts'
import { didYouMean } from '../core/suggest.ts'

/** `khepri resume`: ends pauses. */
export default class Resume extends KhepriCommand {
  static readonly id = 'resume'
  static readonly summary = 'Resume paused queues'
  static readonly description =
    'Workers take from them again at their next look. A queue that is not paused stays as it is.'
  static readonly examples = ['khepri resume mail', 'khepri resume --all']
  static readonly args = { queue: queuesArgument({ multiple: true }) }
  static readonly flags = { all: Flags.boolean({ summary: 'every paused queue' }) }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Resume)
    const named = [...new Set(args.queue ?? [])]
    if (flags.all && named.length > 0) throw new KhepriError('USAGE', 'queues and --all exclude each other')
    if (!flags.all && named.length === 0)
      throw new KhepriError('USAGE', 'no queue given', { fix: 'name queues, or say --all' })
    const app = await this.app()
    const admin = await app.admin()
    const paused = (await admin.pauses()).map(({ queue }) => queue)
    const resumed = flags.all ? paused : named.filter((queue) => paused.includes(queue))
    await admin.resume(resumed)
    const others = named.filter((queue) => !resumed.includes(queue))
    const known = others.length === 0 ? [] : await knownQueues(app, admin)
    if (flags.all && resumed.length === 0 && this.output.mode !== 'json') return this.say('No queue is paused')
    await this.#tell(
      resumed,
      others.filter((queue) => known.includes(queue)),
    )
    this.#reportUnknown(
      others.filter((queue) => !known.includes(queue)),
      [...paused, ...known],
      resumed.length === 0,
    )
  }

  async #tell(resumed: readonly string[], running: readonly string[]): Promise<void> {
    if (this.output.mode === 'json') return this.output.document({ resumed, notPaused: running })
    if (resumed.length > 0) await this.print(`Resumed ${count(resumed.length, 'queue')}: ${listed(resumed)}`)
    if (running.length > 0) this.say(`Not paused: ${listed(running)}`)
  }

  #reportUnknown(unknown: readonly string[], known: readonly string[], isAll: boolean): void {
    for (const queue of unknown) {
      const message = `no paused queue ${JSON.stringify(queue)}${didYouMean(queue, known)}`
      this.report(new KhepriError('NOT_FOUND', message), isAll ? exits.notFound : exits.failed)
    }
  }
}
