import type { Khepri } from '../app.ts'
import type { Admin } from '../core/store/admin.ts'
import { checkQueue } from '../core/terms.ts'
import { Args, asUsage } from './flags.ts'

/** Queue names as arguments: `QUEUE...`; the value is undefined where none is given. */
export const queuesArgument = Args.custom<string>({
  description: 'queue names',
  multiple: true,
  ignoreStdin: true,
  parse: async (input) => asUsage(() => checkQueue(input, 'a queue')),
})

/** Every queue that anybody has named: one with jobs, served by a worker, paused, or in the configuration; sorted. */
export async function knownQueues({ config }: Khepri, admin: Admin): Promise<readonly string[]> {
  const [counts, workers] = await Promise.all([admin.counts(), admin.workers()])
  const names = [
    config.queue,
    ...(config.queues ?? []).map(({ name }) => name),
    ...counts.map(({ queue }) => queue),
    ...workers.flatMap(({ queues }) => (queues === '*' ? [] : queues.split(','))),
  ]
  return [...new Set(names)].sort()
}
