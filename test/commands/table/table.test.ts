import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandTable } from '../../../src/cli/command-table.ts'
import { version } from '../../../src/core/package.ts'
import { atTerminal, terminalSkipReason } from '../../support/cli.ts'
import { Live, type StartOptions } from '../../support/live.ts'
import { repository, TempProject } from '../../support/temp-project.ts'
import { seen } from '../../support/transcript.ts'
import { called, files, preparation } from './commands.ts'
import type { Ran, Run } from './table-process.ts'

/**
 * Every command in every situation: what it writes on stdout and stderr, and its exit code, as a whole. The files beside
 * this one hold it, one a command; `npx vitest run test/commands/table -u` writes them anew.
 */

/** What needs no process of its own. */
const situations = {
  '--json': ({ words }) => [...words, '--json'],
  'another working directory': ({ words }) => words,
  'no configuration': ({ words }) => words,
  'an unknown flag': ({ words }) => [...words, '--nope'],
  'an unknown id': ({ unknownId }) => unknownId,
} as const satisfies Readonly<Record<string, (command: (typeof called)[string]) => readonly string[]>>

type Situation = keyof typeof situations

const folder = new TempProject()
const template = join(folder.path, 'template')
const ranHere = new Map<string, Ran>()

beforeAll(async () => {
  for (const [name, text] of Object.entries(files)) folder.write(join('template', name), text)
  const made = preparation.map((argv): Run => ({ argv, cwd: template, copy: null, isEndless: false }))
  const cases = [...commandTable.keys()].flatMap((name) =>
    (Object.keys(situations) as Situation[]).map((situation) => ({ name, situation })),
  )
  const results = await runHere([...made, ...cases.map(({ name, situation }) => runOf(name, situation))])
  for (const [index, { name, situation }] of cases.entries())
    ranHere.set(`${name} ${situation}`, results[made.length + index] as Ran)
})

afterAll(() => folder[Symbol.dispose]())

function runOf(name: string, situation: Situation): Run {
  const to = join(folder.path, name.replaceAll(' ', '-'), situation.replaceAll(' ', '-'))
  const command = called[name] ?? { words: [], unknownId: [] }
  return {
    argv: [...name.split(' '), ...situations[situation](command)],
    cwd: situation === 'another working directory' ? join(to, 'deep', 'below') : to,
    copy: situation === 'no configuration' ? null : { from: template, to },
    isEndless: command.isEndless ?? false,
  }
}

async function runHere(runs: readonly Run[]): Promise<readonly Ran[]> {
  const runsFile = folder.write('runs.json', JSON.stringify(runs))
  const resultsFile = join(folder.path, 'results.json')
  await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'table-process.ts'), runsFile, resultsFile], {
    env: Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(?:KHEPRI_|npm_|FORCE_COLOR$)/.test(key))),
  })
  return JSON.parse(readFileSync(resultsFile, 'utf8')) as readonly Ran[]
}

/** A copy of the project that nobody else changes. */
function copied(name: string, situation: string): string {
  const to = join(folder.path, name.replaceAll(' ', '-'), situation)
  cpSync(template, to, { recursive: true })
  return to
}

/** In a process of its own; what goes on for ever is told to stop once it has written something. */
async function runThere(name: string, situation: string, options: Omit<StartOptions, 'cwd'> = {}): Promise<Ran> {
  const { words = [], isEndless = false } = called[name] ?? {}
  await using live = Live.start([...name.split(' '), ...words], { cwd: copied(name, situation), ...options })
  if (isEndless && options.shell !== closed) {
    await Promise.any([live.until(/\n/), live.until(/\n/, 'stderr')])
    live.kill('SIGINT')
  }
  const { code, stdout, stderr } = await live.ended
  return { code: code ?? -1, stdout, stderr }
}

const homeless = 'unset HOME XDG_CACHE_HOME; exec "$@"'

/** Begins once the pipe is broken, and tells the exit code elsewhere. */
const closed = 'trap "" PIPE; { while echo; do :; done 2>/dev/null; "$@"; echo "exit $?" >&3; } 3>&2 | true'

async function inClosedPipe(name: string): Promise<Ran> {
  const { stdout, stderr } = await runThere(name, 'closed', { shell: closed })
  const [, text = '', code] = /^([\s\S]*)exit (\d+)\n$/.exec(stderr) ?? []
  return { code: Number(code), stdout, stderr: text }
}

