import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync, type Stats, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, extname, join, relative, resolve } from 'node:path'
import { isRecord } from './config-keys.ts'
import { KhepriError } from './errors.ts'
import { caret, findDuplicateKey, findFault, isDeeperThan } from './json-text.ts'
import { loadModule } from './module-loader.ts'
import { requireTrustedFile } from './ownership.ts'
import { describeError, shown } from './text.ts'

const extensions = ['ts', 'mts', 'js', 'mjs', 'cts', 'cjs', 'json']

/** The names under which a configuration is found. */
const configFileNames: readonly string[] = extensions.map((extension) => `khepri.config.${extension}`)

/**
 * Searches upward for a configuration file: in each folder up to the first with package.json or .git, the home folder,
 * or the border of the file system. Throws CONFIG_INVALID where a folder has two.
 */
export function findConfigFile(from: string): string | null {
  const home = homeFolder()
  const device = statOf(from)?.dev
  for (let folder = resolve(from); statOf(folder)?.dev === device; folder = dirname(folder)) {
    const found = configIn(folder)
    if (found !== null) return found
    if (folder === home || isProject(folder) || dirname(folder) === folder) return null
  }
  return null
}

/** null for a user without one, as services in containers may be. */
function homeFolder(): string | null {
  try {
    return homedir()
  } catch {
    return null
  }
}

function configIn(folder: string): string | null {
  const [first, second] = configFileNames.filter((name) => existsSync(join(folder, name)))
  if (second !== undefined)
    throw new KhepriError('CONFIG_INVALID', `${folder} has two configurations: ${first} and ${second}`, {
      fix: 'remove one of them, or name one with --config',
    })
  return first === undefined ? null : join(folder, first)
}

const isProject = (folder: string): boolean =>
  existsSync(join(folder, 'package.json')) || existsSync(join(folder, '.git'))

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

/**
 * Reads a configuration file, of any of the known kinds, into what it exports.
 *
 * Throws CONFIG_MISSING, CONFIG_UNSAFE, CONFIG_INVALID with the place, or MODULE_BROKEN.
 */
export async function readConfigFile(file: string, cwd: string): Promise<object> {
  const name = shownPath(file, cwd)
  const stat = statOf(file)
  if (stat === undefined)
    throw new KhepriError('CONFIG_MISSING', `the configuration ${name} does not exist`, {
      fix: 'khepri init writes one',
    })
  if (!stat.isFile()) throw new KhepriError('CONFIG_INVALID', `the configuration ${name} is not a file`)
  requireTrustedFile(file, name)
  const { value } = extname(file) === '.json' ? { value: readJson(file, name) } : await importConfig(file, name)
  requireReadable(value, name)
  return value
}

/** Throws CONFIG_INVALID for what is no object, and for one whose getters throw, or that is a proxy that does. */
function requireReadable(value: unknown, name: string): asserts value is Readonly<Record<string, unknown>> {
  const fix = 'export default defineConfig({ … })'
  try {
    if (isRecord(value)) return void Object.values(value)
  } catch (error) {
    const reason = `${name} throws when its settings are read: ${describeError(error).message}`
    throw new KhepriError('CONFIG_INVALID', reason, { fix, cause: error })
  }
  throw new KhepriError('CONFIG_INVALID', `${name} must hold an object, got ${shown(value)}`, { fix })
}

/** A path as people would type it where they are. */
function shownPath(path: string, cwd: string): string {
  const short = relative(cwd, path)
  return short === '' || short.startsWith('..') ? path : short
}

/** In an object: a promise looks at what it is fulfilled with, and a proxy may not like that. */
async function importConfig(file: string, name: string): Promise<{ readonly value: unknown }> {
  const module = await loadModule(file, name)
  if (module.default === undefined)
    throw new KhepriError('CONFIG_INVALID', `${name} has no default export`, {
      fix: 'export default defineConfig({ … })',
    })
  return { value: module.default }
}

/** Levels of nesting that no configuration needs. */
const maxDepth = 100

function readJson(file: string, source: string): unknown {
  const bytes = readFileSync(file)
  if (!isUtf8(bytes)) throw new KhepriError('CONFIG_INVALID', `${source} is not UTF-8`)
  const text = bytes.toString('utf8').replace(/^\ufeff/, '')
  const fault = findFault(text)
  if (fault) throw new KhepriError('CONFIG_INVALID', caret({ source, text, ...fault }))
  if (isDeeperThan(text, maxDepth))
    throw new KhepriError('CONFIG_INVALID', `${source} is nested more than ${maxDepth} levels deep`)
  const doubled = findDuplicateKey(text)
  if (doubled)
    throw new KhepriError(
      'CONFIG_INVALID',
      caret({ source, text, offset: doubled.offset, message: `${shown(doubled.key)} stands here a second time` }),
    )
  return JSON.parse(text)
}
