import { isKhepriError } from '../core/errors.ts'
import { type CadenceInput, parseCadence } from './cadence.ts'

/** A line of a crontab that can become a schedule. */
export interface CrontabEntry {
  /** Counted from 1. */
  readonly line: number
  readonly cron: string
  /** What CRON_TZ or, without it, TZ says above it; null when neither does: cron then means the zone of its machine. */
  readonly zone: string | null
  /** For `/bin/sh -c`, or the SHELL of its environment. */
  readonly command: string
  /** What the command reads from its standard input: what follows the first `%`. */
  readonly stdin: string | null
  /** The settings above it. */
  readonly environment: Readonly<Record<string, string>>
  /** The comment directly above it. */
  readonly description: string | null
}

/** A line of a crontab that cannot become a schedule. */
export interface RefusedLine {
  readonly line: number
  readonly text: string
  readonly reason: string
}

/** A crontab as it was read; entries and refused lines in the order of the file. */
export interface Crontab {
  readonly entries: readonly CrontabEntry[]
  readonly refused: readonly RefusedLine[]
}

/** What the lines above a line say about it. */
interface Above {
  readonly environment: ReadonlyMap<string, string>
  readonly comment: readonly string[]
}

const setting = /^(?:"([^"=]+)"|'([^'=]+)'|([A-Za-z_]\w*))\s*=\s*(.*)$/
const entry = /^(@\S+|(?:\S+\s+){4}\S+)\s+(.+)$/
/** The last line of the header that Debian puts into every new crontab. */
const columnHeads = /^m\s+h\s+dom\b/

/**
 * Reads the crontab of a user, as `crontab -l` prints it, the way cron reads it. Lines that it cannot take are refused
 * with a reason; nothing throws.
 */
export function parseCrontab(text: string): Crontab {
  const entries: CrontabEntry[] = []
  const refused: RefusedLine[] = []
  let above: Above = { environment: new Map(), comment: [] }
  for (const [index, raw] of text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .entries()) {
    const line = raw.trim()
    const next = followed(above, line)
    if (next !== null) {
      above = next
      continue
    }
    const taken = readEntry(line, index + 1, above)
    if ('reason' in taken) refused.push(taken)
    else entries.push(taken)
    above = { ...above, comment: [] }
  }
  return { entries, refused }
}

/** What stands above the next line, after one that is no entry; null for one that must be an entry. */
function followed({ environment, comment }: Above, line: string): Above | null {
  if (line.startsWith('#')) return { environment, comment: commentAfter(comment, line.replace(/^#+/, '').trim()) }
  if (line === '') return { environment, comment: [] }
  const [, doubly, singly, bare, value = ''] = setting.exec(line) ?? []
  const name = doubly ?? singly ?? bare
  return name === undefined ? null : { environment: new Map([...environment, [name, unquoted(value)]]), comment: [] }
}

/** An empty comment ends the one above it; an entry that was commented out describes nothing. */
function commentAfter(comment: readonly string[], text: string): readonly string[] {
  if (text === '' || columnHeads.test(text) || isEntry(text)) return []
  return [...comment, text]
}

function isEntry(text: string): boolean {
  const [, cron] = entry.exec(text) ?? []
  return cron !== undefined && faultOf({ cron }) === null
}

const unquoted = (value: string): string => /^(["'])(.*)\1$/.exec(value)?.[2] ?? value

function readEntry(text: string, line: number, { environment, comment }: Above): CrontabEntry | RefusedLine {
  const [, cron, rest] = entry.exec(text) ?? []
  if (cron === undefined || rest === undefined)
    return { line, text, reason: 'this is no entry: it needs five fields, or a nickname such as @daily, and a command' }
  // An empty setting takes the one above it back.
  const zone = environment.get('CRON_TZ') || environment.get('TZ') || null
  const fault = faultOf({ cron, zone: zone ?? undefined })
  if (fault !== null) return { line, text, reason: fault }
  const description = comment.length === 0 ? null : comment.join(' ')
  return { line, cron, zone, ...commandOf(rest), environment: forCommand(environment), description }
}

function faultOf(cadence: CadenceInput): string | null {
  try {
    parseCadence(cadence)
    return null
  } catch (error) {
    if (!isKhepriError(error)) throw error
    return error.fix === undefined ? error.message : `${error.message}; ${error.fix}`
  }
}

/** CRON_TZ is for cron alone; all else is handed to the command. */
const forCommand = (environment: ReadonlyMap<string, string>): Readonly<Record<string, string>> =>
  Object.fromEntries([...environment].filter(([name]) => name !== 'CRON_TZ'))

/** A `%` ends the command; the next ones end lines of its standard input. `\%` is the sign itself. */
function commandOf(text: string): Pick<CrontabEntry, 'command' | 'stdin'> {
  const [command = '', ...lines] = text.split(bareSign).map((part) => part.replace(/\\./g, unescaped))
  const input = lines.join('\n')
  return { command: command.trim(), stdin: lines.length === 0 ? null : input.replace(/(?<=[^\n])$/, '\n') }
}

/** A `%` behind no backslash, or behind backslashes that escape each other. */
const bareSign = /(?<=(?<!\\)(?:\\\\)*)%/

const unescaped = (pair: string): string => (pair === '\\%' ? '%' : pair)
