import { readdirSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import type { Config } from './config.ts'
import { isRecord, refuseUnknownKeys } from './config-keys.ts'
import { isKhepriError, KhepriError } from './errors.ts'
import { type Executable, isExecutable, type MakeExecutable, parseExecutable } from './executable.ts'
import { type Handler, handlerOf, isHandlerSource, isJob, jobIn } from './handler.ts'
import type { JobFunction } from './job.ts'
import type { JobsEntry } from './jobs-setting.ts'
import { loadModule } from './module-loader.ts'
import { requireTrusted } from './ownership.ts'
import { didYouMean } from './suggest.ts'
import { checkName, parseTerms, type Terms, termKeys } from './terms.ts'
import { describeError, shown } from './text.ts'

/** One name and the handler it means. Nothing is imported before somebody asks. */
export interface RegisteredJob {
  readonly name: string
  /** Where the handler comes from, as people know it: "./jobs/send-welcome.ts". */
  readonly source: string
  /**
   * What a dispatch captures. An entry in object form that carries terms states all of them, so that its module need not
   * be imported; what it leaves out comes from the module when the job runs.
   */
  terms(): Promise<Terms>
  /** False where the handler must not be imported for the sake of a schema: the entry has stated its terms. */
  readonly mayHaveSchema: boolean
  /** The handler once it was imported. */
  readonly ready: Handler | null
  /** False where a worker must never hold it unstarted: an executable takes its own time, and its own process. */
  readonly mayBePrefetched: boolean
  /** The handler, imported at the first call. Throws MODULE_BROKEN, at each call. */
  handler(): Promise<Handler>
  /** The same where nothing has to be imported for it; null where it must be waited for. */
  termsNow(): Terms | null
  /** The handler of a job that was given as a value or imported before; null where it must be waited for. Throws MODULE_BROKEN. */
  handlerNow(): Handler | null
}

/** What a name stands for before it is loaded. `origin` tells whether two entries mean the same. */
interface Found {
  readonly origin: unknown
  readonly source: string
  /** The terms of an entry in object form; null where it has none. */
  readonly terms: Terms | null
  readonly isExecutable?: true
  readonly load: () => Promise<unknown>
  /** The job, where it was given as a value. */
  readonly value?: unknown
}

/** What other layers bring to a registry. */
export interface RegistryParts {
  readonly makeExecutable?: MakeExecutable
}

/** What every entry is read with. */
interface Reading extends RegistryParts, Pick<Config, 'root' | 'file'> {}

/** Which handler a job name means: the only place where names and code meet. */
export class Registry {
  readonly #jobs: Map<string, Registration>
  readonly #names = new Map<unknown, string>()
  readonly #root: string
  #closures = 0

  private constructor(jobs: Map<string, Registration>, root: string) {
    this.#jobs = jobs
    this.#root = root
    for (const [name, { origin }] of jobs) if (!this.#names.has(origin)) this.#names.set(origin, name)
  }

  /** `read`, rejecting where that throws. */
  static async open(config: Pick<Config, 'jobs' | 'root' | 'file'>, parts: RegistryParts = {}): Promise<Registry> {
    return Registry.read(config, parts)
  }

  /**
   * Reads the maps and folders of a configuration, importing nothing.
   *
   * Throws CONFIG_INVALID for an entry that is none and for a name with two handlers, CONFIG_UNSAFE for a folder of a stranger.
   */
  static read(config: Pick<Config, 'jobs' | 'root' | 'file'>, parts: RegistryParts = {}): Registry {
    const jobs = new Map<string, Registration>()
    const reading: Reading = { ...parts, root: config.root, file: config.file }
    for (const entry of config.jobs)
      for (const [name, found] of entry.kind === 'folder' ? inFolder(entry, reading) : inMap(entry, reading)) {
        const known = jobs.get(name)
        if (known !== undefined && !known.isSameAs(found)) throw twoHandlers(name, known.source, found.source)
        if (known === undefined) jobs.set(name, new Registration(name, found, config.root))
      }
    return new Registry(jobs, config.root)
  }

  /** The names, sorted. */
  names(): readonly string[] {
    return [...this.#jobs.keys()].sort()
  }

  get(name: string): RegisteredJob | undefined {
    return this.#jobs.get(name)
  }

  /** The first name of a job that was given as a value: a definition, a class, a function; undefined for others. */
  nameOf(job: unknown): string | undefined {
    return this.#names.get(job)
  }

  /** Gives a function that is nowhere in the configuration a name, for as long as the process lives; answers it. */
  adopt(closure: JobFunction): string {
    const name = `closure-${++this.#closures}`
    const found = { origin: closure, source: 'a closure', terms: null, load: async () => closure, value: closure }
    this.#jobs.set(name, new Registration(name, found, this.#root))
    this.#names.set(closure, name)
    return name
  }

  /** The error for a name that has no handler. */
  unknown(name: string): KhepriError {
    return new KhepriError('JOB_UNKNOWN', `unknown job ${shown(name)}${didYouMean(name, this.#jobs.keys())}`, {
      fix: 'khepri jobs lists the known ones; --allow-unknown dispatches it all the same',
    })
  }
}

class Registration implements RegisteredJob {
  readonly name: string
  readonly source: string
  readonly origin: unknown
  readonly #found: Found
  readonly #root: string
  #handler: Promise<Handler> | undefined
  #ready: Handler | null = null

  constructor(name: string, found: Found, root: string) {
    this.name = name
    this.source = found.source
    this.origin = found.origin
    this.#found = found
    this.#root = root
  }

  get ready(): Handler | null {
    return this.#ready
  }

  get mayHaveSchema(): boolean {
    return this.#found.terms === null
  }

  get mayBePrefetched(): boolean {
    return this.#found.isExecutable !== true
  }

  isSameAs(other: Found): boolean {
    return this.origin === other.origin && this.#found.terms === null && other.terms === null
  }

  async terms(): Promise<Terms> {
    return this.#found.terms ?? (await this.handler()).terms
  }

  termsNow(): Terms | null {
    return this.#found.terms ?? this.handlerNow()?.terms ?? null
  }

  handler(): Promise<Handler> {
    this.#handler ??= this.#load()
    return this.#handler
  }

  handlerNow(): Handler | null {
    if (this.#ready !== null || this.#found.value === undefined) return this.#ready
    try {
      return this.#make(this.#found.value)
    } catch (error) {
      throw this.#broken(error)
    }
  }

  async #load(): Promise<Handler> {
    try {
      return this.#make(await this.#found.load())
    } catch (error) {
      throw this.#broken(error)
    }
  }

  #broken(error: unknown): KhepriError {
    return isKhepriError(error) ? error : unreadable(this.source, error)
  }

  #make(job: unknown): Handler {
    const handler = handlerOf(job, this.source, this.#root)
    const { terms } = this.#found
    this.#ready = terms === null ? handler : { ...handler, terms: { ...handler.terms, ...terms } }
    return this.#ready
  }
}

const passedOver = /^[._]|\.d\.[cm]?ts$|\.test\./
const moduleName = /^(.+)\.[cm]?[jt]s$/
const executableName = /^(.+?)(?:\.[^.]*)?$/
const executeBits = 0o111

function* inFolder(
  { path, shown: folder }: JobsEntry & { readonly kind: 'folder' },
  reading: Reading,
): Iterable<[string, Found]> {
  const names = filesIn(path, folder)
  requireTrusted(path, folder)
  for (const file of names) {
    const found = passedOver.test(file) ? null : ofFile(join(path, file), file, reading)
    if (found !== null) yield [checkName(found.name, `the name of ${folder}/${file}`), found]
  }
}

/** A module by its extension, or else whatever may be executed; null for every other file. */
function ofFile(path: string, file: string, reading: Reading): (Found & { readonly name: string }) | null {
  const module = moduleName.exec(file)?.[1]
  if (module !== undefined) return isFile(path) ? { name: module, ...ofModule(path, reading.root, null) } : null
  const name = executableName.exec(file)?.[1]
  if (name === undefined || !mayBeExecuted(path)) return null
  const source = inRoot(path, reading.root)
  return { name, ...ofExecutable({ command: source, args: [], cwd: '.', env: {} }, source, {}, reading), origin: path }
}

/** The bits rather than our own rights: a name must mean the same to whoever dispatches and whoever works. */
function mayBeExecuted(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() === true && (stat.mode & executeBits) !== 0
}

function filesIn(path: string, folder: string): readonly string[] {
  try {
    return readdirSync(path).sort()
  } catch (error) {
    const isFileItself = isFile(path)
    throw invalid(
      isFileItself
        ? `jobs names ${folder}, which is a file and not a folder`
        : `the jobs folder ${folder} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      isFileItself ? `jobs: { 'its-name': '${folder}' }` : 'create it, or correct "jobs" in the configuration',
    )
  }
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

function* inMap({ entries }: JobsEntry & { readonly kind: 'map' }, reading: Reading): Iterable<[string, Found]> {
  for (const [name, value] of entries) yield [name, readEntry(value, name, reading)]
}

function readEntry(value: unknown, name: string, reading: Reading): Found {
  try {
    return ofEntry(value, name, reading)
  } catch (error) {
    throw isKhepriError(error) ? error : unreadable(`jobs.${name}`, error)
  }
}

function ofEntry(value: unknown, name: string, reading: Reading): Found {
  const { root, file } = reading
  if (typeof value === 'string' && value !== '') return ofModule(resolve(root, value), root, null)
  if (isJob(value)) {
    const source = file === null ? `the job ${shown(name)} in the configuration` : inRoot(file, root)
    return { origin: value, source, terms: isHandlerSource(value) ? value.terms : null, load: async () => value, value }
  }
  const what = `jobs.${name}`
  if (!isRecord(value))
    throw invalid(`${what} must be a path, a job or an object with a module or exec, got ${shown(value)}`)
  return isExecutable(value) ? ofCommand(value, what, reading) : ofObject(value, what, root)
}

/** Tells a module and the terms under which it runs here. */
function ofObject(value: Readonly<Record<string, unknown>>, what: string, root: string): Found {
  refuseUnknownKeys(value, ['module', ...termKeys], what)
  const { module } = value
  if (typeof module !== 'string' || module === '') throw invalid(`${what}.module must be a path, got ${shown(module)}`)
  const terms = termsOf(value, what)
  return ofModule(resolve(root, module), root, Object.keys(terms).length === 0 ? null : terms)
}

/** Its terms are complete as they stand, so that nothing is loaded to dispatch it. */
function ofCommand(value: Readonly<Record<string, unknown>>, what: string, reading: Reading): Found {
  const executable = parseExecutable(value, what)
  return { ...ofExecutable(executable, executable.command, termsOf(value, what), reading), origin: value }
}

function ofExecutable(
  executable: Executable,
  source: string,
  terms: Terms,
  { makeExecutable }: Reading,
): Omit<Found, 'origin'> {
  const load = async (): Promise<unknown> => {
    if (!makeExecutable)
      throw new KhepriError('MODULE_BROKEN', `${source} is an executable, and nothing here can run one`)
    return makeExecutable(executable)
  }
  return { source, terms, load, isExecutable: true }
}

function termsOf(value: object, what: string): Terms {
  try {
    return parseTerms(value, what)
  } catch (error) {
    throw isKhepriError(error) ? invalid(error.message) : error
  }
}

function ofModule(path: string, root: string, terms: Terms | null): Found {
  const source = inRoot(path, root)
  return { origin: path, source, terms, load: async () => jobIn(await loadModule(path, source), source) }
}

/** A path as the configuration would write it. */
function inRoot(path: string, root: string): string {
  const short = relative(root, path)
  return isAbsolute(short) || short.startsWith('..') ? short : `./${short}`
}

/** What a module exports may throw when it is looked at: a getter, a proxy. */
const unreadable = (source: string, error: unknown): KhepriError =>
  new KhepriError('MODULE_BROKEN', `${source} cannot be loaded: ${describeError(error).message}`, {
    fix: 'export default defineJob({ … })',
    cause: error,
  })

const twoHandlers = (name: string, first: string, second: string): KhepriError =>
  invalid(`job ${shown(name)} has two handlers: ${first} and ${second}`, 'rename or remove one of them')

const invalid = (message: string, fix?: string): KhepriError =>
  new KhepriError('CONFIG_INVALID', message, fix === undefined ? {} : { fix })
