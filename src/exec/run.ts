import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { sleep, systemClock } from '../core/clock.ts'
import { defaults } from '../core/defaults.ts'
import type { RunContext } from '../core/handler.ts'
import { describeError } from '../core/text.ts'
import { type Command, CommandNotStarted } from './command.ts'
import { type Ended, errorOf } from './ending.ts'
import { requireGuard } from './guard.ts'
import { endGroup, groupOf, isGoneWithin } from './process-group.ts'
import { RunFiles } from './run-files.ts'
import { Tail } from './tail.ts'

/** What a command has left running may end by itself so long: the end of a pipeline is no fault. */
const leftoverMs = 250

/** How long output is waited for that somebody outside of the group still holds open. */
const outputMs = 250

/** Enough of stderr to find its last line in. */
const stderrBytes = 4_096

/**
 * Runs a command once, in a process group of its own, and throws what its end means.
 *
 * Resolves, or rejects, when nothing of the group lives any more.
 */
export async function runCommand(command: Command, context: RunContext): Promise<void> {
  const files = new RunFiles(context)
  try {
    const run = new Run(start(command, files, context), context.signal)
    const ended = await run.end()
    context.keepOutput(run.output)
    if (files.isUnstarted)
      throw new CommandNotStarted(command.shown, ended.lastLine ?? 'the system refused, and did not say why')
    const error = errorOf(ended, files)
    if (error !== null) throw error
  } finally {
    files.remove()
  }
}

/**
 * Becomes the command once it is told that the group is recorded, and ends where its worker has died before that.
 *
 * The trap is heard of only where the command cannot be started: nothing of the shell is left otherwise.
 */
const gate = `
read -r _ <&3 || exit
trap ': >"$KHEPRI_JOB_RESULT.unstarted"' EXIT
exec "$@" 3<&-
`

/** Starts a command as the leader of a group that is recorded before it runs. Throws CommandNotStarted. */
function start(command: Command, files: RunFiles, context: RunContext): ChildProcess & { readonly pid: number } {
  requireGuard(files.folder)
  const child = spawnGate(command, files, context)
  if (child.pid === undefined) throw new CommandNotStarted(command.shown, 'no process could be made for it')
  // A gate that was killed meanwhile is told of by its exit; one that is closed unopened ends.
  const opening = (child.stdio[3] as Writable).on('error', () => {})
  try {
    files.record(groupOf(child.pid))
    opening.write('\n')
  } finally {
    opening.end()
  }
  return child as ChildProcess & { readonly pid: number }
}

function spawnGate({ shown, path, args, cwd, env }: Command, files: RunFiles, context: RunContext): ChildProcess {
  const payload = files.openPayload(context.payloadText)
  try {
    return spawn('/bin/sh', ['-c', gate, shown, path, ...args], {
      detached: true,
      cwd,
      env: { ...process.env, ...env, ...factsOf(context, files) },
      stdio: [payload, 'pipe', 'pipe', 'pipe'],
    }).on('error', () => {})
  } catch (error) {
    throw new CommandNotStarted(shown, describeError(error).message)
  } finally {
    closeSync(payload)
  }
}

function factsOf(context: RunContext, { result }: RunFiles): Readonly<Record<string, string>> {
  return {
    KHEPRI_JOB_NAME: context.job,
    KHEPRI_JOB_ID: String(context.id),
    KHEPRI_JOB_QUEUE: context.queue,
    KHEPRI_JOB_ATTEMPT: String(context.attempt),
    KHEPRI_JOB_TRIES: String(context.tries),
    KHEPRI_JOB_FENCE: String(context.fence),
    KHEPRI_JOB_RESULT: result,
    KHEPRI_JOB_SCHEDULED_FOR: new Date(context.scheduledFor ?? context.availableAt).toISOString(),
  }
}

/** One group while it runs: its output, and its end. */
class Run {
  readonly #child: ChildProcess & { readonly pid: number }
  readonly #signal: AbortSignal
  readonly #output = new Tail(defaults.maxOutputLength)
  readonly #stderr = new Tail(stderrBytes)
  readonly #exited: Promise<Pick<Ended, 'code' | 'signal'>>
  readonly #closed: Promise<void>
  #ending: Promise<void> | null = null

  constructor(child: ChildProcess & { readonly pid: number }, signal: AbortSignal) {
    this.#child = child
    this.#signal = signal
    child.stdout?.on('data', (chunk: Buffer) => this.#output.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#output.push(chunk)
      this.#stderr.push(chunk)
    })
    this.#exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
    this.#closed = new Promise((resolve) => child.once('close', () => resolve()))
  }

  /** What it has written last, on stdout and stderr. */
  get output(): string {
    return this.#output.text
  }

  async end(): Promise<Ended> {
    const stop = (): void => {
      this.#ending ??= endGroup(this.#child.pid, defaults.graceMs)
    }
    this.#signal.addEventListener('abort', stop)
    if (this.#signal.aborted) stop()
    const exit = await this.#exited
    const byItself = this.#ending === null
    this.#ending ??= this.#endLeftovers()
    await this.#ending
    this.#signal.removeEventListener('abort', stop)
    await this.#endOutput()
    return { ...exit, byItself, lastLine: this.#stderr.lastLine }
  }

  /** What still runs would run beside the next attempt. */
  async #endLeftovers(): Promise<void> {
    const { pid } = this.#child
    if (!(await isGoneWithin(pid, leftoverMs))) await endGroup(pid, defaults.graceMs)
  }

  /** Whoever has left the group may hold its output open for ever. */
  async #endOutput(): Promise<void> {
    const waiting = new AbortController()
    await Promise.race([this.#closed, sleep(systemClock, outputMs, waiting.signal)])
    waiting.abort()
    this.#child.stdout?.destroy()
    this.#child.stderr?.destroy()
  }
}
