import { existsSync } from 'node:fs'
import type { Khepri } from '../app.ts'
import type { ValuesOf } from '../cli/base-command.ts'
import { KhepriCommand } from '../cli/base-command.ts'
import { BulkDispatch, enqueueSurely } from '../cli/bulk-dispatch.ts'
import { Inputs, type Overrides, payloadText } from '../cli/dispatch-inputs.ts'
import { type DispatchFacts, DispatchReport } from '../cli/dispatch-report.ts'
import { exits } from '../cli/exit-codes.ts'
import {
  Args,
  asUsage,
  backoffFlag,
  countFlag,
  durationFlag,
  Flags,
  integerFlag,
  jobIdFlag,
  nameFlag,
  positiveDurationFlag,
  textFlag,
} from '../cli/flags.ts'
import { Progress } from '../cli/progress.ts'
import { Rejects } from '../cli/rejects.ts'
import { parseZonedTime } from '../cli/time.ts'
import { type Places, undeclared, workCommand } from '../cli/unserved.ts'
import { KhepriError } from '../core/errors.ts'
import type { Registry } from '../core/registry.ts'
import type { Due } from '../core/store/store.ts'
import { checkQueue, checkUnique, maxPriority, type Terms } from '../core/terms.ts'

const dispatchFlags = {
  job: nameFlag({ summary: 'the job; every value of a FILE is then a payload' }),
  payload: textFlag({ helpValue: 'JSON|@FILE', summary: 'the payload; {} where none is given' }),
  set: textFlag({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'KEY=TEXT',
    summary: 'a member of the payload; KEY:=JSON for what is not text',
  }),
  queue: textFlag({
    helpValue: 'NAME',
    summary: 'the queue',
    parse: async (input) => asUsage(() => checkQueue(input, '--queue')),
  }),
  priority: integerFlag({ min: -maxPriority, max: maxPriority, summary: 'lower runs first; 0 where none is given' }),
  delay: durationFlag({ helpValue: '5m', summary: 'may run after so long' }),
  at: textFlag({ helpValue: 'TIME', summary: 'may run from this time: ISO 8601 with an offset, or in --timezone' }),
  tries: countFlag({ summary: 'how often it may run, the first run included' }),
  backoff: backoffFlag({ summary: 'the wait before the next try: one duration, or one for each' }),
  timeout: positiveDurationFlag({ summary: 'bounds an attempt' }),
  unique: textFlag({
    helpValue: 'KEY',
    summary: 'at most one live job may carry it',
    parse: async (input) => asUsage(() => checkUnique(input, '--unique')),
  }),
  after: jobIdFlag({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'ID',
    summary: 'waits until this job is done; may be given several times',
  }),
  'dry-run': Flags.boolean({ summary: 'read and check, write nothing' }),
  'allow-unknown': Flags.boolean({ summary: 'accept names that this configuration does not know' }),
  chunk: countFlag({
    default: 10_000,
    max: 100_000,
    summary: 'jobs a transaction, for streams and more than 100,000 jobs',
  }),
  'skip-invalid': Flags.boolean({ summary: 'leave out what cannot be dispatched, and exit 1' }),
  rejects: textFlag({ helpValue: 'FILE', summary: 'with --skip-invalid: write what is left out to this new file' }),
}

type DispatchFlags = ValuesOf<typeof dispatchFlags> & { readonly timezone: string | undefined }

/** Exit 0 says that a job is kept: not by what ends with this command. */
function requireLasting({ config: { database } }: Khepri): void {
  if (database.kind !== 'memory') return
  throw new KhepriError('USAGE', `${database.label} ends with this command, and with it what would be dispatched`, {
    fix: 'name a file or a server with --database; khepri run runs a job here and now',
  })
}

/** `khepri dispatch`: puts jobs in. */
export default class Dispatch extends KhepriCommand {
  static readonly id = 'dispatch'
  static readonly summary = 'Put jobs in, from the command line, files or a stream'
  static readonly description =
    'A FILE holds one job object, an array of them, or one a line; "-" is stdin. Exit 0 means that the jobs are committed. ' +
    'Prints the ids; from 1,000 jobs on, and for streams, their number.'
  static readonly examples = [
    `khepri dispatch --job send-welcome --payload '{"userId":7}'`,
    'khepri dispatch --job send-welcome --set name=Ada --set userId:=7 --delay 10m',
    'khepri dispatch job.json users.ndjson',
    'gen-users | khepri dispatch - --job send-welcome --skip-invalid --rejects bad.ndjson',
  ]
  static readonly args = { files: Args.string({ multiple: true, description: 'job files; - for stdin' }) }
  static readonly flags = dispatchFlags

  protected async run(): Promise<void> {
    const { flags, args } = await this.parse(Dispatch)
    const files = (args.files ?? []) as readonly string[]
    const overrides = overridesOf(flags)
    checkCombination(files, flags)
    const app = await this.app()
    requireLasting(app)
    const report = new DispatchReport(this.output)
    if (files.length === 0) await this.#one(app, { flags, overrides, report })
    else await this.#bulk(app, { files, flags, overrides, report })
  }

