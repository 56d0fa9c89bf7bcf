import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type CommandClass, globalFlags } from '../src/cli/base-command.ts'
import { aliases, commandTable, loadCommand } from '../src/cli/command-table.ts'
import { exitCodeTable, exitOf } from '../src/cli/exit-codes.ts'
import { environmentVariables } from '../src/core/environment.ts'
import { type ErrorCode, errorCodes } from '../src/core/errors.ts'

/**
 * Writes docs/reference.md from what the commands themselves declare: `npm run reference`. A test holds the file to it.
 */

/** Where the reference stands. */
export const referenceFile = join(import.meta.dirname, '..', 'docs', 'reference.md')

/** The whole reference, as it should stand in the file. */
export async function referenceText(): Promise<string> {
  const commands = await Promise.all([...commandTable.keys()].map(loadCommand))
  const sections = commands.filter((command) => command !== null).map(commandSection)
  return `${[introduction, ...sections, globalSection(), exitSection(), errorSection(), environmentSection()].join('\n\n')}\n`
}

const introduction = `# Reference

Every command with its flags, every exit code, error code and environment variable. This page is written by
\`npm run reference\` from what the commands themselves declare; \`khepri help COMMAND\` says the same in a shell.`

type FlagShape = CommandClass['flags'][string]

function commandSection({ id, summary, description, examples = [], args, flags }: CommandClass): string {
  const others = [...aliases].filter(([, name]) => name === id).map(([alias]) => `\`khepri ${alias}\``)
  const words = Object.entries(args).filter(([, { hidden }]) => hidden !== true)
  const shown = Object.entries(flags).filter(([, { hidden }]) => hidden !== true)
  const usage = [
    'khepri',
    id,
    ...words.map(([name, argument]) => wordOf(name, argument)),
    ...(shown.length > 0 ? ['[FLAGS]'] : []),
  ]
  return [
    `## khepri ${id}`,
    `${sentence(summary)}${others.length === 0 ? '' : ` Also ${others.join(', ')}.`}`,
    `    ${usage.join(' ')}`,
    ...(description === undefined ? [] : [prose(description)]),
    ...(words.length === 0
      ? []
      : [
          table(
            ['argument', 'what it is'],
            words.map(([name, { description: what = '' }]) => [`\`${name.toUpperCase()}\``, what]),
          ),
        ]),
    ...(shown.length === 0 ? [] : [flagTable(shown)]),
    ...(examples.length === 0 ? [] : [examples.map((example) => `    ${example}`).join('\n')]),
  ].join('\n\n')
}

function wordOf(
  name: string,
  { required, multiple }: { readonly required?: boolean; readonly multiple?: boolean },
): string {
  const word = `${name.toUpperCase()}${multiple ? '...' : ''}`
  return required ? word : `[${word}]`
}

const flagTable = (flags: readonly (readonly [string, FlagShape])[]): string =>
  table(
    ['flag', 'what it does'],
    flags.map(([name, flag]) => [flagText(name, flag), flag.summary ?? flag.description ?? '']),
  )

function flagText(name: string, flag: FlagShape): string {
  const value = flag.type === 'option' ? `=${flag.helpValue ?? flag.options?.join('|') ?? 'VALUE'}` : ''
  return `${flag.char === undefined ? '' : `\`-${flag.char}\`, `}\`--${name}${value}\``
}

const globalSection = (): string => `## Flags of every command\n\n${flagTable(Object.entries(globalFlags))}`

const exitSection = (): string =>
  `## Exit codes\n\n${table(
    ['code', 'name', 'when'],
    exitCodeTable.map(({ code, name, when }) => [code, name, when]),
  )}`

const errorSection = (): string =>
  `## Error codes\n\nWith \`--json\` an error is one line on stderr: \`{"error":{"code","message","fix","exit"}}\`.\n\n${table(
    ['code', 'exit', 'what it means'],
    Object.entries(errorCodes).map(([code, what]) => [`\`${code}\``, String(exitOf[code as ErrorCode]), what]),
  )}`

const environmentSection = (): string =>
  `## Environment\n\nThe list is closed: settings only, no ids, filters or payloads.\n\n${table(
    ['variable', 'what it sets'],
    environmentVariables.map(({ name, what }) => [`\`${name}\``, what]),
  )}`

/** Aligned, as the formatter would have it. */
function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [titles, ...rows].map((cells) => cells.map((cell) => cell.replaceAll(/[|<]/g, '\\$&')))
  const widths = titles.map((_, index) => Math.max(3, ...lines.map((cells) => cells[index]?.length ?? 0)))
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |`
  const [head = [], ...body] = lines
  return [row(head), row(widths.map((width) => '-'.repeat(width))), ...body.map(row)].join('\n')
}

/** What Markdown would take for HTML or emphasis is text here. */
const prose = (text: string): string => text.replaceAll(/[<*_]/g, '\\$&')

const sentence = (text: string): string => `${text}.`

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const text = await referenceText()
  if (readFileSync(referenceFile, { encoding: 'utf8', flag: 'a+' }) === text)
    console.log('docs/reference.md is current')
  else {
    writeFileSync(referenceFile, text)
    console.log('docs/reference.md: written')
  }
}
