import { oneLine } from './text.ts'

/** A place in a text as editors count it, both 1-based. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** Where an offset lies in a text. */
export function positionOf(text: string, offset: number): Position {
  let line = 1
  let lineStart = 0
  for (let end = text.indexOf('\n'); end >= 0 && end < offset; end = text.indexOf('\n', lineStart)) {
    line++
    lineStart = end + 1
  }
  return { line, column: offset - lineStart + 1 }
}

/** A place to point at. */
export interface Pointed {
  /** The file as the user named it. */
  readonly source: string
  readonly text: string
  readonly offset: number
  readonly message: string
  /** Where the text begins in its source; line 1, column 1 where it is the whole of it. */
  readonly origin?: Position
}

const widestLine = 100

/** Says what is wrong where, shows the line, and points at the place; a long line is cut around it. */
export function caret({ source, text, offset, message, origin = { line: 1, column: 1 } }: Pointed): string {
  const inside = positionOf(text, offset)
  const { line, column } = within(origin, inside)
  const lineStart = offset - inside.column + 1
  const lineEnd = text.indexOf('\n', lineStart)
  const shown = window(text.slice(lineStart, lineEnd < 0 ? text.length : lineEnd), inside.column - 1)
  const gutter = ' '.repeat(String(line).length)
  return [
    `${oneLine(source)}:${line}:${column}: ${message}`,
    `  ${line} | ${shown.line}`.trimEnd(),
    `  ${gutter} | ${' '.repeat(shown.at)}^`,
  ].join('\n')
}

/** A position inside a text that itself begins somewhere in a source. */
export function within(origin: Position, inside: Position): Position {
  return {
    line: origin.line + inside.line - 1,
    column: inside.line === 1 ? origin.column + inside.column - 1 : inside.column,
  }
}

function window(line: string, at: number): { readonly line: string; readonly at: number } {
  const start = line.length <= widestLine ? 0 : Math.max(0, at - widestLine / 2)
  const end = start + widestLine
  const before = (start > 0 ? '…' : '') + printable(line.slice(start, at))
  const after = printable(line.slice(at, end)) + (line.length > end ? '…' : '')
  return { line: before + after, at: before.length }
}

/** One character for each, so that the caret stays under its place. */
const printable = (text: string): string => text.toWellFormed().replace(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/gu, ' ')
