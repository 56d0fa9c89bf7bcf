import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** One import, static or dynamic, of types or of values. `to` is a path from the root, or the name of a package. */
interface Import {
  readonly from: string
  readonly to: string
  readonly isOurs: boolean
  readonly isDynamic: boolean
}

const statement = /^(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?'([^'\n]+)'|\bimport\(\s*'([^'\n]+)'/gm

function importsOf(from: string): readonly Import[] {
  const text = readFileSync(join(root, from), 'utf8')
  return [...text.matchAll(statement)].map(([, fixed, dynamic]) => {
    const specifier = fixed ?? dynamic ?? ''
    const isOurs = specifier.startsWith('.')
    const to = isOurs ? posix.join(posix.dirname(from), specifier) : specifier
    return { from, to, isOurs, isDynamic: dynamic !== undefined }
  })
}

const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => join(entry.parentPath, entry.name).slice(root.length).split(sep).join('/'))

const imports = files.flatMap(importsOf)
const ours = imports.filter(({ isOurs }) => isOurs)
const foreign = imports.filter(({ isOurs }) => !isOurs)

/** The part of the house a file belongs to; whatever is none of the others is a layer. */
function areaOf(file: string): string {
  const [, first = '', ...rest] = file.split('/')
  return rest.length === 0 ? first.replace(/\.ts$/, '') : first
}

const isLayer = (area: string): boolean =>
  !['commands', 'cli', 'app', 'index', 'beat-thread-main', 'testing', 'core'].includes(area)

/** What each part may import besides itself: the arrows of the house all point down. */
function mayImport(from: string, to: string): boolean {
  if (from === to) return true
  switch (from) {
    case 'commands':
      return to === 'cli' || to === 'app' || to === 'core' || isLayer(to)
    case 'cli':
      return to === 'app' || to === 'core' || isLayer(to)
    case 'app':
      return to === 'core' || isLayer(to)
    // Entries of the bundle: the library, the thread that workers start, and the kit for tests.
    case 'index':
    case 'beat-thread-main':
    case 'testing':
      return to === 'app' || to === 'core' || isLayer(to)
    case 'core':
      return false
    default:
      return to === 'core'
  }
}

const shown = ({ from, to }: Import): string => `${from} imports ${to}`
const commandTable = 'src/cli/command-table.ts'

/** The folder of a store with its own driver that a file lies in: "sqlite"; null for every other file. */
const driverOf = (file: string): string | null => /^src\/core\/store\/([^/]+)\//.exec(file)?.[1] ?? null

const driverPackages: Readonly<Record<string, RegExp>> = {
  sqlite: /^(better-sqlite3|drizzle-orm(\/.*)?)$/,
  postgres: /^(postgres|drizzle-orm(\/.*)?)$/,
}

it('the imports of more than 50 files are read, static and dynamic', () => {
  expect(files.length).toBeGreaterThan(50)
  expect(imports.filter(({ isDynamic }) => isDynamic).length).toBeGreaterThan(5)
  for (const { to } of ours) if (to.startsWith('src/')) expect(files).toContain(to)
})

describe('the arrows of the house', () => {
  it('commands -> cli -> app -> layers -> core, and never back', () => {
    const wrong = ours.filter(({ from, to }) => {
      const isTable = from === commandTable && areaOf(to) === 'commands'
      return to.startsWith('src/') && !isTable && !mayImport(areaOf(from), areaOf(to))
    })
    expect(wrong.map(shown)).toEqual([])
  })

  it('nobody imports commands but the command table, and that only by import()', () => {
    const wrong = ours.filter(({ from, to, isDynamic }) => {
      if (areaOf(to) !== 'commands' || !to.startsWith('src/')) return false
      return areaOf(from) === 'commands' ? from !== to : from !== commandTable || !isDynamic
    })
    expect(wrong.map(shown)).toEqual([])
  })

  it('nothing in src/ imports testing/', () => {
    const wrong = ours.filter(({ from, to }) => to.startsWith('src/testing/') && !from.startsWith('src/testing/'))
    expect(wrong.map(shown)).toEqual([])
  })

  it('nothing in src/ imports from outside of src/', () => {
    expect(ours.filter(({ to }) => !to.startsWith('src/')).map(shown)).toEqual([])
  })
})

describe('the kernel', () => {
  it('imports node: and nothing else, except a store its own driver', () => {
    const wrong = foreign.filter(({ from, to }) => {
      if (areaOf(from) !== 'core' || to.startsWith('node:')) return false
      return !driverPackages[driverOf(from) ?? '']?.test(to)
    })
    expect(wrong.map(shown)).toEqual([])
  })

  it('imports no store: a store is known by its interface', () => {
    const wrong = ours.filter(({ from, to }) => {
      const driver = driverOf(to)
      return areaOf(from) === 'core' && driver !== null && driver !== driverOf(from)
    })
    expect(wrong.map(shown)).toEqual([])
  })
})

describe('the composition root', () => {
  it('loads stores and layers only by import()', () => {
    const wrong = ours.filter(({ from, to, isDynamic }) => {
      return from === 'src/app.ts' && !isDynamic && (driverOf(to) !== null || isLayer(areaOf(to)))
    })
    expect(wrong.map(shown)).toEqual([])
  })

  it('is the only file that opens stores', () => {
    const wrong = ours.filter(({ from, to }) => {
      const area = areaOf(from)
      return driverOf(to) !== null && area !== 'core' && area !== 'testing' && from !== 'src/app.ts'
    })
    expect(wrong.map(shown)).toEqual([])
  })
})

/** Files on the shortest way from one file to another along imports, both ends counted; null if there is none. */
function filesBetween(from: string, isGoal: (file: string) => boolean): readonly string[] | null {
  const ways = new Map<string, readonly string[]>([[from, [from]]])
  for (const [file, way] of ways) {
    if (isGoal(file)) return way
    for (const { from: importer, to } of ours) if (importer === file && !ways.has(to)) ways.set(to, [...way, to])
  }
  return null
}

it.each(['sqlite', 'postgres'])(
  'from `khepri work` to the reservation SQL of %s it is five files at most',
  (driver) => {
    const reservation = /\bset worker = :worker\b/
    const isReservation = (file: string): boolean =>
      driverOf(file) === driver && reservation.test(readFileSync(join(root, file), 'utf8'))
    const way = filesBetween('src/commands/work.ts', isReservation)
    expect(way, `some way from work.ts to "${reservation.source}"`).not.toBeNull()
    expect(way?.length, way?.join(' -> ')).toBeLessThanOrEqual(5)
  },
)

it('the test would see a wrong arrow', () => {
  expect(mayImport('core', 'cli')).toBe(false)
  expect(mayImport('exec', 'schedule')).toBe(false)
  expect(mayImport('app', 'cli')).toBe(false)
  expect(areaOf('src/app.ts')).toBe('app')
  expect(areaOf('src/exec/handler.ts')).toBe('exec')
  expect(importsOf('src/cli/command-table.ts').filter(({ isDynamic }) => isDynamic).length).toBeGreaterThan(3)
})

it('nothing in src/ declares with `using`, which Node 22 cannot read', () => {
  const wrong = files.filter((file) => /^\s*(?:await )?using \w+ =/m.test(readFileSync(join(root, file), 'utf8')))
  expect(wrong).toEqual([])
})
