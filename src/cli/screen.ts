import type { Clock, Timer } from '../core/clock.ts'
import { formatDuration } from '../core/duration.ts'
import type { Shown } from './lines.ts'
import type { Paint } from './style.ts'

export interface ScreenOptions {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly columns: () => number
  readonly paint: Paint
  /** The time of day of an epoch millisecond, "14:02:11". */
  readonly timeOf: (at: number) => string
  /** What stands below the lines; asked for each second and after each line. '' for nothing. */
  readonly footer: () => string
  /** Columns begin this wide and grow with what they hold. */
  readonly widths: { readonly queue: number }
  readonly clock: Clock
}

type JobShown = Shown & { readonly kind: 'job' }

/** So many lines a second a person can still follow; above it DONE lines of one job fold into one a second. */
const mostPerSecond = 50
const secondMs = 1_000
const tryWidth = 24
const msWidth = 6
/** What every line keeps room for behind the duration. */
const longestVerb = 'RETRY in 10s'.length

/** Where a line about a job begins. */
interface Start {
  readonly time: string
  readonly columns: string
}

/** How an attempt, or several that are folded, ended. */
interface Ending extends Pick<JobShown, 'verb' | 'level' | 'words'> {
  readonly ms: number
  readonly label: string
}

interface Fold {
  readonly first: JobShown
  count: number
  totalMs: number
}

/** A worker's lines at a terminal: aligned, coloured, folded when they are many, above a footer redrawn in place. */
export class Screen {
  readonly #options: ScreenOptions
  readonly #widths: { id: number; job: number; queue: number }
  readonly #folds = new Map<string, Fold>()
  #tick: Timer | null = null
  #flushing = false
  #pending: { readonly stream: 'out' | 'err'; readonly text: string }[] = []
  #footer = ''
  #thisSecond = 0
  #lastSecond = 0
  #closed = false

  constructor(options: ScreenOptions) {
    this.#options = options
    this.#widths = { id: 7, job: 12, queue: options.widths.queue }
    this.#arm()
  }

  /** Shows one event that happened at `at`, epoch milliseconds. */
  show(shown: Shown, at: number): void {
    if (shown.kind === 'job') this.#showJob(shown, at)
    else this.#say(shown)
  }

