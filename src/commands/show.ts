import { KhepriCommand } from '../cli/base-command.ts'
import { Args, Flags, jobId } from '../cli/flags.ts'
import { escaped } from '../cli/job-parts.ts'
import { unselectedErrors } from '../cli/live-selection.ts'
import { printShownJob } from '../cli/shown-job.ts'
import { whyNot } from '../cli/why.ts'
import { KhepriError } from '../core/errors.ts'
import { findFault } from '../core/json-text.ts'
import type { Admin, WholeJob } from '../core/store/admin.ts'

/** `khepri show`: tells everything about one job, wherever it is. */
export default class Show extends KhepriCommand {
  static readonly id = 'show'
  static readonly summary = 'Show one job: payload, attempts, and why it is not running'
  static readonly description =
    'Finds the job whatever its state. --envelope prints only what dispatch and run accept, so that it can run elsewhere.'
  static readonly examples = ['khepri show 42', 'khepri show 42 --envelope > job.json && khepri run job.json']
  static readonly args = {
    id: Args.custom<number>({ description: 'a job id', required: true, parse: async (input) => jobId(input) })(),
  }
  static readonly flags = {
    envelope: Flags.boolean({ summary: 'print the envelope alone, as it is stored' }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Show)
    const id = args.id as number
    const admin = await (await this.app()).admin()
    const job = await admin.stored(id)
    if (job === null) throw unselectedErrors([{ id, state: null }])[0]
    if (flags.envelope) return this.output.stdout.write(`${envelopeOf(job)}\n`)
    const [attempts, why] = await Promise.all([admin.attempts(id), this.#why(admin, job)])
    await printShownJob(this.output, { job, attempts, why })
  }

  async #why(admin: Admin, job: WholeJob): Promise<string> {
    const [pauses, ahead, workers, queues, parents] = await Promise.all([
      admin.pauses(),
      admin.ahead(job.id),
      admin.workers(),
      admin.counts(),
      admin.parents(job.id),
    ])
    const moment = (at: number): string => this.output.moment(at)
    return whyNot(job, { at: Date.now(), pauses, ahead, workers, queues, parents, moment })
  }
}

/** Throws DATA_INVALID for a text that nothing could read again. */
function envelopeOf({ id, envelope }: WholeJob): string {
  if (findFault(envelope) === null) return escaped(envelope)
  throw new KhepriError('DATA_INVALID', `the envelope of job ${id} is not valid JSON`, {
    fix: `khepri show ${id} shows it all the same`,
  })
}
