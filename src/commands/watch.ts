import { KhepriCommand } from '../cli/base-command.ts'
import { positiveDurationFlag } from '../cli/flags.ts'
import { snapshotLines } from '../cli/snapshot-lines.ts'
import { type Snapshot, snapshots } from '../cli/snapshots.ts'
import { WatchScreen } from '../cli/watch-screen.ts'
import { systemClock } from '../core/clock.ts'
import type { Admin } from '../core/store/admin.ts'

/** How often it looks. */
const everyMs = 2_000

/** `khepri watch`: a live screen of queues, running jobs and failures; in a pipe a stream of snapshots. */
export default class Watch extends KhepriCommand {
  static readonly id = 'watch'
  static readonly summary = 'Watch queues, running jobs and failures; also: khepri top'
  static readonly description =
    'At a terminal a screen, with keys to retry, cancel, pause and filter. In a pipe and with --json a snapshot every two seconds, and each failure as it comes, one record a line. It looks less often where looking costs more than a hundredth of the time.'
  static readonly examples = ['khepri watch', 'khepri watch --every=10s', 'khepri watch --json | jq .queues']
  static readonly args = {}
  static readonly flags = {
    every: positiveDurationFlag({ helpValue: '2s', summary: 'how long from one look to the next' }),
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(Watch)
    const app = await this.app()
    const admin = await app.admin()
    const stopped = new AbortController()
    const stop = (): void => stopped.abort()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)
    const screen = this.#screen(admin, app.config.database.label, stop)
    const { signal } = stopped
    const onOutage = (error: Error | null): void => this.#outage(screen, error)
    try {
      for await (const snapshot of snapshots({
        admin,
        clock: systemClock,
        everyMs: flags.every ?? everyMs,
        signal,
        onOutage,
      }))
        await this.#show(screen, snapshot)
    } finally {
      screen?.close()
    }
  }

  #screen(admin: Admin, label: string, onQuit: () => void): WatchScreen | null {
    if (this.output.mode !== 'terminal') return null
    const { stdout, paint } = this.output
    return new WatchScreen({ label, admin, stdout, stdin: process.stdin, paint, onQuit })
  }

  async #show(screen: WatchScreen | null, snapshot: Snapshot): Promise<void> {
    if (screen !== null) screen.show(snapshot)
    else await this.output.stdout.write(snapshotLines(this.output, snapshot))
  }

  #outage(screen: WatchScreen | null, error: Error | null): void {
    const text = error === null ? 'store back' : `store lost: ${error.message}; trying again until it is back`
    if (screen !== null) screen.note(text)
    else this.say(text)
  }
}
