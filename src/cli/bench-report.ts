import { type BenchResult, batchSize, pickUps, type Rate } from './bench.ts'
import type { Output } from './output.ts'
import { count } from './words.ts'

/** What was measured, and what it was measured on. */
export interface BenchReport extends BenchResult {
  readonly concurrency: number
  /** Of the database and of this process, by name. */
  readonly settings: Readonly<Record<string, string>>
}

/** Lists the figures, then the settings that they depend on, one a line; as JSON, one document. */
export async function printBench(output: Output, report: BenchReport): Promise<void> {
  if (output.mode === 'json') return output.document(recordOf(report))
  await output.list(linesOf(report), {
    columns: [
      { title: 'What', value: ([what]) => what },
      { title: 'Figure', value: ([, figure]) => figure },
      { title: 'How', value: ([, , how]) => how },
    ],
    record: (line) => line,
  })
}

type Line = readonly [what: string, figure: string, how: string]

function linesOf({ single, batched, work, pickUp, concurrency, settings }: BenchReport): readonly Line[] {
  const from = `${count(pickUp.jobs, 'job')}, one every ${pickUps.everyMs} ms`
  return [
    rateLine('dispatch', single, 'one by one, each committed'),
    rateLine('dispatch in batches', batched, `up to ${count(batchSize, 'job')} a transaction`),
    rateLine('work', work, `concurrency ${concurrency}, handlers that return at once`),
    ['pick-up p50', milliseconds(pickUp.p50), from],
    ['pick-up p95', milliseconds(pickUp.p95), from],
    ['pick-up p99', milliseconds(pickUp.p99), from],
    ...Object.entries(settings).map(([name, value]): Line => [name, value, '']),
  ]
}

const rateLine = (what: string, rate: Rate, how: string): Line => [
  what,
  `${perSecond(rate).toLocaleString('en-US')}/s`,
  `${count(rate.jobs, 'job')}, ${how}`,
]

/** One job alone has no rate. */
const perSecond = ({ jobs, ms }: Rate): number => Math.round((jobs / Math.max(ms, 1)) * 1_000)

const rounded = (ms: number): number => Math.round(ms * 10) / 10
const milliseconds = (ms: number): string => `${rounded(ms).toFixed(1)} ms`

function recordOf({ single, batched, work, pickUp, concurrency, settings }: BenchReport): object {
  const record = (rate: Rate): object => ({ perSecond: perSecond(rate), jobs: rate.jobs, ms: Math.round(rate.ms) })
  return {
    dispatch: record(single),
    dispatchInBatches: { ...record(batched), batch: batchSize },
    work: { ...record(work), concurrency },
    pickUp: { p50Ms: rounded(pickUp.p50), p95Ms: rounded(pickUp.p95), p99Ms: rounded(pickUp.p99), jobs: pickUp.jobs },
    settings,
  }
}
