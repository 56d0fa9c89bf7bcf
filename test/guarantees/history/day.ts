import type { History } from './history.ts'
import { Stage, type Tampering, type Wanted } from './stage.ts'

const spread = ['low', 'default', 'high'] as const

/**
 * A day in the life of an installation, in virtual time: whatever the promises speak of happens in it at least once.
 *
 * Nothing is random, so that a fault of the store is the only thing that can make two days differ.
 */
export async function playDay(tampering: Tampering = {}): Promise<History> {
  const stage = new Stage(tampering)
  await openInOrder(stage)
  await failAndRelease(stage)
  await outliveTheLease(stage)
  await killAndStop(stage)
  await interrupt(stage)
  await crashAgainAndAgain(stage)
  await tidyUp(stage)
  return stage.end()
}

/** A hundred and twenty jobs wait in three queues, at two priorities, before the first worker starts. */
async function openInOrder(stage: Stage): Promise<void> {
  const job = (n: number): Wanted => ({
    key: `o${n}`,
    queue: spread[n % 3] as string,
    priority: (n % 2) - 1,
    plan: { ms: 50 },
  })
  await stage.dispatch(Array.from({ length: 120 }, (_, n) => job(n)))
  await stage.work()
  await stage.pass(7_000)
}

async function failAndRelease(stage: Stage): Promise<void> {
  await stage.work()
  const now = stage.clock.now()
  await stage.dispatch([
    { key: 'mends', tries: 3, backoffMs: 300, plan: { fail: 2 } },
    { key: 'fails', tries: 2, plan: { fail: 9 } },
    { key: 'fails-at-once', queue: 'low', plan: { fail: 9 } },
    { key: 'not-ready', tries: 2, plan: { fail: 1, notBefore: now + 500 } },
    { key: 'later', delayMs: 1_000 },
  ])
  await stage.dispatch([{ key: 'half-1' }, { key: 'half-2' }, { key: 'half-3' }], { killed: true })
  await stage.pass(4_000)
}

/** Both workers live, and one job takes three leases. */
async function outliveTheLease(stage: Stage): Promise<void> {
  await stage.dispatch([{ key: 'long', plan: { ms: 6_000 } }])
  await stage.pass(7_000)
}

/** One worker is killed and another one stands still for longer than its lease, each with a job in hand. */
async function killAndStop(stage: Stage): Promise<void> {
  await stage.dispatch([
    { key: 'busy-1', plan: { ms: 900 } },
    { key: 'busy-2', plan: { ms: 900 } },
  ])
  await stage.pass(100)
  await stage.dispatch([{ key: 'orphan', plan: { ms: 800 } }])
  const victim = await stage.work()
  await stage.pass(100)
  victim.kill()
  await stage.pass(6_000)

  await stage.work()
  for (const key of ['frozen-1', 'frozen-2', 'frozen-3']) await freezeWhoeverRuns(stage, key)
}

/** Its handler returns as soon as it goes on, while another worker runs the job: a late result that meets a newer fence. */
async function freezeWhoeverRuns(stage: Stage, key: string): Promise<void> {
  await stage.dispatch([{ key, plan: { ms: 100 } }])
  await stage.until(() => stage.startsOf(key).length === 1)
  const frozen = stage.workers.find(({ name }) => name === stage.startsOf(key)[0]?.worker)
  frozen?.stop()
  await stage.until(() => stage.startsOf(key).length === 2)
  frozen?.continue()
  await stage.pass(1_750)
}

/** A drain that loses its patience gives its job back. */
async function interrupt(stage: Stage): Promise<void> {
  await stage.dispatch(['i1', 'i2', 'i3'].map((key) => ({ key, tries: 2, plan: { ms: 1_500 } })))
  const impatient = await stage.work()
  await stage.pass(300)
  for (const worker of stage.workers.filter(({ isOver }) => !isOver)) {
    worker.term()
    await stage.pass(100)
    if (worker === impatient || worker === stage.workers[0]) worker.term()
  }
  await stage.work()
  await stage.pass(6_000)
}

/** A job takes its worker down whenever it runs, until it is given up. */
async function crashAgainAndAgain(stage: Stage): Promise<void> {
  await stage.dispatch([{ key: 'killer', plan: { ms: 10, crash: 99 } }])
  for (let day = 0; day < 8; day++) {
    if (stage.workers.every(({ isOver }) => isOver)) await stage.work()
    await stage.pass(4_000)
  }
}

/** A client looks at what has failed, puts one job back and deletes another one. */
async function tidyUp(stage: Stage): Promise<void> {
  await stage.listFailed()
  await stage.retry(stage.idOf('fails'))
  await stage.flush(stage.idOf('fails-at-once'))
  await stage.pass(3_000)
}
