import type { Khepri, WorkRequest } from '../app.ts'
import { systemClock } from '../core/clock.ts'
import { KhepriError } from '../core/errors.ts'
import type { EventBus, WorkerReport } from '../core/events.ts'
import { version } from '../core/package.ts'
import { oneLine } from '../core/text.ts'
import { onAskForRunning } from '../core/user-code.ts'
import type { WorkHandle } from '../core/work.ts'
import { exits } from './exit-codes.ts'
import { Footer } from './footer.ts'
import type { LogLevel } from './lines.ts'
import { isStartedByNpm, watchNpm } from './npm-parent.ts'
import type { Output } from './output.ts'
import { strayError } from './report.ts'
import { Screen } from './screen.ts'
import { WorkerSignals } from './signals.ts'
import type { Supervised } from './supervised.ts'
import type { Watched } from './watched-worker.ts'
import { count } from './words.ts'
import { isJournal, type LineMode, WorkerLog } from './worker-log.ts'

export interface AttendOptions {
  readonly app: Khepri
  readonly output: Output
  readonly options: WorkRequest
  readonly log: LogLevel
  readonly watched: Watched
  /** Tells the person about an error: on stderr, in the form that was asked for. exit: instead of the error's own code. */
  readonly report: (error: unknown, exit?: number) => void
}

/** How a worker's run ended: what it did, and the exit code that its end alone decides; null for a good one. */
export interface Attended {
  readonly report: WorkerReport
  readonly status: number | null
}

/** Runs a worker in the foreground of this process: its lines, its signals, and the reasons of the process to stop it. */
export async function attend(attended: AttendOptions): Promise<Attended> {
  const { app, output, options, report } = attended
  const lines = new Lines(attended)
  const interrupted = countInterrupted(app.events)
  try {
    const handle = await app.work(options)
    lines.began(handle)
    onAskForRunning(() => handle.running().map(({ id, job }) => `job ${id} (${oneLine(job)})`))
    const signals = new WorkerSignals({
      handle,
      source: process,
      clock: systemClock,
      report: (error) => report(strayError(error)),
    })
    const stopWatching = isStartedByNpm(process.env) ? watchNpm(systemClock, () => handle.drain('parent')) : () => {}
    output.stdout.onFault(() => handle.drain('output'))
    const watchers = await watchersOf(handle, attended)
    try {
      const done = await handle.finished
      lines.close()
      const status = output.stdout.fault === null ? signals.exitStatus : exits.io
      const { drainTimeoutMs } = handle.options
      const fault = faultOf(done, { interrupted: interrupted(), timedOut: drainTimeoutMs !== null && status === null })
      if (fault !== null) report(fault, status ?? undefined)
      return { report: done, status }
    } finally {
      for (const watcher of watchers) await watcher.close()
      stopWatching()
      signals.close()
    }
  } finally {
    lines.close()
  }
}

/** Who watches over a worker, besides the person at the terminal. */
async function watchersOf(handle: WorkHandle, attended: AttendOptions): Promise<readonly { close(): Promise<void> }[]> {
  const { watched } = attended
  const supervised = await supervisorOf(handle, attended)
  const isWatched = Object.values(watched).some((value) => value !== undefined)
  const parts = { handle, watched, events: attended.app.events, clock: systemClock }
  const health = isWatched ? await (await import('./watched-worker.ts')).watchWorker(parts) : null
  return [supervised, health].filter((watcher) => watcher !== null)
}

/** systemd, where it has started this process and wants to hear of it; jobs do not inherit its socket. */
async function supervisorOf(handle: WorkHandle, { app, output }: AttendOptions): Promise<Supervised | null> {
  if (process.env['NOTIFY_SOCKET'] === undefined) return null
  const { Supervised, notifySetting, systemdNotify } = await import('./supervised.ts')
  const setting = notifySetting(process.env, process.pid)
  const send = systemdNotify(setting, (text) => output.say(text))
  return new Supervised({ handle, events: app.events, clock: systemClock, send, watchdogMs: setting.watchdogMs })
}

/** The jobs that a worker gave up. */
interface Abandoned {
  readonly interrupted: number
  /** By --drain-timeout, and not by a second signal. */
  readonly timedOut: boolean
}