  async #one(app: Khepri, { flags, overrides, report }: Setting): Promise<void> {
    const dispatcher = await app.dispatcher({ allowUnknown: flags['allow-unknown'] })
    const row = await dispatcher.prepare({
      ...overrides,
      job: overrides.job as string,
      payloadText: payloadText({ payload: flags.payload, set: flags.set ?? [] }),
    })
    if (flags['dry-run']) return report.checked(1, null)
    const [enqueued] = await enqueueSurely((rows) => app.enqueue(rows), [row])
    const { id, duplicate } = enqueued as { id: number; duplicate: boolean }
    const places: Places = new Map(duplicate ? [] : [[row.queue, row]])
    await report.dispatched(
      { dispatched: duplicate ? 0 : 1, duplicates: duplicate ? [id] : [], ids: [id], first: row, places },
      { rejects: null, isStream: false, areSeveral: false, ...(await advice(app, places)) },
    )
  }

  async #bulk(
    app: Khepri,
    { files, flags, overrides, report }: Setting & { readonly files: readonly string[] },
  ): Promise<void> {
    if (isTyped(files)) this.say('reading from the terminal, Ctrl-D ends')
    refuseJobNames(files, await app.registry())
    const inputs = new Inputs(files, overrides, { stdin: process.stdin, maxPayloadBytes: app.config.maxPayloadBytes })
    const dispatcher = await app.dispatcher({ allowUnknown: flags['allow-unknown'] })
    const rejects = flags['skip-invalid'] ? new Rejects(flags.rejects ?? null) : null
    const enqueue: Khepri['enqueue'] = (rows) => app.enqueue(rows)
    const bulk = new BulkDispatch({
      inputs,
      dispatcher,
      enqueue,
      chunk: flags.chunk as number,
      rejects,
      progress: (label) => this.#progress(label, files),
    })
    try {
      if (flags['dry-run']) await report.checked(await bulk.check(), rejects)
      else {
        const outcome = await bulk.run()
        const { isStream, areSeveral } = inputs
        await report.dispatched(outcome, { rejects, isStream, areSeveral, ...(await advice(app, outcome.places)) })
      }
    } finally {
      rejects?.close()
    }
    if (rejects !== null && rejects.count > 0) this.exitWith(exits.failed)
  }

  #progress(label: string, files: readonly string[]): Progress {
    const { quiet, json } = this.output.options
    // A bar would be drawn over what is being typed.
    const mode = quiet || json || isTyped(files) ? 'none' : process.stderr.isTTY === true ? 'bar' : 'lines'
    return new Progress({ label, unit: 'line', mode, write: (text) => void process.stderr.write(text) })
  }
}

interface Setting {
  readonly flags: DispatchFlags
  readonly overrides: Overrides
  readonly report: DispatchReport
}

/** Tells whether somebody types the jobs. */
const isTyped = (files: readonly string[]): boolean => files.includes('-') && process.stdin.isTTY === true

/** Throws USAGE for flags that contradict each other or do nothing. */
function checkCombination(files: readonly string[], flags: DispatchFlags): void {
  const usage = (message: string, fix?: string): KhepriError =>
    new KhepriError('USAGE', message, fix === undefined ? {} : { fix })
  if (files.length === 0 && flags.job === undefined)
    throw usage('nothing to dispatch', 'name a FILE, - for stdin, or --job NAME')
  if (files.length > 0 && (flags.payload !== undefined || flags.set !== undefined))
    throw usage(
      `${flags.set === undefined ? '--payload' : '--set'} and FILE exclude each other: the payloads are in the files`,
    )
  if (files.filter((file) => file === '-').length > 1) throw usage('stdin can be read only once')
  if (flags.rejects !== undefined && !flags['skip-invalid']) throw usage('--rejects needs --skip-invalid')
  if (flags['skip-invalid'] && files.length === 0) throw usage('--skip-invalid needs a FILE')
}

/** Throws INPUT_MISSING for a job's name where a file is expected. */
function refuseJobNames(files: readonly string[], registry: Registry): void {
  const name = files.find((file) => file !== '-' && registry.get(file) !== undefined && !existsSync(file))
  if (name !== undefined)
    throw new KhepriError('INPUT_MISSING', `cannot read ${name}: no such file. Did you mean --job ${name}?`)
}

/** What to do with the queues that were dispatched to. */
async function advice(app: Khepri, places: Places): Promise<Pick<DispatchFacts, 'warnings' | 'command'>> {
  const declared = app.config.queues?.map(({ name }) => name) ?? null
  return { warnings: undeclared(places.keys(), declared), command: await workCommand(app, places) }
}

function overridesOf(flags: DispatchFlags): Overrides {
  return {
    job: flags.job ?? null,
    terms: termsOf(flags),
    due: dueOf(flags),
    unique: flags.unique ?? null,
    ...(flags.after && { after: flags.after }),
  }
}

function termsOf({ queue, priority, tries, backoff, timeout }: DispatchFlags): Terms {
  return {
    ...(queue !== undefined && { queue }),
    ...(priority !== undefined && { priority }),
    ...(tries !== undefined && { tries }),
    ...(backoff !== undefined && { backoff }),
    ...(timeout !== undefined && { timeoutMs: timeout }),
  }
}

function dueOf({ delay, at, timezone }: DispatchFlags): Due | null {
  if (delay !== undefined && at !== undefined) throw new KhepriError('USAGE', '--delay and --at exclude each other')
  if (delay !== undefined) return { delayMs: delay }
  return at === undefined ? null : { at: parseZonedTime(at, '--at', timezone) }
}
