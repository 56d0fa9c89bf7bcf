import type { KhepriError } from '../core/errors.ts'
import { version } from '../core/package.ts'
import { oneLine } from '../core/text.ts'
import { asTyped, type Calling } from './own-words.ts'
import type { Stdout } from './stdout.ts'
import { type ColorChoice, type Paint, paintFor, type Style, wantsColor } from './style.ts'
import { alignedLine, type Column, lookAhead, terminalLayout, widthsOf } from './table.ts'
import { age, isoTime } from './time.ts'

/** How the user wants to read. */
export interface OutputOptions {
  readonly json: boolean
  readonly plain: boolean
  readonly color: ColorChoice
  readonly quiet: boolean
  readonly verbose: boolean
  readonly timezone: string | undefined
  /** How the commands that errors and prose recommend are written. */
  readonly calling: Calling
}

/** terminal: columns, ages, colour, cut; pipe: columns, ISO times; plain: TABs; json: one document. */
export type Mode = 'terminal' | 'pipe' | 'plain' | 'json'

/** A listing: its columns for people, and its records for programs. */
export interface Listing<Row> {
  readonly columns: readonly Column<Row>[]
  readonly record: (row: Row) => unknown
}

/** Results are collected into pieces of this many characters before they are written. */
const pieceLength = 65_536

/** Cleans a text of several lines: nothing foreign that a terminal would obey is left in it but line ends and TABs. */
const printable = (text: string): string => text.replaceAll(/[^\n\t]+/g, oneLine)

/** Where a command's results, prose and errors go, and how they look. Only khepri's own escape codes leave through it. */
export class Output {
  readonly options: OutputOptions
  readonly mode: Mode
  /** Colours for stdout. */
  readonly paint: Paint
  readonly stdout: Stdout
  readonly #stderr: NodeJS.WriteStream
  readonly #errorPaint: Paint

