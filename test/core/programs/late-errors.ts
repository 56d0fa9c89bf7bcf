/**
 * A program whose jobs throw outside of their own calls: it leads the errors of its process to its worker, as the command
 * line does, and prints what became of each as one line of JSON.
 */
import { beatInLoop, unwatched } from '../../../src/core/beat.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { encodeEnvelope } from '../../../src/core/envelope.ts'
import { EventBus } from '../../../src/core/events.ts'
import { Registry } from '../../../src/core/registry.ts'
import { openMemoryStore } from '../../../src/core/store/memory/store.ts'
import { Worker } from '../../../src/core/worker.ts'

type Call = (payload: unknown, context: { readonly signal: AbortSignal }) => unknown

const untilAborted: Call = (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve))

const jobs: Readonly<Record<string, Call>> = {
  timer: (...call) => {
    setTimeout(() => {
      throw new Error('from a timer')
    }, 1)
    return untilAborted(...call)
  },
  promise: (...call) => {
    void Promise.reject(new Error('from a promise'))
    return untilAborted(...call)
  },
  deep: async (...call) => {
    await new Promise((resolve) => setImmediate(resolve))
    process.nextTick(() => {
      void (async () => {
        throw new Error('from deep inside')
      })()
    })
    return untilAborted(...call)
  },
  late: () => {
    setTimeout(() => {
      throw new Error('after its job was done')
    }, 20)
  },
  bystander: () => new Promise((resolve) => setTimeout(resolve, 60)),
}

const { store } = openMemoryStore({ clock: systemClock })
const events = new EventBus()
const terms = { tries: 1, backoff: null, timeoutMs: null, maxCrashes: 3, unique: null, context: null, trace: null }
const rows = Object.keys(jobs).map((job) => {
  const envelope = encodeEnvelope({ ...terms, job, payloadText: '{}', dispatchedAt: Date.now() })
  return { job, queue: 'default', priority: 0, due: { delayMs: 0 }, uniqueKey: null, version: 1, envelope }
})
await store.enqueue(rows)

const worker = await Worker.start(
  {
    ...{
      queues: 'all',
      queueLimits: new Map(),
      concurrency: rows.length,
      sleepMs: 1_000,
      restMs: 0,
      once: false,
      stopWhenEmpty: false,
    },
    ...{
      maxJobs: rows.length,
      maxTimeMs: null,
      drainTimeoutMs: null,
      timeoutMs: null,
      tries: 1,
      backoff: { kind: 'none' },
    },
    ...{ retryAfterMs: 90_000, unknownJobs: 'fail', keepDoneMs: null, name: 'alpha', only: null, except: [] },
    maxPayloadBytes: 1024 * 1024,
    endsWhenBlocked: false,
  },
  {
    store,
    events,
    registry: await Registry.open({ jobs: [{ kind: 'map', entries: Object.entries(jobs) }], root: '/', file: null }),
    clock: systemClock,
    random: Math.random,
    startBeat: beatInLoop,
    watch: unwatched,
    fateOf: () => 'unknown',
    profile: { version: '0', host: 'here', bootId: null, pidNamespace: null, pid: process.pid, pidStart: null },
  },
)

const told: Record<string, string> = {}
events.on('job.failed', ({ job, error }) => {
  told[job] = `failed: ${error.message}`
})
events.on('job.done', ({ job }) => {
  told[job] = 'done'
})
events.on('error.late', ({ job, error }) => {
  told[`${job}, late`] = error.message
})
const judge = (error: unknown): void => {
  if (!worker.attribute(error)) told[`of nobody`] = (error as Error).message
}
process.on('uncaughtException', judge)
process.on('unhandledRejection', judge)
setTimeout(() => {
  throw new Error('from the program itself')
}, 5)

await worker.finished
console.log(JSON.stringify(told))
