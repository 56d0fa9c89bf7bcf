import { spawnSync } from 'node:child_process'
import { type Ended, Live, type StartOptions } from './live.ts'

export { type Ended, khepri as run, Live } from './live.ts'

interface TerminalOptions extends Omit<StartOptions, 'shell' | 'stdin'> {
  /** What is typed. */
  readonly stdin?: string
  readonly columns?: number
}

/** Why nothing can be run at a terminal here; null where it can. */
export function terminalSkipReason(): string | null {
  const { status } = spawnSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' })
  return status === 0 ? null : 'util-linux script is not there to make a terminal'
}

/** A shell command that runs "$@" at a terminal of its own. */
export function terminalShell(columns: number): string {
  return `script -qec "stty cols ${columns} rows 24; exec $(printf "'%s' " "$@")" /dev/null`
}

/** Runs the built command line at a terminal of its own; what it writes to stdout and stderr comes as one text. */
export async function atTerminal(
  args: readonly string[],
  { columns = 80, stdin = '', ...options }: TerminalOptions,
): Promise<Ended> {
  const ended = await Live.start(args, { ...options, stdin, shell: terminalShell(columns) }).ended
  return { ...ended, stdout: ended.stdout.replaceAll('\r\n', '\n') }
}
