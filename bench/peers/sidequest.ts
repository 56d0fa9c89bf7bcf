import { fileURLToPath } from 'node:url'
import { Sidequest } from 'sidequest'
import type { Client, Peer, Place } from '../peer.ts'
import { BenchJob } from './sidequest-jobs.ts'

/** Its fastest documented form: jobs run in the process itself, looked for as often as it allows. */
const configOf = (place: Place, concurrency: number) => ({
  backend: { driver: '@sidequest/sqlite-backend' as const, config: place.database },
  queues: [{ name: 'default', concurrency }],
  maxConcurrentJobs: concurrency,
  logger: { level: 'error' as const },
  fork: false,
  runner: 'inline' as const,
  gracefulShutdown: false,
  jobPollingInterval: 10,
  manualJobResolution: true,
  jobsFilePath: fileURLToPath(new URL('sidequest-jobs.js', import.meta.url)),
})

export const peer: Peer = {
  async prepare(place) {
    await Sidequest.configure(configOf(place, 10))
    await Sidequest.stop()
  },

  async open(place): Promise<Client> {
    await Sidequest.configure(configOf(place, 10))
    return {
      addOne: async ({ payload, tries, delayMs }) => {
        const builder = Sidequest.build(BenchJob).maxAttempts(tries)
        if (delayMs > 0) builder.availableAt(new Date(Date.now() + delayMs))
        await builder.enqueue(payload)
      },
      addMany: null,
      async left() {
        const { waiting, claimed, running } = await Sidequest.job.count()
        return waiting + claimed + running
      },
      close: () => Sidequest.stop(),
    }
  },

  async drain(place, concurrency, handle) {
    BenchJob.handle = handle
    await Sidequest.start({ ...configOf(place, concurrency ?? 10), dashboard: { enabled: false } })
    return { stop: () => Sidequest.stop() }
  },
}
