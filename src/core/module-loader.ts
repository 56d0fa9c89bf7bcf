import { existsSync, readFileSync } from 'node:fs'
// Not by name: an old Node, which has none, must get as far as the sentence that says so.
import nodeModule, { type LoadHookSync, type ResolveHookSync } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { defaults } from './defaults.ts'
import { formatDuration } from './duration.ts'
import { isKhepriError, KhepriError } from './errors.ts'
import { findSyntaxError } from './syntax-check.ts'
import { describeError, oneLine } from './text.ts'
import { startLoading, tellSlowLoad } from './user-code.ts'

/**
 * Imports a module of the user's: JavaScript or TypeScript, whatever the package.json around it says.
 *
 * path: absolute. source: how messages name it. Throws MODULE_BROKEN with file, line where it can be known, and a fix.
 */
export async function loadModule(path: string, source: string = path): Promise<Record<string, unknown>> {
  installHooks()
  const loaded = startLoading(path, source)
  const patience = watchLoading(source)
  try {
    const imported: Promise<Record<string, unknown>> = import(/* @vite-ignore */ pathToFileURL(path).href)
    return await Promise.race([imported, patience.ended])
  } catch (error) {
    // To find out what is wrong takes time of ours, not of the module's.
    patience.stop()
    throw error instanceof NeverLoaded ? await stalled(error, path, source) : await broken(error, path, source)
  } finally {
    patience.stop()
    loaded()
  }
}

/** Why a module is not waited for any more. */
class NeverLoaded extends Error {
  override readonly name = 'NeverLoaded'
}

/**
 * Watches the loading of a module: tells when it takes long, and rejects when it took too long or can never end.
 *
 * A process in which nothing is left to happen while a module still loads would otherwise just end, without a word.
 */
function watchLoading(source: string): { readonly ended: Promise<never>; readonly stop: () => void } {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  ended.catch(() => {})
  const giveUp = (why: string): void => reject(new NeverLoaded(why))
  const onIdle = (): void => giveUp('nothing is left that could end it')
  const slow = setTimeout(() => tellSlowLoad(source), defaults.slowLoadMs).unref()
  const limit = setTimeout(() => giveUp(`not within ${formatDuration(defaults.loadMs)}`), defaults.loadMs).unref()
  const forget = beforeExit(onIdle)
  const stop = (): void => {
    clearTimeout(slow)
    clearTimeout(limit)
    forget()
  }
  return { ended, stop }
}

const idleActs = new Set<() => void>()
const actWhenIdle = (): void => {
  for (const act of [...idleActs]) act()
}

/** Acts when nothing is left to happen; the result ends it. One listener for all: a hundred modules may load at once. */
function beforeExit(act: () => void): () => void {
  if (idleActs.size === 0) process.on('beforeExit', actWhenIdle)
  idleActs.add(act)
  return () => {
    if (idleActs.delete(act) && idleActs.size === 0) process.off('beforeExit', actWhenIdle)
  }
}

async function stalled(error: NeverLoaded, path: string, source: string): Promise<KhepriError> {
  if (await exportsThen(path))
    return new KhepriError('MODULE_BROKEN', `cannot import ${source}: it exports a function named "then"`, {
      fix: 'give it another name: import() takes a module that has it for a promise, and waits for ever',
      cause: error,
    })
  return new KhepriError(
    'MODULE_BROKEN',
    `cannot import ${source}: its top-level await does not end (${error.message})`,
    {
      fix: 'move what it waits for into the handler, or bound it in time',
      cause: error,
    },
  )
}

