import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { number } from './report.ts'
import type { Line } from './results.ts'

/** Draws the rates of a run as an SVG: `npm run bench:chart -- [RESULTS.json [CHART.svg]]`. */

const [from = join(import.meta.dirname, 'results.json'), to = join(import.meta.dirname, '../docs/benchmarks.svg')] =
  process.argv.slice(2)

const width = 860
const labelWidth = 190
const valueWidth = 70
const rowHeight = 20
const titleHeight = 34
const barWidth = width - labelWidth - valueWidth
const colours = { khepri: '#2f6f4f', peer: '#9aa5b1', limit: '#d9c27a' } as const

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** One measure on one store: a title, and a bar for each contestant, as long as its share of the longest. */
function groupOf(lines: readonly Line[], top: number): string {
  const [first] = lines
  const longest = Math.max(...lines.map((line) => line.median))
  const title = `<text x="0" y="${top + 22}" class="title">${escaped(`${first?.title} · ${first?.store} · ${first?.figure.unit}`)}</text>`
  const bars = lines.map((line, index) => barOf(line, top + titleHeight + index * rowHeight, longest))
  return [title, ...bars].join('\n')
}

function barOf(line: Line, y: number, longest: number): string {
  const length = Math.max(1, (line.median / longest) * barWidth)
  return [
    `<text x="${labelWidth - 8}" y="${y + 14}" text-anchor="end">${escaped(line.contestant)}</text>`,
    `<rect x="${labelWidth}" y="${y + 3}" width="${length.toFixed(1)}" height="${rowHeight - 6}" fill="${colours[line.role]}"/>`,
    `<text x="${(labelWidth + length + 6).toFixed(1)}" y="${y + 14}">${number(line.median)}</text>`,
  ].join('')
}

function chartOf(lines: readonly Line[]): string {
  const rates = lines.filter(({ figure, median }) => figure.name === 'rate' && Number.isFinite(median))
  const groups = [...Map.groupBy(rates, ({ store, measure }) => `${store} ${measure}`).values()]
  let height = 0
  const parts = groups.map((group) => {
    const part = groupOf(group, height)
    height += titleHeight + group.length * rowHeight
    return part
  })
  const style = 'text{font:12px sans-serif;fill:#333}.title{font-weight:bold}'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + 8}" width="${width}">
<title>Jobs a second in one run of the benchmark</title><style>${style}</style><rect width="100%" height="100%" fill="#fff"/>
${parts.join('\n')}
</svg>
`
}

// Of a failed round JSON has null where there was no number.
const revived = (_: string, value: unknown): unknown => (value === null ? Number.NaN : value)
const { lines } = JSON.parse(readFileSync(from, 'utf8'), revived) as { readonly lines: readonly Line[] }
writeFileSync(to, chartOf(lines))
console.log(to)