  /** What was folded comes before a sentence that may sum it up. */
  #say({ stream, text }: Shown & { readonly kind: 'sentence' }): void {
    this.#unfold()
    this.#write(stream, text)
  }

  #showJob(shown: JobShown, at: number): void {
    this.#thisSecond++
    if (shown.verb === 'DONE' && this.#isBusy) this.#fold(shown)
    else this.#write('out', this.#line(shown, at))
  }

  /** Writes what waits and takes the footer away: somebody else is about to write to the terminal. */
  makeRoom(): void {
    this.#clear()
    const pending = this.#pending
    this.#pending = []
    for (const [stream, text] of joined(pending)) this.#options[stream](text)
  }

  /** Writes what waits, and leaves the terminal without a footer. */
  close(): void {
    this.#closed = true
    this.#tick?.cancel()
    this.#unfold()
    this.#flush()
  }

  #clear(): void {
    if (this.#footer !== '') this.#options.out('\r\u001b[K')
    this.#footer = ''
  }

  get #isBusy(): boolean {
    return this.#thisSecond > mostPerSecond || this.#lastSecond > mostPerSecond
  }

  #fold(shown: JobShown): void {
    const key = JSON.stringify([shown.facts.job, shown.facts.queue])
    const fold = this.#folds.get(key) ?? { first: shown, count: 0, totalMs: 0 }
    fold.count++
    fold.totalMs += shown.ms ?? 0
    this.#folds.set(key, fold)
  }

  #unfold(): void {
    const at = this.#options.clock.now()
    for (const fold of this.#folds.values())
      this.#write('out', fold.count === 1 ? this.#line(fold.first, at) : this.#foldedLine(fold, at))
    this.#folds.clear()
  }

  #arm(): void {
    this.#tick = this.#options.clock.after(secondMs, () => {
      this.#lastSecond = this.#thisSecond
      this.#thisSecond = 0
      this.#unfold()
      this.#flush()
      this.#arm()
    })
  }

  #write(stream: 'out' | 'err', text: string): void {
    this.#pending.push({ stream, text })
    if (this.#flushing) return
    // Lines of one turn of the event loop become one write.
    this.#flushing = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#flushing = false
    this.makeRoom()
    this.#footer = this.#closed ? '' : cut(this.#options.footer(), this.#options.columns() - 1)
    if (this.#footer !== '') this.#options.out(this.#options.paint('dim', this.#footer))
  }

  #line(shown: JobShown, at: number): string {
    const { facts, ms, words } = shown
    const start = this.#start(at, String(facts.id), facts)
    if (ms === null) return this.#fitted(start, words.join('  '))
    return this.#attempt(start, { ...shown, ms, label: `try ${facts.attempt}/${facts.tries} ` })
  }

  #foldedLine({ first, count, totalMs }: Fold, at: number): string {
    const start = this.#start(at, `×${count.toLocaleString('en-US')}`, first.facts)
    return this.#attempt(start, { ...first, ms: totalMs / count, label: 'on average ', words: [] })
  }

  /** Time and columns, which every line about a job begins with. */
  #start(at: number, id: string, facts: JobShown['facts']): Start {
    const columns = [this.#column('id', id), this.#column('job', facts.job), this.#column('queue', facts.queue)]
    return { time: this.#options.timeOf(at), columns: columns.join('  ') }
  }

  /** What became of an attempt. A narrow terminal costs the dots first, then a second line; never the verb or the error. */
  #attempt(start: Start, { ms, label, verb, level, words }: Ending): string {
    const { paint, columns } = this.#options
    const width = columns()
    const duration = formatDuration(ms).padStart(msWidth)
    const taken = start.time.length + start.columns.length + duration.length + longestVerb + 7
    const dots = '.'.repeat(Math.max(0, Math.min(tryWidth, width - taken) - label.length))
    const left = `${start.time}  ${start.columns}  `
    const end = `${label}${dots} ${duration}  ${verb}`
    const painted = `${label}${paint('dim', dots)} ${duration}  ${paint(colours[level], verb)}`
    const indent = ' '.repeat(start.time.length + 2)
    const fits = left.length + end.length <= width
    const head = fits ? `${paint('dim', start.time)}  ${start.columns}  ` : `${this.#fitted(start, '')}\n${indent}`
    return `${head}${painted}${tailOf(verb, words, { room: width - (fits ? left : indent).length - end.length, width, indent })}`
  }

  /** A line that is cut where it is too long. */
  #fitted({ time, columns }: Start, rest: string): string {
    const text = rest === '' ? columns.trimEnd() : `${columns}  ${rest}`
    return `${this.#options.paint('dim', time)}  ${cut(text, this.#options.columns() - time.length - 2)}`
  }

  /** A column never narrows, so that lines stay aligned with those above them. */
  #column(name: 'id' | 'job' | 'queue', text: string): string {
    this.#widths[name] = Math.max(this.#widths[name], text.length)
    return text.padEnd(this.#widths[name])
  }
}

const colours = { info: 'green', warn: 'yellow', error: 'red' } as const

/** What follows the verb: on its line as far as it fits whole, the rest indented on a line of its own. */
function tailOf(
  verb: string,
  words: readonly string[],
  { room, width, indent }: { readonly room: number; readonly width: number; readonly indent: string },
): string {
  let tail = ''
  for (const [index, text] of words.entries()) {
    const part = `${verb === 'RETRY' && index === 0 ? ' ' : '  '}${text}`
    if (tail.length + part.length > room)
      return `${tail}\n${indent}${cut(words.slice(index).join('  '), width - indent.length)}`
    tail += part
  }
  return tail
}

/** Neighbouring lines of one stream as one text. */
function* joined(
  lines: readonly { readonly stream: 'out' | 'err'; readonly text: string }[],
): Generator<readonly ['out' | 'err', string]> {
  for (let index = 0; index < lines.length; ) {
    const stream = (lines[index] as (typeof lines)[number]).stream
    const start = index
    while (lines[index]?.stream === stream) index++
    yield [
      stream,
      lines
        .slice(start, index)
        .map(({ text }) => `${text}\n`)
        .join(''),
    ]
  }
}

/** A text in so many columns, its loss marked. */
function cut(text: string, columns: number): string {
  if (text.length <= columns) return text
  return columns <= 0 ? '' : `${text.slice(0, columns - 1)}…`
}
