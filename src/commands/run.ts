import type { Khepri } from '../app.ts'
import { KhepriCommand, type ValuesOf } from '../cli/base-command.ts'
import { elapsed } from '../cli/elapsed.ts'
import { exits } from '../cli/exit-codes.ts'
import { Args, Flags, jobId, textFlag } from '../cli/flags.ts'
import { jobInFile, jobNamed, jobStored, looksLikeFile, replayOf } from '../cli/job-to-run.ts'
import { type RanHere, runHere } from '../cli/run-here.ts'
import { formatDuration } from '../core/duration.ts'
import { type ErrorCode, KhepriError } from '../core/errors.ts'
import type { Outcome } from '../core/policy.ts'
import type { Reservation } from '../core/store/store.ts'
import { describeError } from '../core/text.ts'

const runFlags = {
  id: Flags.custom<number>({
    helpValue: 'ID',
    summary: 'run this job of the store',
    parse: async (input) => jobId(input),
  })(),
  payload: textFlag({ helpValue: 'JSON|@FILE', summary: 'the payload of NAME; {} where none is given' }),
  set: textFlag({
    multiple: true,
    helpValue: 'KEY=TEXT',
    summary: 'a member of the payload; KEY:=JSON for what is not text',
  }),
}

type RunFlags = ValuesOf<typeof runFlags>

/** `khepri run`: runs one job here and now. */
export default class Run extends KhepriCommand {
  static readonly id = 'run'
  static readonly summary = 'Run one job here and now, in the foreground, without touching the store'
  static readonly description =
    'A registered NAME, the one job of a FILE ("-" is stdin), or with --id a job of the store, whatever its state. It runs once, with its timeout; nothing is written, nothing is retried, and its failed() hook is not called. What the job prints goes to stdout, what it logs to stderr. Exit 0: done; 1: failed; 75: it asked to run later.'
  static readonly examples = [
    `khepri run send-welcome --payload '{"userId":7}'`,
    'khepri run job.json',
    'khepri run --id 42',
    'khepri show 42 --envelope | ssh other khepri run -',
  ]
  static readonly args = { job: Args.string({ description: 'a job name, a job file, or -', ignoreStdin: true }) }
  static readonly flags = runFlags

  /** What the job prints is the result; with --json a reader finds only the document. */
  protected override get sharesStdout(): boolean {
    return !this.output.options.json
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Run)
    refuseVague(args.job, flags)
    const app = await this.app()
    const job = await this.#find(app, args.job, flags)
    const ran = await runHere(app, job, (text) => this.say(text))
    if (this.output.mode === 'json') await this.output.document(documentOf(job, ran))
    this.#tell(job, ran)
  }

  async #find(app: Khepri, word: string | undefined, { id, payload, set = [] }: RunFlags): Promise<Reservation> {
    if (id !== undefined) return this.#replay(app, id)
    const name = word as string
    const isKnown = (await app.registry()).get(name) !== undefined
    const isFile = !isKnown && payload === undefined && set.length === 0 && looksLikeFile(name)
    return isFile ? jobInFile(app, name) : jobNamed(app, name, { payload, set })
  }

  async #replay(app: Khepri, id: number): Promise<Reservation> {
    const job = await jobStored(app, id)
    if (job.state === 'running')
      this.say(`Job ${id} runs on worker ${job.holder?.name ?? 'unknown'} at this moment; this is a second run of it`)
    return replayOf(job)
  }

  #tell({ job }: Reservation, ran: RanHere): void {
    const { outcome, verdict, attempt, tries, ms, signalled } = ran
    if (outcome.kind === 'done') return this.say(`Ran ${job} in ${elapsed(ms)}`)
    this.report(errorOf(job, ran), signalled ?? (outcome.kind === 'released' ? exits.tryAgain : undefined))
    if (verdict.kind === 'retry')
      this.say(`A worker would try it again in ${formatDuration(verdict.delayMs)} (this was try ${attempt}/${tries})`)
    if (verdict.kind === 'fail') this.say(`A worker would fail it for good (this was try ${attempt}/${tries})`)
  }
}

function refuseVague(job: string | undefined, { id, payload, set }: RunFlags): void {
  const usage = (message: string, fix?: string) => new KhepriError('USAGE', message, fix === undefined ? {} : { fix })
  if (job === undefined && id === undefined) throw usage('nothing to run', 'name a job or a FILE, or say --id ID')
  if (id !== undefined && job !== undefined) throw usage('a job and --id exclude each other')
  if (id !== undefined && (payload !== undefined || set !== undefined))
    throw usage('--id excludes --payload and --set: the job has its payload')
}

/** The error of anything but a good end. */
function errorOf(job: string, { outcome, ms }: RanHere): KhepriError {
  const cause = causeOf(outcome)
  const details = cause === undefined ? {} : { cause }
  return new KhepriError(
    codes[outcome.kind] ?? 'JOB_FAILED',
    `${job} ${fateOf(outcome)} after ${elapsed(ms)}${reasonOf(outcome)}`,
    details,
  )
}

const codes: Readonly<Partial<Record<Outcome['kind'], ErrorCode>>> = {
  refused: 'DATA_INVALID',
  unloadable: 'MODULE_BROKEN',
}

const causeOf = (outcome: Outcome): unknown => ('error' in outcome ? outcome.error : undefined)

function fateOf({ kind }: Outcome): string {
  if (kind === 'released') return 'asked to run later'
  return kind === 'interrupted' ? 'was interrupted' : 'failed'
}

function reasonOf(outcome: Outcome): string {
  if (outcome.kind === 'unloadable') return `: ${outcome.message}`
  const cause = causeOf(outcome)
  if (cause === undefined) return ''
  const { type, message } = describeError(cause)
  return `: ${type}: ${message}`
}

function documentOf({ id, job }: Reservation, { outcome, attempt, tries, ms }: RanHere): object {
  const cause = causeOf(outcome)
  return {
    ...{ id: id === 0 ? null : id, job, outcome: outcome.kind === 'threw' ? 'failed' : outcome.kind },
    ...{ attempt, tries, ms, error: cause === undefined ? null : describeError(cause) },
  }
}
