import type { Held, Store } from '../../../src/core/store/store.ts'
import { createKhepri } from '../../../src/index.ts'
import { aWish } from '../../../src/testing/conformance/builders.ts'
import type { Site } from './site.ts'

/** How to come from a migrated database to each state that an operation starts from. */
const states: Readonly<Record<string, (site: Site) => Promise<unknown>>> = {
  migrated: async () => {},
  'one done': (site) => dispatch(site, 'done'),
  'one retry': (site) => dispatch(site, 'retry', '--tries=2', '--backoff=0s'),
  'one fail': (site) => dispatch(site, 'fail'),
  'one release': (site) => dispatch(site, 'release'),
  'three failed': async (site) => {
    for (const k of [1, 2, 3]) await dispatch(site, 'fail', `--payload={"k":${k}}`, `--unique=key-${k}`)
    await site.must('work', '--stop-when-empty')
  },
  'dead workers': async (site) => {
    for (const k of [1, 2, 3, 4]) await dispatch(site, 'done', `--payload={"k":${k}}`)
    await dieWithJobs(site)
  },
}

function dispatch(site: Site, job: string, ...flags: readonly string[]): Promise<string> {
  const payload = flags.some((flag) => flag.startsWith('--payload')) ? [] : ['--payload={"k":1}']
  return site.must('dispatch', `--job=${job}`, ...payload, ...flags)
}

/** Makes every state once; sites of the same store share what is kept. */
export async function makeStates(site: Site): Promise<void> {
  await site.begin(null)
  await site.must('migrate')
  await site.keep(nameOf('migrated'))
  for (const [state, make] of Object.entries(states)) {
    if (state === 'migrated') continue
    await site.begin(nameOf('migrated'))
    await make(site)
    await site.keep(nameOf(state))
  }
}

/** The name under which a state is kept. */
export const nameOf = (state: string): string => `state_${state.replaceAll(' ', '_')}`

/** Three workers on another machine take jobs and are never heard of again; the third one was draining. */
async function dieWithJobs(site: Site): Promise<void> {
  const khepri = createKhepri({ database: site.database })
  try {
    const store = await khepri.store()
    await join(store, 11)
    await take(store, 11, { limit: 1, started: 1 })
    await join(store, 12)
    await take(store, 12, { limit: 2, started: 1 })
    await join(store, 13)
    await take(store, 13, { limit: 1, started: 1 })
    await store.beat({ kind: 'draining', worker: 13 })
  } finally {
    await khepri.close()
  }
}

function join(store: Store, worker: number): Promise<unknown> {
  const profile = {
    name: `elsewhere-${worker}`,
    version: '0.1.0',
    host: 'elsewhere',
    bootId: null,
    pidNamespace: null,
    pid: worker,
    pidStart: null,
    queues: 'default',
    concurrency: 2,
    leaseMs: 2_000,
  }
  return store.beat({ kind: 'joining', worker, profile })
}

async function take(
  store: Store,
  worker: number,
  { limit, started }: { readonly limit: number; readonly started: number },
): Promise<readonly Held[]> {
  const { reserved } = await store.exchange({
    worker,
    settle: [],
    enqueue: [],
    start: [],
    disown: [],
    reserve: aWish({ queues: 'all', suspects: true, limit, started, maxBytes: 1_000_000 }),
  })
  return reserved
}
