/** The promises that a history can break, with what each says. The numbers are those of the design. */
export const promises = {
  durable: '1: a dispatch that exits 0 is committed, and one that does not has written everything or nothing',
  ended: '2: every dispatched job ends done, failed or flushed',
  overlap: '3: two workers never hold one job at the same time',
  fenced: '4: only the holder of the newest reservation changes a job',
  needless: '5: a second start only after a failure, a release, a lost worker or an explicit retry',
  recovered: '6: the jobs of a dead worker start elsewhere in time',
  bounded: '7: attempts never exceed tries, deaths never maxCrashes by more than 2',
  terms: '8: tries, backoff and delay are what was asked for at dispatch',
  kept: '9: what has failed is listed with its exact payload and its errors, and goes back by retry alone',
  graceful: '10: SIGTERM reserves nothing new, finishes what runs, and exits 0',
  ordered: '11: queues in the order given, then priority, then dispatch order',
  quiet: '12: no error reaches the user that a safe retry would have cured',
  sound: 'the history itself is whole: without that nothing can be concluded',
} as const

export type PromiseName = keyof typeof promises

/** What broke, and where to look. */
export interface Violation {
  readonly promise: PromiseName
  readonly what: string
}
