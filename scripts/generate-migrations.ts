import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * Compares the schema files with the generated migrations.
 *
 * `npm run generate` fails when they differ; `npm run generate -- NAME` writes the missing migration under that name.
 */

const root = join(import.meta.dirname, '..')
const dialects = { sqlite: 'sqlite', postgres: 'postgresql' } as const

export type Dialect = keyof typeof dialects

export interface GenerateOptions {
  /** The module that exports the tables. */
  readonly tables?: string
  /** The name of a new migration. */
  readonly name?: string
}

/** Lets drizzle-kit write into a copy what is missing in a dialect's migrations; answers the new files' names. */
export function generateInto(copy: string, dialect: Dialect, options: GenerateOptions = {}): readonly string[] {
  const { tables = `drizzle/${dialect}.tables.ts`, name = 'drift' } = options
  cpSync(join(root, 'drizzle', dialect), copy, { recursive: true })
  const before = new Set(readdirSync(copy))
  const kit = join(root, 'node_modules', 'drizzle-kit', 'bin.cjs')
  // drizzle-kit reads every path as one below the working directory.
  const out = relative(root, copy)
  const flags = ['--dialect', dialects[dialect], '--schema', tables, '--out', out, '--name', name]
  execFileSync(process.execPath, [kit, 'generate', ...flags], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  return readdirSync(copy).filter((file) => !before.has(file))
}

function generate(name: string | undefined): void {
  for (const dialect of Object.keys(dialects) as Dialect[]) {
    const copy = mkdtempSync(join(tmpdir(), 'khepri-generate-'))
    try {
      report(dialect, generateInto(copy, dialect, name === undefined ? {} : { name }), name)
      if (name !== undefined) cpSync(copy, join(root, 'drizzle', dialect), { recursive: true })
    } finally {
      rmSync(copy, { recursive: true })
    }
  }
}

function report(dialect: Dialect, added: readonly string[], name: string | undefined): void {
  if (added.length === 0) console.log(`${dialect}: no schema changes`)
  else if (name !== undefined) console.log(`${dialect}: wrote ${added.join(', ')}`)
  else {
    console.error(`${dialect}: the schema has changed and no migration says so\n  fix: npm run generate -- NAME`)
    process.exitCode = 1
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) generate(process.argv[2])
