import type { FlagInput } from '@oclif/core/interfaces'
import type { Khepri } from '../app.ts'
import type { JobState } from '../core/store/admin.ts'
import { globalFlags } from './base-command.ts'
import { commandTable, loadCommand, secondWords } from './command-table.ts'
import { commandGroups } from './words-given.ts'

/** One thing that may stand where the cursor is. */
export interface Candidate {
  readonly word: string
  readonly about: string
}

/** What is asked of the installation, which the words on the line may name. */
export type LoadApp = (flags: { readonly config?: string; readonly database?: string }) => Promise<Khepri>

/** Where candidates come from. */
export interface Sources {
  readonly load: LoadApp
  /** False where the shell shows words only: summaries of commands cost time. */
  readonly isDescribed: boolean
}

/** What can be looked up for a word. */
type Kind = 'commands' | 'shells' | 'queues' | 'names' | 'schedules' | 'ids' | 'live' | 'failed'

const argumentKinds: Readonly<Record<string, Kind>> = {
  help: 'commands',
  completion: 'shells',
  run: 'names',
  show: 'ids',
  cancel: 'live',
  failed: 'failed',
  retry: 'failed',
  flush: 'failed',
  pause: 'queues',
  resume: 'queues',
  'schedule test': 'schedules',
  'schedule trigger': 'schedules',
  'schedule pause': 'schedules',
  'schedule resume': 'schedules',
  'schedule simulate': 'schedules',
}

const flagKinds: Readonly<Record<string, Kind>> = {
  queue: 'queues',
  job: 'names',
  'except-job': 'names',
  id: 'ids',
  after: 'ids',
}

/** So many jobs are looked at, the newest first: never a scan. */
const mostJobs = 100

/** The shells that `khepri completion` knows. */
export const shells = ['bash', 'zsh', 'fish'] as const

type Flag = FlagInput[string]

/** A command line as far as the cursor. */
interface Line {
  readonly command: string | undefined
  readonly flags: FlagInput
  /** Whole words before the cursor, the command's own name left out. */
  readonly before: readonly string[]
  /** What has been typed of the word at the cursor. */
  readonly current: string
}

/**
 * What could stand at the cursor. Candidates are whole words: of `--queue=high,ma` they are `--queue=high,mail`.
 *
 * words: those behind "khepri", the last one being typed, perhaps empty.
 */
export async function candidates(
  words: readonly string[],
  { load, isDescribed }: Sources,
): Promise<readonly Candidate[]> {
  const line = await lineOf(words)
  const opened: Khepri[] = []
  const open = async (): Promise<Khepri> => {
    const app = await load(installationIn(words))
    opened.push(app)
    return app
  }
  const found = await candidatesOf(line, { isDescribed, load: open })
  for (const app of opened) await app.close()
  return found.filter(({ word }) => word.startsWith(line.current) && !line.before.includes(word))
}

async function lineOf(words: readonly string[]): Promise<Line> {
  const before = words.slice(0, -1)
  const command = commandIn(before)
  const Command = command === undefined ? null : await loadCommand(command)
  return {
    command,
    flags: { ...Command?.flags, ...globalFlags },
    before: before.filter((word) => !(command ?? '').split(' ').includes(word)),
    current: words.at(-1) ?? '',
  }
}

/** The first word that is neither a flag nor a global flag's value; with the next such one where a command has two. */
function commandIn(words: readonly string[]): string | undefined {
  const [first, second] = words.filter((word, index) => {
    const flag = flagNamed(words[index - 1] ?? '', globalFlags)
    return !word.startsWith('-') && (flag === null || flag.flag.type === 'boolean')
  })
  return commandGroups.has(first ?? '') && second !== undefined ? `${first} ${second}` : first
}

/** The sources, once the words on the line have said which installation is meant. */
interface Known extends Pick<Sources, 'isDescribed'> {
  readonly load: () => Promise<Khepri>
}

async function candidatesOf(line: Line, known: Known): Promise<readonly Candidate[]> {
  const { command, flags, before, current } = line
  const [, name, typed] = /^(--[^=]+)=(.*)$/s.exec(current) ?? []
  const flag = flagNamed(name ?? before.at(-1) ?? '', flags)
  if (flag !== null && flag.flag.type !== 'boolean' && (name !== undefined || !(before.at(-1) ?? '').includes('=')))
    return valuesOf(flag, { prefix: name === undefined ? '' : `${name}=`, typed: typed ?? current, known })
  if (current.startsWith('-')) return flagWords(flags)
  if (command === undefined) return lookUp('commands', known)
  if (commandGroups.has(command)) return commandWords(known.isDescribed, command)
  const kind = argumentKinds[command]
  return kind === undefined ? [] : lookUp(kind, known)
}