/** A module that was evaluated comes at once as a member of another one, where its name "then" means nothing. */
async function exportsThen(path: string): Promise<boolean> {
  const wrapper = `import * as found from ${JSON.stringify(pathToFileURL(path).href)}; export const isThenable = typeof found.then === 'function'`
  const imported: Promise<{ readonly isThenable: boolean }> = import(
    /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(wrapper)}`
  )
  const asked = imported.then(({ isThenable }) => isThenable).catch(() => false)
  return Promise.race([asked, wait(defaults.thenableMs, false)])
}

let areHooksInstalled = false

/** Hooks are for the whole process and cannot be taken back, so they are put in at the first import and once. */
function installHooks(): void {
  if (areHooksInstalled) return
  areHooksInstalled = true
  nodeModule.registerHooks({ resolve, load })
}

const isOfPackage = (url: string | undefined): boolean => url?.includes('/node_modules/') ?? false

/** Finds what Node alone does not: TypeScript without or behind another extension, and khepri itself for a global installation. */
const resolve: ResolveHookSync = (specifier, context, nextResolve) => {
  try {
    return nextResolve(specifier, context)
  } catch (error) {
    for (const candidate of candidatesFor(specifier, context.parentURL)) {
      try {
        return nextResolve(candidate, context)
      } catch {
        // The first failure is the one that speaks of what the user wrote.
      }
    }
    throw error
  }
}

function candidatesFor(specifier: string, parent: string | undefined): readonly string[] {
  if (specifier === 'khepri') return [ownIndex()]
  if (!/^(\.{1,2}\/|\/|file:)/.test(specifier) || isOfPackage(parent)) return []
  const compiled = /\.([cm]?)js$/.exec(specifier)
  if (compiled) return [specifier.replace(/js$/, 'ts')]
  return [`${specifier}.ts`, `${specifier}.mts`, `${specifier.replace(/\/$/, '')}/index.ts`]
}

/** The public entry of the copy that runs: the source in a clone, the bundle in a package. */
function ownIndex(): string {
  const here = fileURLToPath(import.meta.url)
  let folder = dirname(here)
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder)
  return pathToFileURL(join(folder, here.endsWith('.ts') ? 'src/index.ts' : 'dist/index.js')).href
}

const longestTrail = 50

/** The user's files in the order of loading: a syntax error does not say in which of them it is. */
const trail: string[] = []

/** Under "type": "commonjs", which npm init writes, Node would take a .ts file with imports for broken. */
const load: LoadHookSync = (url, context, nextLoad) => {
  if (!url.startsWith('file:') || isOfPackage(url)) return nextLoad(url, context)
  trail.push(fileURLToPath(url))
  if (trail.length > longestTrail) trail.shift()
  return nextLoad(url, new URL(url).pathname.endsWith('.ts') ? { ...context, format: 'module-typescript' } : context)
}

interface Place {
  readonly file: string
  readonly line: number
}

async function broken(error: unknown, path: string, source: string): Promise<KhepriError> {
  if (isMissing(error, path))
    return new KhepriError('MODULE_BROKEN', `cannot import ${source}: there is no such file`, { cause: error })
  const found = placeInStack(error, path) ?? (isSyntaxError(error) ? await searchTrail(path) : null)
  const message = withoutPaths(describeError(error).message)
  const fix = isKhepriError(error) && error.fix !== undefined ? error.fix : fixFor(message, codeOf(error), found)
  return new KhepriError('MODULE_BROKEN', `cannot import ${inSource(source, path, found)}: ${message}`, {
    fix,
    cause: error,
  })
}

/** What a module threw may throw itself when it is looked at. */
function codeOf(error: unknown): unknown {
  try {
    return typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined
  } catch {
    return undefined
  }
}

const isSyntaxError = (error: unknown): boolean => describeError(error).type === 'SyntaxError'

const isMissing = (error: unknown, path: string): boolean =>
  codeOf(error) === 'ERR_MODULE_NOT_FOUND' && !existsSync(path)

const inSource = (source: string, path: string, place: Place | null): string => {
  if (place === null) return source
  return place.file === path ? `${source}:${place.line}` : `${source}: ${place.file}:${place.line}`
}

/** Where TypeScript or CommonJS could not be read stands in the first line of the stack, where a module threw in its first frame. */
function placeInStack(error: unknown, path: string): Place | null {
  const lines = describeError(error).stack?.split('\n') ?? []
  const head = /^(file:\/\/.*|\/.*|[A-Za-z]:\\.*):(\d+)$/.exec(lines[0] ?? '')
  if (head) return place(head)
  const frames = lines
    .map((line) => /^\s+at .*?((?:file:\/\/)?\/[^()]*|[A-Za-z]:\\[^()]*):(\d+):\d+\)?$/.exec(line))
    .filter((match) => match !== null)
  return frames.map(place).find(({ file }) => file === path || trail.includes(file)) ?? null
}

function place([, file = '', line]: readonly string[]): Place {
  return { file: file.startsWith('file:') ? fileURLToPath(file) : file, line: Number(line) }
}

/** The module itself first, then what it loaded, the latest first. */
async function searchTrail(path: string): Promise<Place | null> {
  for (const file of new Set([path, ...trail.toReversed().slice(0, 8)])) {
    const line = await findSyntaxError(file)
    if (line !== null) return { file, line }
  }
  return null
}

/** Node repeats absolute paths where the message has named the file already. */
function withoutPaths(message: string): string {
  return oneLine(message.split('\n', 1)[0] ?? '').replace(
    /^Cannot find (module|package) '([^']+)' imported from .*$/,
    "cannot find $1 '$2'",
  )
}

const strippingOnly =
  'Node strips types and nothing more: write it without enums, parameter properties and decorators, compile it first, or start with NODE_OPTIONS="--import tsx"'

function fixFor(message: string, errorCode: unknown, found: Place | null): string {
  const name = /'([^']+)'/.exec(message)?.[1] ?? ''
  if (errorCode === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX' || isDecorated(found)) return strippingOnly
  if (/^cannot find package/.test(message)) return fixForPackage(name)
  if (/does not provide an export named/.test(message))
    return 'if it is only a type, write "import type"; otherwise export it there'
  if (/outside a module|Unexpected token 'export'/.test(message))
    return 'give the file the extension .mjs, or put "type": "module" into package.json'
  if (/is not defined in ES module scope/.test(message))
    return 'use import and export, or give the file the extension .cjs or .cts'
  return found === null ? 'correct it, then: khepri jobs' : `correct line ${found.line}, then: khepri jobs`
}

const fixForPackage = (name: string): string =>
  /^(@\/|~|#)/.test(name)
    ? 'paths of tsconfig.json are not read: use "imports" in package.json'
    : `npm install ${name} (paths of tsconfig.json are not read: for one of those use "imports" in package.json)`

function isDecorated(found: Place | null): boolean {
  if (found === null || !/\.[cm]?ts$/.test(found.file)) return false
  const line = readFileSync(found.file, 'utf8').split('\n')[found.line - 1] ?? ''
  return line.trimStart().startsWith('@')
}
