import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { aliases, commandTable } from '../../src/cli/command-table.ts'
import { commandGroups } from '../../src/cli/words-given.ts'
import { repository } from '../support/temp-project.ts'

const known: ReadonlySet<string> = new Set([...commandTable.keys(), ...aliases.keys(), 'help', 'version'])

/** Words after "khepri" that go on with a sentence: "use the khepri that migrated it". */
const prose: ReadonlySet<string> = new Set(['that', 'never', 'was', 'knows', 'is', 'the', 'beside'])

const read = (file: string): string => readFileSync(join(repository, file), 'utf8')

function filesIn(folder: string, ending: string): readonly string[] {
  return readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => join(folder, file))
}

/** The commands that a text names, each with the text around it. */
function commandsIn(text: string): readonly { readonly word: string; readonly text: string }[] {
  return [...text.matchAll(/\bkhepri ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g)]
    .map(([, first = '', second = '']) => ({ word: commandGroups.has(first) ? `${first} ${second}` : first, text }))
    .filter(({ word }) => !prose.has(word))
}

const strangers = (texts: readonly string[]): readonly string[] =>
  texts.flatMap(commandsIn).flatMap(({ word, text }) => (known.has(word) ? [] : [`khepri ${word}: ${text.trim()}`]))

it('no error recommends a command that does not exist', () => {
  const fixes = filesIn('src', '.ts').flatMap((file) =>
    read(file)
      .split('\n')
      .filter((line) => /\bfix\b/i.test(line) && !/^\s*(?:\/\/|\/?\*)/.test(line)),
  )
  expect(fixes.flatMap(commandsIn).length).toBeGreaterThan(5)
  expect(strangers(fixes)).toEqual([])
})

it('no document shows a command that does not exist', () => {
  const documents = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', ...filesIn('docs', '.md')]
  // Code only: fenced, or between back quotes.
  const code = documents.flatMap((file) => read(file).match(/```[\s\S]*?```|`[^`\n]+`/g) ?? [])
  expect(code.flatMap(commandsIn).length).toBeGreaterThan(20)
  expect(strangers(code)).toEqual([])
})
