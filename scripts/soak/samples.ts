/** What one look at a soak has seen. */
export interface Sample {
  /** Since the start, milliseconds. */
  readonly at: number
  readonly done: number
  readonly waiting: number
  /** Resident memory of each worker by its pid, bytes. */
  readonly rss: ReadonlyMap<number, number>
  readonly walBytes: number
  readonly tableBytes: number
  readonly reserveP99Ms: number
}

const mib = 1024 ** 2
const hourMs = 3_600_000

/** One line for people who watch. */
export function lineOf(sample: Sample, before: Sample | undefined): string {
  const rate = before === undefined ? 0 : ((sample.done - before.done) / (sample.at - before.at)) * 1_000
  const memory = [...sample.rss.values()].map((bytes) => Math.round(bytes / mib)).join(' ')
  return [
    `${(sample.at / 60_000).toFixed(1)} min`,
    `${Math.round(rate)}/s`,
    `${sample.waiting} waiting`,
    `RSS ${memory} MiB`,
    `WAL ${(sample.walBytes / mib).toFixed(1)} MiB`,
    `tables ${(sample.tableBytes / mib).toFixed(1)} MiB`,
    `reserve p99 ${sample.reserveP99Ms.toFixed(1)} ms`,
  ].join(', ')
}

/** What a whole soak comes to. */
export function figuresOf(samples: readonly Sample[]): Readonly<Record<string, number | string>> {
  const quarter = Math.max(1, Math.floor(samples.length / 4))
  const [first, last] = [samples.slice(0, quarter), samples.slice(-quarter)]
  return {
    'RSS slope of the worst worker, MiB an hour': slopeOf(samples).toFixed(1),
    'largest RSS, MiB': (Math.max(...samples.flatMap(({ rss }) => [...rss.values()])) / mib).toFixed(0),
    'largest WAL, MiB': (Math.max(...samples.map(({ walBytes }) => walBytes)) / mib).toFixed(1),
    'tables at the start and at the end, MiB': `${sizeOf(first)} and ${sizeOf(last)}`,
    'most jobs waiting': Math.max(...samples.map(({ waiting }) => waiting)),
    'reserve p99 of the first and the last quarter, ms': `${p99Of(first).toFixed(1)} and ${p99Of(last).toFixed(1)}`,
    'reserve p99 drift': `${((p99Of(last) / p99Of(first) - 1) * 100).toFixed(0)} %`,
  }
}

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length
const p99Of = (samples: readonly Sample[]): number => mean(samples.map(({ reserveP99Ms }) => reserveP99Ms))
const sizeOf = (samples: readonly Sample[]): string =>
  (mean(samples.map(({ tableBytes }) => tableBytes)) / mib).toFixed(1)

/** Of a straight line through a worker's memory; the first quarter of its life is left out, in which it warms up. */
function slopeOf(samples: readonly Sample[]): number {
  const pids = new Set(samples.flatMap(({ rss }) => [...rss.keys()]))
  const slopes = [...pids].map((pid) => {
    const points = samples.flatMap(({ at, rss }) => (rss.has(pid) ? [[at, rss.get(pid) ?? 0] as const] : []))
    return leastSquares(points.slice(Math.floor(points.length / 4)))
  })
  return (Math.max(0, ...slopes) * hourMs) / mib
}

function leastSquares(points: readonly (readonly [number, number])[]): number {
  if (points.length < 3) return 0
  const [x, y] = [mean(points.map(([at]) => at)), mean(points.map(([, bytes]) => bytes))]
  const across = points.reduce((sum, [at, bytes]) => sum + (at - x) * (bytes - y), 0)
  return across / points.reduce((sum, [at]) => sum + (at - x) ** 2, 0)
}