/** What a worker could not bring to a good end; null for nothing. */
function faultOf({ reason, unwritten }: WorkerReport, { interrupted, timedOut }: Abandoned): KhepriError | null {
  if (unwritten.length > 0)
    return new KhepriError(
      'DRAIN_TIMEOUT',
      `the results of ${count(unwritten.length, 'job')} could not be written: ${unwritten.join(', ')}`,
      {
        fix: 'these jobs may run again once the database is back',
      },
    )
  if (reason === 'stuck')
    return new KhepriError('SLOTS_STUCK', 'every slot of this worker holds a handler that ignores its abort signal', {
      fix: 'pass the signal on to what the handlers wait for; start the worker again, the jobs have been settled',
    })
  if (reason === 'modules')
    return new KhepriError('MODULE_BROKEN', 'no job that this worker serves can be loaded', {
      fix: 'khepri jobs names the faults',
    })
  if (interrupted === 0) return null
  return new KhepriError(
    'DRAIN_TIMEOUT',
    `${count(interrupted, 'job')} did not end in time and ${interrupted === 1 ? 'was' : 'were'} given back`,
    {
      fix: `another worker runs ${interrupted === 1 ? 'it' : 'them'} at once${timedOut ? `; a longer --drain-timeout lets ${interrupted === 1 ? 'it' : 'them'} end here` : ''}`,
    },
  )
}

/** Counts the jobs that are given back once a worker aborts. */
function countInterrupted(events: EventBus): () => number {
  let aborting = false
  let count = 0
  events.on('worker.aborting', () => {
    aborting = true
  })
  events.on('job.released', ({ why }) => {
    if (aborting && why === 'interrupted') count++
  })
  return () => count
}

/** The lines of one run, from before the worker starts until after it has stopped. */
class Lines {
  readonly #app: Khepri
  readonly #output: Output
  readonly #log: WorkerLog
  readonly #screen: Screen | null
  readonly #restore: (() => void)[] = []
  #footer: Footer | null = null

  constructor({ app, output, options, log }: AttendOptions) {
    this.#app = app
    this.#output = output
    const mode = lineMode(output)
    const out = (text: string): void => void output.stdout.write(text).catch(() => {})
    const err = (text: string): void => void process.stderr.write(text)
    this.#screen = mode === 'terminal' ? this.#openScreen(options, { out, err }) : null
    const { quiet, verbose } = output.options
    const worker = { version: version(), database: app.config.database.label }
    this.#log = new WorkerLog({
      mode,
      log,
      quiet,
      stacks: verbose,
      worker,
      clock: systemClock,
      out,
      err,
      screen: this.#screen,
    })
    this.#restore.push(
      this.#log.follow(app.events),
      beforeExit(() => this.#log.makeRoom()),
    )
    for (const stream of mode === 'json' ? [] : [output.stdout.stream, process.stderr])
      this.#restore.push(beforeWrites(stream, () => this.#log.makeRoom()))
  }

  /** From now on the footer has something to tell. */
  began(handle: WorkHandle): void {
    if (this.#screen === null || this.#output.options.quiet) return
    this.#footer = new Footer({ counts: () => handle.counts(), admin: () => this.#app.admin(), clock: systemClock })
  }

  close(): void {
    this.#footer?.close()
    this.#log.close()
    for (const undo of this.#restore.splice(0)) undo()
  }

  #openScreen(
    { queues }: WorkRequest,
    { out, err }: { readonly out: (text: string) => void; readonly err: (text: string) => void },
  ): Screen {
    const { stdout, paint, options } = this.#output
    const names = Array.isArray(queues) ? queues.flat() : []
    return new Screen({
      out,
      err,
      columns: () => stdout.width,
      paint,
      timeOf: timeOfDay(options.timezone),
      footer: () => this.#footer?.text() ?? '',
      widths: { queue: Math.max(7, ...names.map((name) => name.length)) },
      clock: systemClock,
    })
  }
}

/** How lines are written to an output. */
export function lineMode({ mode }: Output): LineMode {
  if (mode === 'json' || mode === 'terminal') return mode
  return isJournal(1, process.env) ? 'journal' : 'pipe'
}

/** Does something at once when the process ends, whoever ends it; the result undoes it. */
function beforeExit(act: () => void): () => void {
  process.on('exit', act)
  return () => process.off('exit', act)
}

/** Does something before whatever anybody else writes to a stream; the result undoes it. */
function beforeWrites(stream: NodeJS.WriteStream, act: () => void): () => void {
  const write = stream.write
  stream.write = ((...facts: Parameters<typeof write>) => {
    act()
    return write.apply(stream, facts)
  }) as typeof write
  return () => {
    stream.write = write
  }
}

/** Writes the time of day of a moment, in a time zone or the machine's own. */
function timeOfDay(timezone: string | undefined): (at: number) => string {
  const format = new Intl.DateTimeFormat('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone: timezone,
  })
  return (at) => format.format(at)
}
