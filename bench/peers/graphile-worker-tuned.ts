import { graphileWorker } from './graphile-worker.ts'

/** As its page on performance advises for many fast jobs: a local queue, and settlements in batches. */
export const peer = graphileWorker({
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
})
