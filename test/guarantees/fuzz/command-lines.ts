import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { commandTable, loadCommand } from '../../../src/cli/command-table.ts'
import { main } from '../../../src/cli/main.ts'
import { type KhepriProject, migratedProject } from '../../support/khepri-project.ts'
import type { Seeded } from '../simulation/seeded.ts'
import { awkwardWord, mutated } from './mutation.ts'
import { judgeEnd, type Shown, shownInput, type Target } from './target.ts'

/** Files that command lines name. */
const files: Readonly<Record<string, string>> = {
  'jobs/note.mjs': 'export default () => {}',
  'jobs/boom.mjs': "export default () => { throw new Error('it broke') }",
  'job.json': '{"job":"note","payload":{"userId":7}}',
  'bad.json': '{"job":"note","payload":7 "queue":"high"}',
  'other.config.json': '{"queue":"other"}',
  'bad.config.json': '{"quue":"other"}',
}

/** Command lines of every command, run to their end in this process, on a database that is the same each time. */
export async function commandLines(): Promise<Target> {
  const project = await migratedProject(files)
  const kept = join(project.path, 'kept')
  copyFileSync(join(project.path, 'khepri.db'), kept)
  process.chdir(project.path)
  const flags = await flagsOfCommands()
  return {
    feed: async (dice) => {
      const argv = aCommandLine(flags, dice)
      restore(project, kept)
      const shown = await runHere(argv)
      const mayTrace = argv.some((word) => /^(-[a-zA-Z]*v|--verb)/.test(word))
      return judgeEnd(shown, { mayTrace }).map(
        (what) => `${what}: khepri ${shownInput(argv)}\n${shown.stderr.slice(0, 500)}`,
      )
    },
    close: async () => {
      process.chdir('/')
      project[Symbol.dispose]()
    },
  }
}

function restore({ path }: KhepriProject, kept: string): void {
  for (const ending of ['-wal', '-shm']) rmSync(join(path, `khepri.db${ending}`), { force: true })
  copyFileSync(kept, join(path, 'khepri.db'))
}

/** Whether a flag takes a value, by its name, for each command. */
export type FlagsOfCommands = ReadonlyMap<string, ReadonlyMap<string, boolean>>

/** Reads what every command declares, so that a new one is fuzzed as soon as it is there. */
export async function flagsOfCommands(): Promise<FlagsOfCommands> {
  const { globalFlags } = await import('../../../src/cli/base-command.ts')
  const found = new Map<string, ReadonlyMap<string, boolean>>()
  for (const name of commandTable.keys()) {
    const command = await loadCommand(name)
    const flags = Object.entries({ ...globalFlags, ...command?.flags })
    found.set(name, new Map(flags.map(([flag, { type }]) => [flag, type === 'option'])))
  }
  return found
}

/** What must not be drawn: it waits for hours, as asked, or writes where a campaign should not. */
const leftOut: ReadonlySet<string> = new Set(['rest', 'rejects', 'delay', 'wait', 'force'])

/** One writes files, two go on until they are told to stop, one measures for ten seconds. */
const unfit: ReadonlySet<string> = new Set(['init', 'watch', 'schedule work', 'bench'])

/** Words of a command line that is mostly right; none of them leads out of the working directory. */
export function aCommandLine(commands: FlagsOfCommands, dice: Seeded): readonly string[] {
  const names = [...commands.keys()].filter((name) => !unfit.has(name))
  const name = names[dice.whole(0, names.length - 1)] ?? 'failed'
  const flags = [...(commands.get(name) ?? [])].filter(([flag]) => !leftOut.has(flag))
  const words = Array.from({ length: dice.whole(0, 4) }, () => aFlag(flags, dice)).flat()
  const rest = Array.from({ length: dice.whole(0, 2) }, () => anArgument(name, dice))
  const command = dice.chance(0.05) ? [harmless(mutated(name, dice))] : name.split(' ')
  const whole = dice.chance(0.1) ? [...words, ...command, ...rest] : [...command, ...words, ...rest]
  // A worker ends, whatever else it is told. Whoever asks for stdin would wait for this process's own.
  return (name === 'work' ? ['work', '--stop-when-empty', '--max-time=2s', ...whole.slice(1)] : whole).filter(
    (word) => word !== '-',
  )
}

function aFlag(flags: readonly (readonly [string, boolean])[], dice: Seeded): readonly string[] {
  const [flag, takesValue] = flags[dice.whole(0, flags.length - 1)] ?? ['json', false]
  const word = dice.chance(0.05) ? harmless(`--${mutated(flag, dice)}`) : `--${flag}`
  if (takesValue ? dice.chance(0.05) : dice.chance(0.95)) return [word]
  const value = aValue(flag, dice)
  return dice.chance(0.5) ? [word, value] : [`${word}=${value}`]
}

function aValue(flag: string, dice: Seeded): string {
  if (flag === 'database')
    return dice.pick(['sqlite:./khepri.db', 'sqlite:./none.db', 'postgres://u:secret@127.0.0.1:1/db', 'x:y', 'memory:'])
  if (flag === 'config') return dice.pick(['other.config.json', 'bad.config.json', 'none.json', 'jobs'])
  if (dice.chance(0.3)) return harmless(awkwardWord(dice))
  return dice.pick([
    'note',
    'boom',
    'default',
    'high,default',
    '*',
    '5',
    '0',
    '-1',
    '30s',
    '5m',
    '{}',
    '[1',
    'a=b',
    'a:=1',
    'UTC',
    'Mars/Base',
    'all',
    'none',
    'error',
    'exponential',
    '2026-11-30T14:02:11Z',
  ])
}

function anArgument(command: string, dice: Seeded): string {
  if (dice.chance(0.2)) return harmless(awkwardWord(dice))
  if (command === 'dispatch') return dice.pick(['job.json', 'bad.json', 'missing.json', 'jobs'])
  return dice.pick(['1', '99', '0', '-1', '1e3', 'all', '--', 'note', '9007199254740993'])
}

/** Without a way to another folder, and without what no system passes to a process. */
const harmless = (word: string): string => word.replaceAll(/[/\0]/g, '').toWellFormed()

type Write = typeof process.stdout.write

const written = { stdout: '', stderr: '' }

function collector(stream: keyof typeof written): Write {
  return ((text: string | Uint8Array, encodingOrDone: unknown, done: unknown) => {
    written[stream] += typeof text === 'string' ? text : Buffer.from(text).toString()
    const then = typeof encodingOrDone === 'function' ? encodingOrDone : done
    if (typeof then === 'function') process.nextTick(then)
    return true
  }) as Write
}

/** Runs a command line in this process, as if it were its own: a new one for each of thousands would take hours. */
async function runHere(argv: readonly string[]): Promise<Shown> {
  reset()
  await main(argv)
  return { code: Number(process.exitCode ?? 0), ...written }
}

/** Every command adds its listeners and may divert stdout, as it may in a process of its own. */
function reset(): void {
  written.stdout = written.stderr = ''
  process.exitCode = undefined
  // The command line ends its process a little after the last word; this one goes on to the next.
  process.exit = (() => undefined) as () => never
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].removeAllListeners('error')
    process[name].write = collector(name)
  }
  for (const event of ['uncaughtException', 'unhandledRejection', 'SIGTERM', 'SIGINT', 'SIGHUP'])
    process.removeAllListeners(event)
}
