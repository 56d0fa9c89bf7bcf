import type { NewJob } from './peer.ts'

/** Jobs of one measure, described so that another process can make them. */
export interface JobList {
  readonly count: number
  /** The payload's size, about. */
  readonly bytes: number
  readonly kind: 'noop' | 'wait'
  readonly waitMs: number
  /** Of a hundred jobs so many fail once, and so many for good. */
  readonly failOnce: number
  readonly failForGood: number
  /** Runs of a job that does not fail by plan. */
  readonly tries: 1 | 2
  readonly delayMs: number
  readonly urgent: boolean
}

/** No-op jobs of 100 bytes that are ready at once. */
export const plain: JobList = {
  count: 0,
  bytes: 100,
  kind: 'noop',
  waitMs: 0,
  failOnce: 0,
  failForGood: 0,
  tries: 1,
  delayMs: 0,
  urgent: false,
}

/** Of an empty payload, as JSON. */
const emptyBytes = 70

/** Makes the job of a number. */
export function jobOf(list: JobList, n: number): NewJob {
  const isHopeless = n % 100 < list.failForGood
  const failsOnce = !isHopeless && n % 100 < list.failForGood + list.failOnce
  return {
    payload: {
      n,
      kind: list.kind,
      ms: list.waitMs,
      failures: isHopeless ? Number.MAX_SAFE_INTEGER : failsOnce ? 1 : 0,
      at: 0,
      fill: 'x'.repeat(Math.max(0, list.bytes - emptyBytes)),
    },
    tries: failsOnce ? 2 : list.tries,
    delayMs: list.delayMs,
    urgent: list.urgent,
  }
}

/** Makes the jobs of a list, `size` at a time. */
export function* batchesOf(list: JobList, size: number): Generator<readonly NewJob[]> {
  for (let from = 0; from < list.count; from += size)
    yield Array.from({ length: Math.min(size, list.count - from) }, (_, index) => jobOf(list, from + index))
}
