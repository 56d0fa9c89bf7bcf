import { KhepriCommand } from '../cli/base-command.ts'
import { choiceFlag, countFlag, nameFlag } from '../cli/flags.ts'
import { firstOf, terminalLimit } from '../cli/limited.ts'
import type { Listing } from '../cli/output.ts'
import { hintAt } from '../cli/selection.ts'
import { jobRecord } from '../cli/shown-job.ts'
import type { Admin, JobFilter, StoredJob } from '../core/store/admin.ts'

const states = ['scheduled', 'ready', 'running', 'failed', 'done', 'cancelled'] as const

/** `khepri list`: lists jobs in every state. */
export default class List extends KhepriCommand {
  static readonly id = 'list'
  static readonly summary = 'List jobs, by state, queue or name'
  static readonly description =
    'The newest first. When is the moment that matters: due, ready since, started, failed or ended. Done jobs are there only where keepDone keeps them.'
  static readonly examples = ['khepri list', 'khepri list --state=running', 'khepri list --queue=mail --json']
  static readonly args = {}
  static readonly flags = {
    state: choiceFlag(states)({ char: 's', summary: 'jobs in this state' }),
    queue: nameFlag({ char: 'q', summary: 'jobs on this queue' }),
    job: nameFlag({ char: 'j', summary: 'jobs of this name' }),
    limit: countFlag({ char: 'n', summary: `list at most so many; ${terminalLimit} at a terminal, otherwise all` }),
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(List)
    const { state, queue, job } = flags
    const filter: JobFilter = {
      ...(state !== undefined && { state }),
      ...(queue !== undefined && { queue }),
      ...(job !== undefined && { job }),
    }
    const admin = await (await this.app()).admin()
    const limit = flags.limit ?? (this.output.mode === 'terminal' ? terminalLimit : null)
    let isMore = false
    // One more than is shown tells whether there are more.
    const rows = admin.jobs(filter, limit === null ? null : limit + 1)
    const shown = await this.output.list(
      firstOf(rows, limit, () => (isMore = true)),
      this.#listing,
    )
    if (shown === 0)
      return this.say(`No ${state === undefined ? '' : `${state} `}jobs${await this.#hint(admin, filter)}`)
    if (isMore && limit !== null && flags.limit === undefined)
      this.say(`More than ${limit}: --limit ${limit * 5} shows more, khepri status counts them`)
  }

  get #listing(): Listing<StoredJob> {
    return {
      columns: [
        { title: 'ID', value: ({ id }) => String(id) },
        { title: 'State', value: ({ state }) => state },
        { title: 'Queue', value: ({ queue }) => queue },
        { title: 'Job', value: ({ job }) => job },
        { title: 'When', value: (job) => this.output.time(momentOf(job)) },
        { title: 'Detail', value: detailOf },
      ],
      record: (job) => jobRecord(this.output, job),
    }
  }

  async #hint(admin: Admin, { queue, job }: JobFilter): Promise<string> {
    const queues = queue === undefined ? [] : (await admin.counts()).map((counts) => counts.queue)
    const queueHint = queue === undefined ? '' : hintAt('queue', queue, queues)
    if (queueHint !== '' || job === undefined) return queueHint
    return hintAt('job', job, (await (await this.app()).registry()).names())
  }
}

/** The moment that matters in its state. */
function momentOf({ startedAt, endedAt, availableAt, enqueuedAt }: StoredJob): number {
  return endedAt ?? startedAt ?? availableAt ?? enqueuedAt
}

function detailOf({ state, failure, holder, failures, cancelledAt, availableAt }: StoredJob): string {
  if (failure !== null) return failure.error
  const parts = [
    ...(holder === null ? [] : [`on ${holder.name ?? 'an unknown worker'}`]),
    ...(state === 'scheduled' && availableAt === null ? ['waits for other jobs'] : []),
    ...(cancelledAt === null ? [] : ['cancelled, its worker has yet to obey']),
    ...(failures === 0 || state === 'done' || state === 'cancelled' ? [] : [`try ${failures + 1}`]),
  ]
  return parts.length === 0 ? '-' : parts.join(', ')
}
