import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { main } from '../../../src/cli/main.ts'

/**
 * Runs many command lines one after the other in this process, as if each had its own: hundreds of new ones would take
 * minutes. argv: a file with the runs as JSON, and one for what came of them.
 */

/** One command line. */
export interface Run {
  readonly argv: readonly string[]
  readonly cwd: string
  /** A folder that is copied to `to` first. */
  readonly copy: { readonly from: string; readonly to: string } | null
  /** Told to stop, as by Ctrl-C, once it has written something. */
  readonly isEndless: boolean
}

/** What came of it. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const { exit } = process
const written = { stdout: '', stderr: '' }

/** What commands listen to; an `exit` would be spoken of as an end in their middle. */
const heard: readonly string[] = [
  ...['uncaughtException', 'unhandledRejection', 'exit', 'beforeExit'],
  ...['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2', 'SIGCONT'],
]

type Write = typeof process.stdout.write

function collector(stream: keyof typeof written, onText: () => void): Write {
  return ((text: string | Uint8Array, encodingOrDone: unknown, done: unknown) => {
    written[stream] += typeof text === 'string' ? text : Buffer.from(text).toString()
    const then = typeof encodingOrDone === 'function' ? encodingOrDone : done
    if (typeof then === 'function') process.nextTick(then)
    if (text.length > 0) onText()
    return true
  }) as Write
}

/** Undoes what a command did to its process. */
function reset(isEndless: boolean): void {
  written.stdout = written.stderr = ''
  process.exitCode = undefined
  // The command line ends its process a little after the last word; this one goes on to the next.
  process.exit = (() => undefined) as () => never
  for (const event of heard) process.removeAllListeners(event)
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].removeAllListeners('error')
    const stop = (): void => void (isEndless && process.emit('SIGINT'))
    process[name].write = collector(name, stop)
  }
}

async function ran({ argv, cwd, copy, isEndless }: Run): Promise<Ran> {
  if (copy !== null) cpSync(copy.from, copy.to, { recursive: true })
  mkdirSync(cwd, { recursive: true })
  process.chdir(cwd)
  reset(isEndless)
  await main(argv)
  return { code: Number(process.exitCode ?? 0), ...written }
}

const [, , runsFile = '', resultsFile = ''] = process.argv
const results: Ran[] = []
for (const run of JSON.parse(readFileSync(runsFile, 'utf8')) as readonly Run[]) results.push(await ran(run))
writeFileSync(resultsFile, JSON.stringify(results))
reset(false)
exit.call(process, 0)
