import { formatDuration } from '../core/duration.ts'
import type { BusyJob, PausedQueue, QueueCounts, WorkerRow } from '../core/store/admin.ts'
import type { MigrationStatus } from '../core/store/migrations.ts'
import { type Field, printFields } from './fields.ts'
import { type Excess, oldestWaitMs } from './limits.ts'
import type { Output } from './output.ts'
import type { Column } from './table.ts'
import { livingFirst, workerRecord, workersText } from './worker-list.ts'

/** How an installation is at one moment. */
export interface Status {
  /** Epoch milliseconds. */
  readonly at: number
  /** As messages name it. */
  readonly database: string
  /** null: the store has no schema. */
  readonly schema: MigrationStatus | null
  readonly queues: readonly QueueCounts[]
  readonly pauses: readonly PausedQueue[]
  readonly workers: readonly WorkerRow[]
  /** The jobs that have run for long, the longest first. */
  readonly busy: readonly BusyJob[]
}

/** Prints a status for people, one record a line for scripts, or as one document. over: the limits that do not hold. */
export async function printStatus(output: Output, status: Status, over: readonly Excess[] | null): Promise<void> {
  if (output.mode === 'json') return output.document(documentOf(output, status, over))
  if (output.mode === 'plain') return printRecords(output, status)
  await printFields(output, fieldsOf(status))
  await printTable(output, status.queues, queueColumns(output, status))
  await printTable(output, status.busy, busyColumns)
}

function fieldsOf({ at, database, schema, workers }: Status): readonly Field[] {
  return [
    ['database', database],
    ...(schema === null ? [] : [['migrations', schemaText(schema)] as const]),
    ['workers', workersText(livingFirst(workers), at)],
  ]
}

/** The newest of our own migrations, and those of a newer khepri that lets this one go on. */
function schemaText({ applied, newer }: MigrationStatus): string {
  const last = applied.at(-1) ?? 'none'
  return newer.length === 0 ? last : `${last}, and of a newer khepri ${newer.join(', ')}`
}

/** A blank line sets a table off from what stands above it. */
async function printTable<Row>(output: Output, rows: readonly Row[], columns: readonly Column<Row>[]): Promise<void> {
  if (rows.length === 0) return
  await output.print('')
  await output.list(rows, { columns, record: (row) => row })
}

const queueColumns = (output: Output, { at, pauses }: Status): readonly Column<QueueCounts>[] => [
  { title: 'Queue', value: ({ queue }) => queue },
  { title: 'Ready', value: ({ ready }) => String(ready) },
  { title: 'Running', value: ({ running }) => String(running) },
  { title: 'Scheduled', value: ({ scheduled }) => String(scheduled) },
  { title: 'Failed', value: ({ failed }) => String(failed) },
  { title: 'Oldest wait', value: (queue) => waitText(oldestWaitMs(queue, at)) },
  { title: 'Paused', value: ({ queue, paused }) => (paused ? pausedText(output, pauseOf(queue, pauses)) : '-') },
]

const pauseOf = (queue: string, pauses: readonly PausedQueue[]): PausedQueue | undefined =>
  pauses.find((pause) => pause.queue === queue)

/** "paused until 2026-11-30T14:10:00.000Z: deploy" */
function pausedText(output: Output, pause: PausedQueue | undefined): string {
  const { until = null, reason = null } = pause ?? {}
  return `paused${until === null ? '' : ` until ${output.moment(until)}`}${reason === null ? '' : `: ${reason}`}`
}

const waitText = (ms: number | null): string => (ms === null ? '-' : formatDuration(ms))

const busyColumns: readonly Column<BusyJob>[] = [
  { title: 'Busy', value: ({ id }) => String(id) },
  { title: 'Job', value: ({ job }) => job },
  { title: 'Queue', value: ({ queue }) => queue },
  { title: 'For', value: ({ runningMs }) => formatDuration(runningMs) },
  { title: 'Worker', value: ({ holder }) => holder.name ?? 'unknown' },
]

/** One record a line, its kind first. */
async function printRecords(output: Output, status: Status): Promise<void> {
  await printKind(output, fieldsOf(status), [
    { title: '', value: ([name]) => name },
    { title: '', value: ([, value]) => value },
  ])
  await printKind(output, status.queues, [{ title: '', value: () => 'queue' }, ...queueColumns(output, status)])
  await printKind(output, status.busy, [{ title: '', value: () => 'busy' }, ...busyColumns])
}

async function printKind<Row>(output: Output, rows: readonly Row[], columns: readonly Column<Row>[]): Promise<void> {
  await output.list(rows, { columns, record: (row) => row })
}

function documentOf(output: Output, status: Status, over: readonly Excess[] | null): object {
  const { database, schema, workers, busy } = status
  return {
    database,
    schema: schema?.applied.at(-1) ?? null,
    queues: status.queues.map((counts) => queueRecord(output, counts, status)),
    workers: livingFirst(workers).map((worker) => workerRecord(output, worker, busy)),
    busy: busy.map(({ holder, runningMs, ...facts }) => ({ ...facts, ms: runningMs, worker: holder.name })),
    ...(over !== null && { over }),
  }
}

function queueRecord(output: Output, counts: QueueCounts, { at, pauses }: Status): object {
  const { queue, ready, running, scheduled, failed, paused } = counts
  const pause = pauseOf(queue, pauses)
  return {
    ...{ queue, ready, running, scheduled, failed, oldestWaitMs: oldestWaitMs(counts, at), paused },
    ...(pause && {
      pausedAt: output.moment(pause.pausedAt),
      pausedUntil: pause.until === null ? null : output.moment(pause.until),
      pauseReason: pause.reason,
    }),
  }
}