  constructor(options: OutputOptions, stdout: Stdout, stderr: NodeJS.WriteStream = process.stderr) {
    this.options = options
    this.stdout = stdout
    this.#stderr = stderr
    this.mode = options.json ? 'json' : options.plain ? 'plain' : stdout.isTerminal ? 'terminal' : 'pipe'
    const structured = options.json || options.plain
    this.paint = paintFor(!structured && wantsColor(options.color, { isTerminal: stdout.isTerminal, env: process.env }))
    this.#errorPaint = paintFor(
      !options.json && wantsColor(options.color, { isTerminal: stderr.isTTY === true, env: process.env }),
    )
  }

  /** Prints a result, cleaned, on a line of its own. */
  async print(text: string, style?: Style): Promise<void> {
    const clean = printable(text)
    await this.stdout.write(`${style === undefined ? clean : this.paint(style, clean)}\n`)
  }

  /** Prints one JSON document. */
  async document(value: unknown): Promise<void> {
    await this.stdout.write(`${jsonText(value)}\n`)
  }

  /** Writes prose on stderr, cleaned; nothing with --quiet. */
  say(text: string, style?: Style): void {
    if (!this.options.quiet) this.#complain(printable(asTyped(text, this.options.calling)), style)
  }

  /** Prints a list as it comes in, however long; the result is how many records there were. */
  async list<Row>(rows: AsyncIterable<Row> | Iterable<Row>, { columns, record }: Listing<Row>): Promise<number> {
    if (this.mode === 'json') return this.#stream(jsonList(rows, record))
    const cells = cellsOf(rows, columns)
    if (this.mode === 'plain') return this.#stream(mapped(cells, (each) => `${each.join('\t')}\n`))
    return this.#stream(
      this.#aligned(
        cells,
        columns.map(({ title }) => title),
      ),
    )
  }

  /** A moment as this reader wants it: an age at a terminal, ISO 8601 elsewhere. */
  time(at: number): string {
    return this.mode === 'terminal' ? age(at, Date.now()) : isoTime(at, this.options.timezone)
  }

  /** A moment in full, whoever reads. */
  moment(at: number): string {
    return isoTime(at, this.options.timezone)
  }

  /** Reports an error on stderr: text with its fix, or one line of JSON. */
  report(error: KhepriError, exit: number): void {
    const { code, message } = error
    const fix = error.fix === undefined ? undefined : asTyped(error.fix, this.options.calling)
    if (this.options.json)
      return void this.#stderr.write(`${jsonText({ error: { code, message, fix: fix ?? null, exit } })}\n`)
    const paint = this.#errorPaint
    this.#stderr.write(`${paint('red', 'error:')} ${printable(message)}\n`)
    if (fix !== undefined) this.#stderr.write(`  ${paint('bold', 'fix:')} ${printable(fix)}\n`)
    if (this.options.verbose) this.#complain(printable(stackOf(error)), 'dim')
  }

  #complain(text: string, style: Style | undefined): void {
    this.#stderr.write(`${style === undefined ? text : this.#errorPaint(style, text)}\n`)
  }

  /** Writes texts in pieces; each text that is not empty counts as one record. */
  async #stream(texts: AsyncIterable<string>): Promise<number> {
    let piece = ''
    let count = 0
    for await (const text of texts) {
      count += 1
      piece += text
      if (piece.length < pieceLength) continue
      await this.stdout.write(piece)
      piece = ''
    }
    if (this.mode === 'json') piece += count === 0 ? '[]\n' : ']\n'
    if (piece !== '') await this.stdout.write(piece)
    return count
  }

  /** The first rows decide how wide the columns are; what comes after them is held one row at a time. */
  async *#aligned(cells: AsyncIterable<readonly string[]>, titles: readonly string[]): AsyncIterable<string> {
    let line: Line | null = null
    const first: (readonly string[])[] = []
    for await (const each of cells) {
      if (line !== null) yield `${line(each)}\n`
      else if (first.push(each) === lookAhead) {
        line = await this.#lineFor(widthsOf([titles, ...first]))
        yield* this.#headed(first.splice(0), titles, line)
      }
    }
    if (first.length > 0) yield* this.#headed(first, titles, await this.#lineFor(widthsOf([titles, ...first])))
  }

  /** Lines with the header over the first of them: a text each, as each is one record. */
  *#headed(rows: readonly (readonly string[])[], titles: readonly string[], line: Line): Iterable<string> {
    for (const [index, cells] of rows.entries()) {
      const header = index === 0 ? `${this.paint('dim', line(titles))}\n` : ''
      yield `${header}${line(cells)}\n`
    }
  }

  async #lineFor(widths: readonly number[]): Promise<Line> {
    if (this.mode === 'pipe') return (cells) => alignedLine(cells, widths)
    const layout = await terminalLayout(widths, this.stdout.width)
    return (cells) => layout([cells])[0] ?? ''
  }
}

type Line = (cells: readonly string[]) => string

/** Writes JSON in which nothing is left that a terminal could obey. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[\x7f-\x9f]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`)
}

/** Where an error was thrown, for --verbose: its own stack and those of its causes. */
function stackOf(error: unknown): string {
  const stacks: string[] = []
  for (let each = error; each instanceof Error && stacks.length < 10; each = each.cause)
    stacks.push(each.stack ?? String(each))
  return `${stacks.join('\ncaused by: ')}\nkhepri ${version()}, Node ${process.versions.node}, ${process.platform} ${process.arch}`
}

async function* jsonList<Row>(
  rows: AsyncIterable<Row> | Iterable<Row>,
  record: (row: Row) => unknown,
): AsyncIterable<string> {
  let before = '['
  for await (const row of rows) {
    yield `${before}${jsonText(record(row))}`
    before = ',\n'
  }
}

async function* cellsOf<Row>(
  rows: AsyncIterable<Row> | Iterable<Row>,
  columns: readonly Column<Row>[],
): AsyncIterable<readonly string[]> {
  for await (const row of rows) yield columns.map(({ value }) => oneLine(value(row)))
}

async function* mapped<A, B>(items: AsyncIterable<A>, change: (item: A) => B): AsyncIterable<B> {
  for await (const item of items) yield change(item)
}
