/** One column of a listing; values are cleaned before they are shown. */
export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string
}

const gap = '  '

/** Rows looked at before the first line is written: their widths are the columns' widths. */
export const lookAhead = 1_000

/** At a terminal no column but the last is wider than this. */
const widestColumn = 40

/** However narrow the terminal is, the last column has so many, and every other one so many. */
const leastLast = 8
const leastOther = 4

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu

/** Columns a text takes at a terminal; exact enough to choose a column's width. */
export const widthOf = (text: string): number => [...text].length + (text.match(wide)?.length ?? 0)

/** The widths that hold every cell. */
export function widthsOf(lines: readonly (readonly string[])[]): readonly number[] {
  const widths: number[] = []
  for (const cells of lines)
    for (const [index, cell] of cells.entries()) widths[index] = Math.max(widths[index] ?? 0, widthOf(cell))
  return widths
}

/** Lays out one record for a pipe: aligned while it fits, never cut. */
export function alignedLine(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells
    .slice(0, -1)
    .map((cell, index) => cell + ' '.repeat(Math.max(0, (widths[index] ?? 0) - widthOf(cell))))
  return [...padded, cells.at(-1) ?? ''].join(gap).trimEnd()
}

/** Lays out records for a terminal: every line fits its width, the last column takes what is left. */
export type Layout = (lines: readonly (readonly string[])[]) => readonly string[]

/** Makes the layout of a terminal that is `width` columns wide. */
export async function terminalLayout(widths: readonly number[], width: number): Promise<Layout> {
  const { default: Table } = await import('cli-table3')
  const colWidths = fitted(widths, width).map((each) => each + gap.length)
  return (lines) => {
    const table = new Table({
      chars: noBorders,
      colWidths,
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': gap.length },
    })
    for (const cells of lines) table.push([...cells])
    return lines.length === 0
      ? []
      : table
          .toString()
          .split('\n')
          .map((line) => line.trimEnd())
  }
}

function fitted(widths: readonly number[], width: number): number[] {
  const most = Math.max(4, Math.min(widestColumn, Math.floor(width / 3)))
  const last = widths.at(-1) ?? 0
  const wished = widths.slice(0, -1).map((each) => Math.min(each, most))
  const gaps = wished.length * gap.length
  const fixed = narrowed(wished, width - gaps - Math.min(last, leastLast))
  const left = width - gaps - sumOf(fixed)
  return [...fixed, Math.max(Math.min(last, leastLast), Math.min(last, left))]
}

/** Takes from the widest columns what is too much, as long as any of them can spare it. */
function narrowed(widths: readonly number[], room: number): readonly number[] {
  const fitting = [...widths]
  while (sumOf(fitting) > room) {
    const widest = Math.max(...fitting)
    if (widest <= leastOther) break
    fitting[fitting.indexOf(widest)] = widest - 1
  }
  return fitting
}

const sumOf = (widths: readonly number[]): number => widths.reduce((sum, each) => sum + each, 0)

const noBorders = Object.fromEntries(
  [
    'top',
    'top-mid',
    'top-left',
    'top-right',
    'bottom',
    'bottom-mid',
    'bottom-left',
    'bottom-right',
    'left',
    'left-mid',
    'mid',
    'mid-mid',
    'right',
    'right-mid',
    'middle',
  ].map((part) => [part, '']),
)
