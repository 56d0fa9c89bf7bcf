import { CommandHelp } from '@oclif/core/help'
import { version } from '../core/package.ts'
import { type CommandClass, globalFlags } from './base-command.ts'
import { commandTable, loadCommand, secondWords, unknownCommand } from './command-table.ts'
import { exitCodeTable } from './exit-codes.ts'
import type { Output } from './output.ts'

type Topic = (output: Output) => Promise<unknown>

const topics: Readonly<Record<string, Topic>> = {
  'exit-codes': (output) =>
    output.list(exitCodeTable, {
      columns: [
        { title: 'Code', value: ({ code }) => code },
        { title: 'Name', value: ({ name }) => name },
        { title: 'When', value: ({ when }) => when },
      ],
      record: (row) => row,
    }),
  version: (output) =>
    output.stdout.write('Show the version\n\nUSAGE\n  $ khepri version\n  $ khepri --version [--json]\n'),
  environment: async (output) => {
    const { environmentVariables } = await import('../core/environment.ts')
    await output.list(environmentVariables, {
      columns: [
        { title: 'Variable', value: ({ name }) => name },
        { title: 'Meaning', value: ({ what }) => what },
      ],
      record: (row) => row,
    })
  },
}

/** Prints help: on a command, on a topic, or the list of both. Throws USAGE for an unknown word. */
export async function help(word: string | undefined, output: Output): Promise<void> {
  if (word !== undefined && Object.hasOwn(topics, word)) return void (await topics[word]?.(output))
  const text = word === undefined || word === 'help' ? await rootText() : await wordText(word, output)
  await (output.mode === 'json' ? output.document({ help: text }) : output.stdout.write(`${text}\n`))
}

/** A command, or the first word of several. */
async function wordText(word: string, output: Output): Promise<string> {
  const second = secondWords(word)
  if (second.length === 0) return commandText(word, output)
  const lines = await summaries(second.map((each) => `${word} ${each}`))
  return ['USAGE', `  $ khepri ${word} COMMAND [ARGUMENTS] [FLAGS]`, '', 'COMMANDS', ...lines].join('\n')
}

async function summaries(names: readonly string[]): Promise<readonly string[]> {
  const width = Math.max(...names.map((name) => name.length))
  return Promise.all(names.map(async (name) => `  ${name.padEnd(width)}  ${(await loadCommand(name))?.summary ?? ''}`))
}

async function rootText(): Promise<string> {
  return [
    `khepri ${version()}: background jobs on the database you already have`,
    '',
    'USAGE',
    '  $ khepri COMMAND [ARGUMENTS] [FLAGS]',
    '',
    'COMMANDS',
    ...(await summaries([...commandTable.keys()])),
    '',
    'MORE',
    '  khepri help COMMAND      what a command takes',
    '  khepri help exit-codes   what the exit codes mean',
    '  khepri help environment  the environment variables that are read',
  ].join('\n')
}

async function commandText(word: string, output: Output): Promise<string> {
  const Command = await loadCommand(word)
  if (Command === null) throw await unknownCommand(word)
  const options = {
    maxWidth: Math.min(output.stdout.width, 120),
    stripAnsi: true,
    flagSortOrder: 'none',
    showFlagOptionsInTitle: true,
  } as const
  return `${Command.summary}\n\n${new CommandHelp(loadable(Command) as never, setting as never, options).generate()}`
}

/** The little of oclif's configuration that its help looks at. */
const setting = { bin: 'khepri', topicSeparator: ' ', platform: process.platform, shell: 'sh' }

function loadable({ id, description, examples, flags, args }: CommandClass): object {
  const words = Object.entries(args).map(([name, { required, multiple }]) => {
    const word = `${name.toUpperCase()}${multiple ? '...' : ''}`
    return required ? word : `[${word}]`
  })
  const named = Object.fromEntries(Object.entries(args).map(([name, argument]) => [name, { ...argument, name }]))
  return {
    id,
    description,
    examples: [(examples ?? []).join('\n')],
    args: named,
    flags: { ...flags, ...globalFlags },
    usage: [id, ...words, '[FLAGS]'].join(' '),
  }
}
