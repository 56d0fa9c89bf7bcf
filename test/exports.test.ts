import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { repository } from './support/temp-project.ts'

interface Exported {
  readonly name: string
  readonly file: string
}

const reExport = /export (?:type )?\{([^}]+)\} from '([^']+)'/g

/** What an entry of the package re-exports, and where it is declared. */
function exportsOf(entry: string): readonly Exported[] {
  const text = readFileSync(join(repository, entry), 'utf8')
  return [...text.matchAll(reExport)].flatMap(([, names = '', from = '']) =>
    names
      .split(',')
      .map((name) => name.replace('type ', '').trim())
      .filter((name) => name !== '')
      .map((name) => ({ name, file: join(dirname(entry), from) })),
  )
}

/** Tells whether a docstring ends on the line before the declaration. */
function isDocumented({ name, file }: Exported): boolean {
  const text = readFileSync(join(repository, file), 'utf8')
  const declaration = new RegExp(
    `\\*/\\nexport (?:abstract )?(?:async )?(?:class|function|const|interface|type) ${name}\\b`,
  )
  return declaration.test(text)
}

it.each([
  ['src/index.ts', 40],
  ['src/testing/index.ts', 8],
])('%s re-exports at least %i names, and each has a docstring where it is declared', (entry, least) => {
  const all = exportsOf(entry)
  expect(all.length).toBeGreaterThanOrEqual(least)
  expect(all.filter((one) => !isDocumented(one))).toEqual([])
})