function flagNamed(word: string, flags: FlagInput): { readonly name: string; readonly flag: Flag } | null {
  const found = Object.entries(flags).find(([name, { char }]) => word === `--${name}` || word === `-${char}`)
  return found === undefined ? null : { name: found[0], flag: found[1] }
}

/** The values of a flag; of a list of names its last one. */
async function valuesOf(
  { name, flag }: { readonly name: string; readonly flag: Flag },
  { prefix, typed, known }: { readonly prefix: string; readonly typed: string; readonly known: Known },
): Promise<readonly Candidate[]> {
  const choices = 'options' in flag ? (flag.options ?? []) : []
  const kind = flagKinds[name]
  const values = kind === undefined ? choices.map((word) => ({ word, about: '' })) : await lookUp(kind, known)
  const list = typed.slice(0, typed.lastIndexOf(',') + 1)
  return values.map(({ word, about }) => ({ word: `${prefix}${list}${word}`, about }))
}

function flagWords(flags: FlagInput): readonly Candidate[] {
  return Object.entries(flags).flatMap(([name, { hidden, summary }]) =>
    hidden ? [] : [{ word: `--${name}`, about: summary ?? '' }],
  )
}

async function lookUp(kind: Kind, { load, isDescribed }: Known): Promise<readonly Candidate[]> {
  switch (kind) {
    case 'commands':
      return commandWords(isDescribed)
    case 'schedules':
      return (await (await load()).schedules()).map(({ name }) => ({ word: name, about: 'schedule' }))
    case 'shells':
      return shells.map((word) => ({ word, about: '' }))
    case 'names':
      return (await (await load()).registry()).names().map((word) => ({ word, about: 'job' }))
    case 'queues':
      return queueWords(await load())
    default:
      return idWords(await load(), kind)
  }
}

/** First words; or the second ones of a command that has two. */
async function commandWords(isDescribed: boolean, group?: string): Promise<readonly Candidate[]> {
  const words = group === undefined ? [...commandTable.keys()].filter(isOneWord) : secondWords(group)
  const described = words.map(async (word) => {
    const name = group === undefined ? word : `${group} ${word}`
    return { word, about: isDescribed ? ((await loadCommand(name))?.summary ?? '') : '' }
  })
  const groups = [...commandGroups].map((word) => ({ word, about: `${secondWords(word).join(', ')}` }))
  const firsts = [...groups, { word: 'help', about: 'Show what a command takes' }]
  return [...(await Promise.all(described)), ...(group === undefined ? firsts : [])]
}

const isOneWord = (name: string): boolean => !name.includes(' ')

/** The queues that the configuration, a pause, a worker or one of the newest jobs names. No module is imported for it. */
async function queueWords(app: Khepri): Promise<readonly Candidate[]> {
  const { queue, queues } = app.config
  const names = new Set([queue, ...(queues ?? []).map(({ name }) => name)])
  for (const name of await storedQueues(app)) names.add(name)
  return [...names].map((word) => ({ word, about: 'queue' }))
}

/** Without a database what the configuration says is still worth something. */
async function storedQueues(app: Khepri): Promise<readonly string[]> {
  try {
    const admin = await app.admin()
    const [pauses, workers] = [await admin.pauses(), await admin.workers()]
    const names = [...pauses.map((pause) => pause.queue), ...workers.flatMap((worker) => worker.queues.split(','))]
    for await (const { queue } of admin.jobs({}, mostJobs)) names.push(queue)
    return names.filter((name) => name !== '*')
  } catch {
    return []
  }
}

const wanted: Readonly<Record<'ids' | 'live' | 'failed', (state: JobState) => boolean>> = {
  ids: () => true,
  live: (state) => state === 'scheduled' || state === 'ready' || state === 'running',
  failed: (state) => state === 'failed',
}

async function idWords(app: Khepri, kind: 'ids' | 'live' | 'failed'): Promise<readonly Candidate[]> {
  const admin = await app.admin()
  const found: Candidate[] = []
  for await (const { id, job, queue, state } of admin.jobs(kind === 'failed' ? { state: 'failed' } : {}, mostJobs))
    if (wanted[kind](state)) found.push({ word: String(id), about: `${job} on ${queue}, ${state}` })
  return found
}

/** The installation that the line itself names. */
function installationIn(words: readonly string[]): { readonly config?: string; readonly database?: string } {
  const config = valueIn(words, ['-C', '--config'])
  const database = valueIn(words, ['--database'])
  return { ...(config !== undefined && { config }), ...(database !== undefined && { database }) }
}

function valueIn(words: readonly string[], names: readonly string[]): string | undefined {
  for (const [index, word] of words.slice(0, -1).entries()) {
    if (names.includes(word) && index < words.length - 2) return words[index + 1]
    const [, name = '', value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? []
    if (names.includes(name)) return value
  }
  return undefined
}
