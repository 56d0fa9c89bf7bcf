import { join } from 'node:path'
import { exitCodeOf } from '../../../src/cli/exit-codes.ts'
import { systemClock } from '../../../src/core/clock.ts'
import type { createKhepri as CreateKhepri } from '../../../src/index.ts'
import type { Plan, Struck } from './faults.ts'
import { SqliteSeam } from './sqlite-seam.ts'

/**
 * A process that runs whole command lines of the built khepri, one after another: what each wrote and exited with is
 * reported to the parent. A new process for each of thousands would take longer than what it runs.
 */

/** A command line, or the recovery of a store as a neighbour would do it `aheadMs` from now. */
export type Order = { readonly plan: Plan | null } & (
  | { readonly argv: readonly string[] }
  | { readonly recover: { readonly database: string; readonly aheadMs: number } }
)

export interface Report {
  readonly exit: number
  readonly stdout: string
  readonly stderr: string
  /** How many statements reached the driver of SQLite. */
  readonly statements: number
  readonly struck: Struck | null
}

type Write = typeof process.stdout.write

const dist = join(import.meta.dirname, '../../../dist')
const { main } = (await import(join(dist, 'cli.js'))) as { main: (argv: readonly string[]) => Promise<void> }
const { createKhepri } = (await import(join(dist, 'index.js'))) as { createKhepri: typeof CreateKhepri }

const seam = SqliteSeam.install()
const written = { stdout: '', stderr: '' }

// The command line ends its process a little after the last word; this one goes on to the next.
process.exit = (() => undefined) as () => never

function collector(stream: keyof typeof written): Write {
  return ((text: string | Uint8Array, encodingOrDone: unknown, done: unknown) => {
    written[stream] += typeof text === 'string' ? text : Buffer.from(text).toString()
    const then = typeof encodingOrDone === 'function' ? encodingOrDone : done
    if (typeof then === 'function') process.nextTick(then)
    return true
  }) as Write
}

/** Every command adds its listeners and may divert stdout, as it may in a process of its own. */
function reset(): void {
  written.stdout = written.stderr = ''
  process.exitCode = undefined
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].removeAllListeners('error')
    process[name].write = collector(name)
  }
  for (const event of ['uncaughtException', 'unhandledRejection']) process.removeAllListeners(event)
}

async function obey(order: Order): Promise<Report> {
  reset()
  seam.arm(order.plan)
  if ('argv' in order) await main(order.argv)
  else await recover(order.recover)
  const { count, struck } = seam
  seam.arm(null)
  return { exit: Number(process.exitCode ?? 0), ...written, statements: count, struck }
}

/** It knows of nobody whose process has ended; silence alone speaks. */
const observation = { observer: 1, gone: [], rebooted: [], silent: true }

async function recover({ database, aheadMs }: { readonly database: string; readonly aheadMs: number }): Promise<void> {
  const clock = { ...systemClock, now: () => Date.now() + aheadMs }
  const khepri = createKhepri({ database }, { clock })
  try {
    await (await khepri.store()).recover(observation)
  } catch (error) {
    process.exitCode = exitCodeOf(error)
    const { message, fix } = error as { readonly message: string; readonly fix?: string }
    process.stderr.write(`error: ${message}\n  fix: ${fix}\n`)
  } finally {
    await khepri.close()
  }
}

process.on('message', (order: Order) => void obey(order).then((report) => process.send?.(report)))
process.send?.('ready')
