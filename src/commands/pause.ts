import { KhepriCommand } from '../cli/base-command.ts'
import { durationFlag, Flags, textFlag } from '../cli/flags.ts'
import { knownQueues, queuesArgument } from '../cli/known-queues.ts'
import { hintAt } from '../cli/selection.ts'
import { count, listed } from '../cli/words.ts'
import { KhepriError } from '../core/errors.ts'

/** `khepri pause`: keeps workers from reserving from queues. */
export default class Pause extends KhepriCommand {
  static readonly id = 'pause'
  static readonly summary = 'Pause queues: no worker takes their jobs until they are resumed'
  static readonly description =
    'The pause is stored and holds for every worker, also for those that start later; what runs may end. Workers obey at their next look at the queue. --all pauses the queues that are known now: those with jobs, with workers, or in the configuration.'
  static readonly examples = [
    'khepri pause mail',
    'khepri pause mail high --for=10m --reason="deploy"',
    'khepri pause --all',
  ]
  static readonly args = { queue: queuesArgument({ multiple: true }) }
  static readonly flags = {
    all: Flags.boolean({ summary: 'every queue that is known now' }),
    for: durationFlag({ helpValue: '10m', summary: 'resume by itself after so long' }),
    reason: textFlag({ helpValue: 'TEXT', summary: 'why, for whoever looks' }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Pause)
    const named = [...new Set(args.queue ?? [])]
    refuseVague(named, flags.all)
    const app = await this.app()
    const admin = await app.admin()
    const known = await knownQueues(app, admin)
    const queues = flags.all ? known : named
    const until = flags.for === undefined ? null : Date.now() + flags.for
    await admin.pause(queues, until, flags.reason ?? null)
    await this.#tell(queues, until, flags.reason ?? null)
    for (const queue of named) this.#doubt(queue, known)
  }

  async #tell(queues: readonly string[], until: number | null, reason: string | null): Promise<void> {
    const end = until === null ? null : this.output.moment(until)
    if (this.output.mode === 'json') return this.output.document({ paused: queues, until: end, reason })
    await this.print(`Paused ${count(queues.length, 'queue')}${end === null ? '' : ` until ${end}`}: ${listed(queues)}`)
    this.say(`What runs may end. Go on: khepri resume ${queues.length === 1 ? queues[0] : '--all'}`)
  }

  /** A queue may be paused before it has a job; but perhaps another one was meant. */
  #doubt(queue: string, known: readonly string[]): void {
    const hint = hintAt('queue', queue, known)
    if (hint !== '') this.say(`Nobody knows a queue${hint.replace(/^ on queue/, '')}`)
  }
}

function refuseVague(queues: readonly string[], all: boolean): void {
  if (all && queues.length > 0) throw new KhepriError('USAGE', 'queues and --all exclude each other')
  if (!all && queues.length === 0)
    throw new KhepriError('USAGE', 'no queue given', { fix: 'name queues, or say --all' })
}
