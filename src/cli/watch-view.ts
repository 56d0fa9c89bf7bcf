import { formatDuration } from '../core/duration.ts'
import { oneLine } from '../core/text.ts'
import { oldestWaitMs } from './limits.ts'
import type { Snapshot } from './snapshots.ts'
import type { Paint } from './style.ts'
import { alignedLine, widthsOf } from './table.ts'
import { age } from './time.ts'
import { livingFirst, workersText } from './worker-list.ts'

/** What the person at the screen has chosen. */
export interface View {
  /** The selected row among those that are shown. */
  readonly at: number
  /** Only what has this text in the name of its queue or job; '' for everything. */
  readonly filter: string
  /** True while the filter is being typed. */
  readonly isTyping: boolean
  /** What the last key has done; '' for nothing. */
  readonly note: string
}

/** Something on the screen that a key can act upon. */
export type Target =
  | { readonly kind: 'queue'; readonly queue: string; readonly paused: boolean }
  | { readonly kind: 'running'; readonly id: number }
  | { readonly kind: 'failed'; readonly id: number; readonly fence: number }

/** One row of a table, and what it stands for. */
interface Row {
  readonly target: Target
  readonly cells: readonly string[]
}

/** Waiting jobs of each queue, the newest last. */
export type Trends = ReadonlyMap<string, readonly number[]>

export interface Frame {
  readonly label: string
  readonly snapshot: Snapshot
  readonly trends: Trends
  readonly view: View
  readonly width: number
  readonly height: number
  readonly paint: Paint
}

const mostRows = 10
const keys = '↑↓ select   r retry   c cancel   p pause or resume   / filter   q quit'

/** What can be selected, from the first row of the screen to the last. */
export function targetsOf(snapshot: Snapshot, filter: string): readonly Target[] {
  return tablesOf(snapshot, filter, new Map()).flatMap(({ rows }) => rows.map(({ target }) => target))
}

/** The lines of the screen, none longer than it is wide, and no more than it is high. */
export function frameLines({ label, snapshot, trends, view, width, height, paint }: Frame): readonly string[] {
  const tables = tablesOf(snapshot, view.filter, trends)
  let index = 0
  const body = tables.flatMap(({ titles, rows }) => {
    if (rows.length === 0) return []
    const widths = widthsOf([titles, ...rows.map(({ cells }) => cells)])
    const lines = rows.map(({ cells }) => {
      const line = cut(alignedLine(cells, widths), width)
      return index++ === view.at ? paint('inverse', line) : line
    })
    return ['', paint('dim', cut(alignedLine(titles, widths), width)), ...lines]
  })
  const head = cut(`khepri  ${label}  workers ${workersText(livingFirst(snapshot.workers), snapshot.at)}`, width)
  const filter = view.isTyping || view.filter !== '' ? `filter: ${view.filter}${view.isTyping ? '_' : ''}   ` : ''
  const foot = [
    paint('dim', cut(`${filter}${keys}`, width)),
    ...(view.note === '' ? [] : [cut(oneLine(view.note), width)]),
  ]
  return [paint('bold', head), ...body.slice(0, Math.max(0, height - foot.length - 2)), '', ...foot]
}

interface Table {
  readonly titles: readonly string[]
  readonly rows: readonly Row[]
}

function tablesOf({ at, queues, running, failures }: Snapshot, filter: string, trends: Trends): readonly Table[] {
  const has = (...names: readonly string[]): boolean => names.some((name) => name.includes(filter))
  return [
    {
      titles: ['Queue', 'Ready', 'Running', 'Scheduled', 'Failed', 'Oldest wait', 'Waiting'],
      rows: queues
        .filter(({ queue }) => has(queue))
        .map((counts) => ({
          target: { kind: 'queue', queue: counts.queue, paused: counts.paused },
          cells: [
            `${oneLine(counts.queue)}${counts.paused ? ' (paused)' : ''}`,
            ...[counts.ready, counts.running, counts.scheduled, counts.failed].map(String),
            durationText(oldestWaitMs(counts, at)),
            sparkline(trends.get(counts.queue) ?? []),
          ],
        })),
    },
    {
      titles: ['Running', 'Job', 'Queue', 'For', 'Worker'],
      rows: running
        .filter(({ job, queue }) => has(job, queue))
        .slice(0, mostRows)
        .map(({ id, job, queue, runningMs, holder }) => ({
          target: { kind: 'running', id },
          cells: [
            String(id),
            oneLine(job),
            oneLine(queue),
            formatDuration(runningMs),
            oneLine(holder.name ?? 'unknown'),
          ],
        })),
    },
    {
      titles: ['Failed', 'Job', 'Queue', 'When', 'Error'],
      rows: failures
        .filter(({ job, queue }) => has(job, queue))
        .slice(0, mostRows)
        .map(({ id, fence, job, queue, failedAt, error }) => ({
          target: { kind: 'failed', id, fence },
          cells: [String(id), oneLine(job), oneLine(queue), age(failedAt, at), oneLine(error)],
        })),
    },
  ]
}

const durationText = (ms: number | null): string => (ms === null ? '-' : formatDuration(ms))

const bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const

/** Numbers as bars, the largest of them the highest. */
export function sparkline(numbers: readonly number[]): string {
  const most = Math.max(1, ...numbers)
  return numbers.map((number) => bars[Math.round((number / most) * (bars.length - 1))]).join('')
}

const cut = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, width - 1)}…`)
