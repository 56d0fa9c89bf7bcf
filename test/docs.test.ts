import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { referenceFile, referenceText } from '../scripts/generate-reference.ts'
import { globalFlags } from '../src/cli/base-command.ts'
import { aliases, commandTable, loadCommand } from '../src/cli/command-table.ts'
import { repository } from './support/temp-project.ts'

const documents = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
  ...readdirSync(join(repository, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file)),
]

const read = (file: string): string => readFileSync(join(repository, file), 'utf8')

/** As GitHub names the places of a page. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

it('the reference says what the commands declare', async () => {
  expect(readFileSync(referenceFile, 'utf8'), 'npm run reference writes it').toBe(await referenceText())
})

it('every link of the documents leads to a file, and to a place in it', () => {
  const links = documents.flatMap((document) =>
    [...read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([, path = '', anchor]) => {
      const file = path === '' ? document : join(dirname(document), path)
      return { link: `${document} -> ${path}#${anchor ?? ''}`, file, anchor }
    }),
  )
  expect(links.length).toBeGreaterThan(20)
  const broken = links.filter(({ file, anchor }) => {
    if (!existsSync(join(repository, file))) return true
    return anchor !== undefined && !anchorsOf(read(file)).has(anchor)
  })
  expect(broken.map(({ link }) => link)).toEqual([])
})

/** The command lines that a text shows as code: a command, and the flags behind it. */
function commandLinesIn(text: string): readonly { readonly name: string; readonly flags: readonly string[] }[] {
  const code = text.match(/```[\s\S]*?```|^ {4}\S.*$|`[^`\n]+`/gm) ?? []
  return code
    .flatMap((each) => [...each.matchAll(/\bkhepri ([a-z]+)([^\n`|;&>#]*)/g)])
    .map(([, name = '', rest = '']) => {
      const [own = '', behind = ''] = rest.split(/ -- ?(?=-|$)/)
      // Behind the dashes of `systemd` stand the flags of `work`.
      const words = name === 'systemd' && behind !== '' ? `${behind} ` : own
      return {
        name: words === own ? name : 'work',
        flags: [...words.matchAll(/(?<=\s)--([a-z][a-z-]*)/g)].map(([, flag = '']) => flag),
      }
    })
}

it('every flag that the documents show belongs to its command', async () => {
  const lines = documents
    .filter((document) => document !== 'CHANGELOG.md')
    .flatMap((document) => commandLinesIn(read(document)).map((line) => ({ document, ...line })))
    .filter(({ name }) => commandTable.has(aliases.get(name) ?? name))
  expect(lines.flatMap(({ flags }) => flags).length).toBeGreaterThan(60)
  const strangers: string[] = []
  for (const { document, name, flags } of lines) {
    const known = { ...globalFlags, ...(await loadCommand(name))?.flags }
    for (const flag of flags) if (!Object.hasOwn(known, flag)) strangers.push(`${document}: khepri ${name} --${flag}`)
  }
  expect(strangers).toEqual([])
})