async function onScreen(name: string): Promise<Ran> {
  const { words = [], typed = '' } = called[name] ?? {}
  const options = { cwd: copied(name, 'terminal'), columns: 110, env: { TERM: 'xterm' }, stdin: typed }
  const { code, stdout } = await atTerminal([...name.split(' '), ...words], options)
  return { code: code ?? -1, stdout: seen(stdout), stderr: '' }
}

/** The screen of `watch` has a test of its own: it is left by a key, and what it shows by then is chance. */
const hasScreen = (name: string): boolean => called[name]?.isEndless === true

/** Writes nothing until a slot comes, and so never learns of a closed pipe; test/commands/schedule.test.ts watches it. */
const quiet = 'schedule work'

it('the table has every command', () => {
  expect(Object.keys(called).sort()).toEqual([...commandTable.keys()].sort())
})

describe.skipIf(terminalSkipReason() !== null)('khepri', () => {
  it.concurrent.for([...commandTable.keys()].filter((name) => name !== quiet))(
    '%s says the same in every situation',
    async (name, { expect }) => {
      const piped = normal(await runThere(name, 'pipe'))
      const shown: [string, string][] = [
        ['a pipe', piped],
        ...(hasScreen(name) ? [] : ([['a terminal', normal(await onScreen(name))]] as [string, string][])),
        ['a closed pipe', normal(await inClosedPipe(name))],
        ['no HOME', normal(await runThere(name, 'homeless', { shell: homeless }))],
        ...Object.keys(situations).map((each): [string, string] => [
          each,
          normal(ranHere.get(`${name} ${each}`) as Ran),
        ]),
      ]
      const sections = shown.map(([situation, text]) =>
        situation !== 'a pipe' && text === piped ? `## ${situation}: as in a pipe\n` : `## ${situation}\n${text}`,
      )
      await expect(
        `# khepri ${[name, ...(called[name]?.words ?? [])].join(' ')}\n\n${sections.join('\n')}`,
      ).toMatchFileSnapshot(`${name}.txt`)
    },
  )
})

/** Both streams and the exit code, with what differs from run to run and from machine to machine as patterns. */
function normal({ code, stdout, stderr }: Ran): string {
  const lines = [...linesOf(stdout, ''), ...linesOf(stderr, '2| '), `[${code}]`]
  return replacements.reduce((text, [pattern, by]) => text.replaceAll(pattern, by), `${lines.join('\n')}\n`)
}

const linesOf = (text: string, prefix: string): readonly string[] =>
  text === ''
    ? []
    : text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => (prefix + line).trimEnd())

const latest = readdirSync(join(repository, 'drizzle', 'sqlite'))
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.replace('.sql', ''))
  .sort()
  .at(-1)

const replacements: readonly (readonly [RegExp | string, string])[] = [
  [new RegExp(`${folder.path}/[^/\\s]+/[^/\\s"',\\\\]+`, 'g'), '<project>'],
  [process.execPath, '<node>'],
  [repository.replace(/\/$/, ''), '<khepri>'],
  [process.versions.node, '<version>'],
  [`khepri ${version()}`, 'khepri <version>'],
  [`"version":"${version()}"`, '"version":"<version>"'],
  [/SQLite [\d.]+/g, 'SQLite <version>'],
  [`${process.platform} ${process.arch}`, '<system>'],
  [new RegExp(`\\b${hostname()}-\\d+`, 'g'), '<worker>'],
  [`worker on ${hostname()}`, 'worker on <host>'],
  [String(latest), '<latest>'],
  [/is at \d{4}\b/g, 'is at <latest>'],
  [/\d+ migrations/g, '<n> migrations'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>'],
  [/\b\d\d:\d\d:\d\d\b/g, '<clock>'],
  [/(?<="dispatchedAt":)\d+/g, '<time>'],
  [/(?<="(?:ms|waitMs|oldestWaitMs)":)\d+/g, '<ms>'],
  [/(?<= (?:ms|waitMs)=)\d+/g, '<ms>'],
  [/\d+[smhd] ago *(?=\S)/g, '<age>  '],
  // What is aligned beside it moves with it.
  [/(?<=\S)(?: +\d+(?:\.\d+)?(?:ms|s|m|h))+(?=[\s,])/g, ' <duration>'],
  [/<duration> +/g, '<duration>  '],
]
