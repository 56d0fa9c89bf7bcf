import type { Khepri } from '../app.ts'
import { KhepriCommand, type ValuesOf } from '../cli/base-command.ts'
import { Args, Flags, jobId, textFlag } from '../cli/flags.ts'
import { jobInFile, jobNamed, jobStored, looksLikeFile, replayOf } from '../cli/job-to-run.ts'
import { showRan } from '../cli/ran-here.ts'
import { runHere } from '../cli/run-here.ts'
import { KhepriError } from '../core/errors.ts'
import type { Reservation } from '../core/store/store.ts'

const runFlags = {
  id: Flags.custom<number>({
    helpValue: 'ID',
    summary: 'run this job of the store',
    parse: async (input) => jobId(input),
  })(),
  payload: textFlag({ helpValue: 'JSON|@FILE', summary: 'the payload of NAME; {} where none is given' }),
  set: textFlag({
    multiple: true,
    multipleNonGreedy: true,
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
    await showRan(job, ran, {
      output: this.output,
      say: (text) => this.say(text),
      report: (error, exit) => this.report(error, exit),
    })
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
}

function refuseVague(job: string | undefined, { id, payload, set }: RunFlags): void {
  const usage = (message: string, fix?: string) => new KhepriError('USAGE', message, fix === undefined ? {} : { fix })
  if (job === undefined && id === undefined) throw usage('nothing to run', 'name a job or a FILE, or say --id ID')
  if (id !== undefined && job !== undefined) throw usage('a job and --id exclude each other')
  if (id !== undefined && (payload !== undefined || set !== undefined))
    throw usage('--id excludes --payload and --set: the job has its payload')
}
