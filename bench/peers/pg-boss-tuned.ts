import { pgBoss } from './pg-boss.ts'

/** Batches fetched without a pause while they come full, several at once, and woken by NOTIFY. */
export const peer = pgBoss({
  notify: true,
  work: { batchSize: 500, localConcurrency: 2, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
})
