import { userInfo } from 'node:os'
import { join } from 'node:path'
import { parse } from '@oclif/core/parser'
import type { Khepri } from '../app.ts'
import { KhepriCommand, workingDirectory } from '../cli/base-command.ts'
import { Args, Flags } from '../cli/flags.ts'
import { loadAll } from '../cli/loaded-jobs.ts'
import { serviceUnit, timerUnit } from '../cli/systemd-units.ts'
import { usageError } from '../cli/usage-errors.ts'
import { workFlags } from '../cli/work-flags.ts'
import { KhepriError } from '../core/errors.ts'
import { packageRoot } from '../core/package.ts'

/** Flags of `work` with which it ends when the work is done; with a limit such as --max-jobs it is to start anew. */
const bounds = ['once', 'stop-when-empty'] as const

/** `khepri systemd`: prints units for the worker of this installation. */
export default class Systemd extends KhepriCommand {
  static readonly id = 'systemd'
  static readonly summary = 'Print a systemd unit for the worker'
  static readonly description =
    'What stands behind -- is what the worker is started with. With --stop-when-empty among it the unit is one for a timer, which --timer prints.'
  static readonly examples = [
    'khepri systemd -- --queue=high,default --concurrency=4 > /etc/systemd/system/khepri.service',
    'khepri systemd --template > /etc/systemd/system/khepri@.service && systemctl enable --now khepri@mail',
    'khepri systemd --user > ~/.config/systemd/user/khepri.service',
    'khepri systemd -- --stop-when-empty > khepri.service && khepri systemd --timer > khepri.timer',
  ]
  static readonly args = { words: Args.string({ multiple: true, description: 'flags of khepri work, behind --' }) }
  static readonly flags = {
    template: Flags.boolean({ summary: 'a unit for one queue, which the instance names: khepri@mail' }),
    user: Flags.boolean({ summary: "for a user's own systemd" }),
    timer: Flags.boolean({
      exclusive: ['template'],
      summary: 'a timer that starts khepri.service a minute after it has ended',
    }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Systemd)
    const words = (args.words ?? []) as readonly string[]
    const given = await workWords(words)
    if (flags.timer) return this.#print(timerUnit())
    if (flags.template && (given['queue'] ?? given['pool']) !== undefined)
      throw new KhepriError('USAGE', '--template takes the queue from the name of the instance', {
        fix: 'leave --queue and --pool out',
      })
    const app = await this.app()
    const facts = {
      command: [process.execPath, join(packageRoot(), 'bin', 'run.cjs'), 'work', ...installation(app), ...words],
      folder: app.config.file === null ? workingDirectory() : app.config.root,
      user: flags.user ? null : userInfo().username,
      longestMs: await longestOf(app),
      isBounded: bounds.some((flag) => Boolean(given[flag])),
    }
    await this.#print(serviceUnit(facts, flags.template))
  }

  #print(unit: string): Promise<void> {
    return this.output.mode === 'json' ? this.output.document({ unit }) : this.print(unit)
  }
}

/** Reads the words behind -- as `khepri work` will. Throws USAGE. */
async function workWords(words: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await parse([...words], { flags: workFlags, args: {} } as never)).flags as Record<string, unknown>
  } catch (error) {
    throw usageError(error, { command: 'work', flags: Object.keys(workFlags).map((name) => `--${name}`) })
  }
}

/** A configuration with a name of its own is found by that name only. Passwords do not belong into a unit. */
function installation({ config: { file } }: Khepri): readonly string[] {
  return file === null ? [] : [`--config=${file}`]
}

/** The longest timeout of a job, and of those that have none the configuration's. */
async function longestOf(app: Khepri): Promise<number> {
  const jobs = await loadAll(await app.registry())
  return Math.max(app.config.timeoutMs ?? 0, ...jobs.map(({ terms }) => terms?.timeoutMs ?? 0))
}
