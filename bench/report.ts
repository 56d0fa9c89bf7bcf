import type { Line } from './results.ts'

/** Gives the tables as text: one for each figure of each measure on each store. */
export function tablesOf(lines: readonly Line[]): string {
  const groups = Map.groupBy(lines, ({ store, measure, figure }) => `${store} ${measure} ${figure.name}`)
  return [...groups.values()].map(tableOf).join('\n')
}

const head = ['', 'median', 'min', 'max', 'to best peer', 'to limit']

function tableOf(lines: readonly Line[]): string {
  const [first] = lines
  if (!first) return ''
  const { title, store, figure } = first
  const rows = [head, ...lines.map(cellsOf)]
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const text = rows.map((row) =>
    row
      .map((cell, column) => pad(cell, widths[column] ?? 0, column))
      .join('  ')
      .trimEnd(),
  )
  const name = first.figure.name === 'rate' ? '' : ` · ${figure.name}`
  return [`${title} · ${store}${name} (${figure.unit}, ${figure.better} is better)`, ...text, ''].join('\n')
}

function pad(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}

function cellsOf(line: Line): readonly string[] {
  const [error] = line.errors
  const isLost = Number.isNaN(line.median)
  if (isLost) return [line.contestant, 'failed:', brief(error ?? ''), '', '', '']
  const ratios = [line.toPeer, line.toLimit].map((ratio) => (Number.isNaN(ratio) ? '' : number(ratio)))
  return [line.contestant, number(line.median), number(line.min), number(line.max), ...ratios]
}

function brief(error: string): string {
  return (error.split('\n')[0] ?? '').slice(0, 60)
}

/** Writes a number with three digits that count. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'never' : '-'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}
