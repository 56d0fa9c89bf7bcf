import { KhepriCommand } from '../cli/base-command.ts'
import { reasonWord } from '../cli/fail-reason.ts'
import { printFailedJob } from '../cli/failed-job.ts'
import { Args, choiceFlag, countFlag, jobId } from '../cli/flags.ts'
import { firstOf, terminalLimit } from '../cli/limited.ts'
import type { Listing } from '../cli/output.ts'
import { failedFilter, filterFlags, hintFor, isSelective, missingError } from '../cli/selection.ts'
import { KhepriError } from '../core/errors.ts'
import type { Admin, FailedFilter, FailedGroup, FailedJob } from '../core/store/admin.ts'

/** `khepri failed`: lists the jobs that failed for good, or shows one of them. */
export default class Failed extends KhepriCommand {
  static readonly id = 'failed'
  static readonly summary = 'List the jobs that failed for good, or show one'
  static readonly description = 'Newest first. With an ID: its payload, its envelope, its attempts and their errors.'
  static readonly examples = [
    'khepri failed',
    'khepri failed 4',
    'khepri failed --queue=mail --since=2h',
    'khepri failed --by=error',
  ]
  static readonly args = {
    id: Args.custom<number>({ description: 'a job id', ignoreStdin: true, parse: async (input) => jobId(input) })(),
  }
  static readonly flags = {
    ...filterFlags,
    by: choiceFlag(['error', 'job', 'queue'])({ summary: 'count them by error, job or queue' }),
    limit: countFlag({ char: 'n', summary: `list at most so many; ${terminalLimit} at a terminal, otherwise all` }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Failed)
    const filter = failedFilter([], flags)
    if (args.id !== undefined && (isSelective(filter) || flags.by !== undefined || flags.limit !== undefined))
      throw new KhepriError('USAGE', 'an ID and flags that select or group exclude each other')
    const admin = await (await this.app()).admin()
    if (args.id !== undefined) return this.#show(admin, args.id)
    if (flags.by !== undefined) return this.#groups(await admin.failedGroups(filter, flags.by), flags.by)
    await this.#list(admin, filter, flags.limit)
  }

  async #show(admin: Admin, id: number): Promise<void> {
    const job = await admin.findFailed(id)
    if (job === null) throw missingError([id])
    await printFailedJob(this.output, job, await admin.attempts(id))
  }

  async #list(admin: Admin, filter: FailedFilter, asked: number | undefined): Promise<void> {
    const limit = asked ?? (this.output.mode === 'terminal' ? terminalLimit : null)
    // One more than is shown tells whether there are more.
    const rows = admin.failed(filter, limit === null ? null : limit + 1)
    let isMore = false
    const shown = await this.output.list(
      firstOf(rows, limit, () => (isMore = true)),
      this.#listing,
    )
    if (shown === 0) return this.say(`No failed jobs${await hintFor(admin, filter)}`)
    if (isMore && limit !== null && asked === undefined)
      this.say(`More than ${limit}: --limit ${limit * 5} shows more, --by error counts them`)
  }

  get #listing(): Listing<FailedJob> {
    return {
      columns: [
        { title: 'ID', value: ({ id }) => String(id) },
        { title: 'Queue', value: ({ queue }) => queue },
        { title: 'Job', value: ({ job }) => job },
        { title: 'Failed at', value: ({ failedAt }) => this.output.time(failedAt) },
        { title: 'Error', value: ({ error }) => error },
      ],
      record: ({ id, queue, job, failedAt, reason, errorType, error, failures, crashes, uniqueKey }) => ({
        ...{ id, queue, job, failedAt: this.output.moment(failedAt) },
        ...{ reason: reasonWord(reason), errorType, error, failures, crashes, unique: uniqueKey },
      }),
    }
  }

  async #groups(groups: readonly FailedGroup[], by: 'error' | 'job' | 'queue'): Promise<void> {
    const title = { error: 'Error', job: 'Job', queue: 'Queue' }[by]
    const shown = await this.output.list(groups, {
      columns: [
        { title: 'Count', value: ({ count }) => String(count) },
        { title: 'Latest', value: ({ latestAt }) => this.output.time(latestAt) },
        { title, value: ({ key }) => key },
      ],
      record: ({ key, count, latestAt }) => ({ [by]: key, count, latestAt: this.output.moment(latestAt) }),
    })
    if (shown === 0) this.say('No failed jobs')
  }
}
