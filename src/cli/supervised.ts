import { spawn } from 'node:child_process'
import type { Clock, Timer } from '../core/clock.ts'
import { sleep } from '../core/clock.ts'
import type { EventBus } from '../core/events.ts'
import type { WorkHandle } from '../core/work.ts'

/** How a supervisor that speaks sd_notify wants to be told. */
export interface NotifySetting {
  /** The environment for `systemd-notify`. */
  readonly env: NodeJS.ProcessEnv
  /** Silence after which it ends this process; null: it does not watch. */
  readonly watchdogMs: number | null
}

/** Sends assignments such as `READY=1`; never rejects. */
export type SendNotice = (assignments: readonly string[]) => Promise<void>

export interface SupervisedOptions {
  readonly handle: Pick<WorkHandle, 'ready' | 'turned' | 'counts'>
  readonly events: EventBus
  readonly clock: Clock
  readonly send: SendNotice
  readonly watchdogMs: number | null
}

/** How often the counts are told, where they have changed, and how often a drain asks for more time. */
const tellEveryMs = 10_000

/** What a drain asks for each time: an interval or two may be late. */
const extensionMs = 3 * tellEveryMs

/** The last words wait for what is still on its way, but not for a supervisor that does not listen. */
const closeMs = 2_000

/**
 * Reads what systemd says to this process, and takes it out of the environment: jobs are not to speak for the worker.
 *
 * WATCHDOG_PID names whom the watchdog is meant for; it may be the shell that has started us.
 */
export function notifySetting(env: NodeJS.ProcessEnv, pid: number): NotifySetting {
  const setting = { env: { ...env }, watchdogMs: watchdogOf(env, pid) }
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name]
  return setting
}

function watchdogOf({ WATCHDOG_USEC: usec, WATCHDOG_PID: owner }: NodeJS.ProcessEnv, pid: number): number | null {
  const ms = Number(usec) / 1_000
  return ms > 0 && (owner === undefined || Number(owner) === pid) ? ms : null
}

/** Node cannot send datagrams to a Unix socket; systemd brings a program that can. complain: told once that it is missing. */
export function systemdNotify({ env }: NotifySetting, complain: (text: string) => void): SendNotice {
  let isMissing = false
  return (assignments) =>
    new Promise((resolve) => {
      if (isMissing) return resolve()
      const child = spawn('systemd-notify', assignments, { env, stdio: 'ignore' })
      child.once('close', () => resolve())
      child.once('error', ({ message }) => {
        isMissing = true
        complain(`warning: systemd is not told how this worker is: ${message}`)
        resolve()
      })
    })
}

/**
 * Tells a supervisor how a worker is: READY after its first good reservation, its counts, STOPPING, more time while it
 * drains, and the watchdog's food for as long as the loop that reserves turns. One message at a time, in their order.
 */
export class Supervised {
  readonly #options: SupervisedOptions
  readonly #stopHearing: () => void
  readonly #timers = new Map<() => void, Timer>()
  #sent: Promise<void> = Promise.resolve()
  #status = ''
  #isDraining = false
  #isClosed = false

  constructor(options: SupervisedOptions) {
    this.#options = options
    const { handle, events, watchdogMs } = options
    void handle.ready.then(() => this.#tell(['READY=1', ...this.#news()]))
    this.#stopHearing = events.on('worker.draining', () => this.#drains())
    this.#every(tellEveryMs, () => this.#tell([...this.#news(), ...this.#patience()]))
    // Thrice in the time: the turn of the loop and the message may each be late.
    if (watchdogMs !== null) this.#every(watchdogMs / 3, () => this.#feed())
  }

  /** Resolves when what was to be said has been said, or after two seconds. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopHearing()
    for (const timer of this.#timers.values()) timer.cancel()
    const given = new AbortController()
    await Promise.race([this.#sent, sleep(this.#options.clock, closeMs, given.signal)])
    given.abort()
  }

  #drains(): void {
    this.#isDraining = true
    this.#tell(['STOPPING=1', ...this.#news(), ...this.#patience()])
  }

  async #feed(): Promise<void> {
    await this.#options.handle.turned()
    this.#tell(['WATCHDOG=1'])
  }

  #patience(): readonly string[] {
    return this.#isDraining ? [`EXTEND_TIMEOUT_USEC=${extensionMs * 1_000}`] : []
  }

  #news(): readonly string[] {
    const { running, done, retried, failed } = this.#options.handle.counts()
    const status = `${this.#isDraining ? 'draining: ' : ''}${running} running, ${done} done, ${retried} retried, ${failed} failed`
    if (status === this.#status) return []
    this.#status = status
    return [`STATUS=${status}`]
  }

  #tell(assignments: readonly string[]): void {
    if (assignments.length === 0 || this.#isClosed) return
    this.#sent = this.#sent.then(() => this.#options.send(assignments))
  }

  /** Waits for what it does before it waits for the next time: a loop that hangs is asked once. */
  #every(ms: number, act: () => void | Promise<void>): void {
    const run = async (): Promise<void> => {
      await act()
      arm()
    }
    const arm = (): void => {
      if (!this.#isClosed)
        this.#timers.set(
          act,
          this.#options.clock.after(ms, () => void run()),
        )
    }
    arm()
  }
}
