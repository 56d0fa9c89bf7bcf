import { version } from '../core/package.ts'
import { loadCommand, unknownCommand } from './command-table.ts'
import { exitCodeOf, exits } from './exit-codes.ts'
import { guardExit } from './exit-guard.ts'
import { Output } from './output.ts'
import { asKhepriError } from './report.ts'
import { OutputClosed, Stdout } from './stdout.ts'
import { outputOptionsIn, readWords } from './words-given.ts'

/** How long after a command's end whatever a user's module left open may keep the process alive. */
const lingerMs = 100

/**
 * The command line: finds the command, runs it, and sets the exit code of the process.
 *
 * argv: the words after `khepri`. Ends the process only where a timer or a connection of a user's module would keep it,
 * after everything that was written has left it.
 */
export async function main(argv: readonly string[]): Promise<void> {
  // Where the reader of stderr has gone, nobody is left to be told.
  process.stderr.on('error', () => {})
  const stdout = new Stdout()
  const guard = guardExit((error) => new Output(outputOptionsIn(argv), stdout).report(error, exitCodeOf(error)))
  guard.done(await exitCodeFor(argv, stdout))
  await stdout.flush()
  setTimeout(() => process.exit(), lingerMs).unref()
}

async function exitCodeFor(argv: readonly string[], stdout: Stdout): Promise<number> {
  try {
    return await run(argv, stdout)
  } catch (thrown) {
    if (thrown instanceof OutputClosed) return exits.ok
    const error = asKhepriError(thrown)
    new Output(outputOptionsIn(argv), stdout).report(error, exitCodeOf(error))
    return exitCodeOf(error)
  }
}

async function run(argv: readonly string[], stdout: Stdout): Promise<number> {
  const { word, rest, asks } = readWords(argv)
  if (asks === 'version' || word === 'version') return showVersion(argv, stdout)
  if (asks === null && word === undefined) await refuseStrangers(rest)
  if (asks === 'help' || word === undefined || word === 'help') return showHelp(argv, stdout)
  const Command = await loadCommand(word)
  if (Command === null) throw await unknownCommand(word)
  return new Command({ argv: rest, stdout }).start()
}

/** Flags alone ask for help, provided that they are flags. Throws USAGE. */
async function refuseStrangers(words: readonly string[]): Promise<void> {
  const flags = words.filter((word) => word.startsWith('-') && word !== '-' && word !== '--')
  if (flags.length === 0) return
  const [{ globalFlags }, { unknownFlag }] = await Promise.all([
    import('./base-command.ts'),
    import('./usage-errors.ts'),
  ])
  const names = Object.entries(globalFlags).flatMap(([name, { char }]) => [`--${name}`, `-${char}`])
  const stranger = flags.find((flag) => !names.includes(flag.split('=', 1)[0] as string))
  if (stranger !== undefined) throw unknownFlag(stranger, { command: 'help', flags: names })
}

async function showVersion(argv: readonly string[], stdout: Stdout): Promise<number> {
  const facts = { version: version(), node: process.versions.node }
  await stdout.write(outputOptionsIn(argv).json ? `${JSON.stringify(facts)}\n` : `khepri ${facts.version}\n`)
  return exits.ok
}

async function showHelp(argv: readonly string[], stdout: Stdout): Promise<number> {
  const { help } = await import('./help.ts')
  const { word, rest } = readWords(argv)
  const topic = word === 'help' ? readWords(rest).word : word
  await help(topic, new Output(outputOptionsIn(argv), stdout))
  return exits.ok
}
