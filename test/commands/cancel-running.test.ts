import { expect, it } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'
import type { Live } from '../support/live.ts'

/** Jobs that differ in what they make of their abort signal; each has tries left, and a hook that would tell on it. */
const jobs = {
  obeys: 'await wait(600_000, undefined, { signal })',
  throws: `await new Promise((resolve) => { const timer = setInterval(() => {}, 1_000)
      signal.addEventListener('abort', () => { clearInterval(timer); resolve() }) })
    throw new Error('cleaned up')`,
  releases: 'await wait(600_000, undefined, { signal }).catch(() => context.release("1h"))',
  ignores: `while (!exists('open')) await wait(10)`,
}

const sourceOf = (body: string): string => `
  import { setTimeout as wait } from 'node:timers/promises'
  import { defineJob } from 'khepri'
  import { exists, note } from './_ledger.mjs'
  export default defineJob({
    tries: 5,
    backoff: { kind: 'none' },
    async handle(_, context) {
      const { signal } = context
      note('start', context)
      context.log('begun')
      ${body}
      note('end', context)
    },
    failed(_, context) { context.log('hook ran') },
  })`

type Store = Parameters<typeof Installation.migrated>[0]

async function installed(store: Store): Promise<Installation> {
  const installation = await Installation.migrated(store)
  for (const [name, body] of Object.entries(jobs)) installation.project.write(`jobs/${name}.mjs`, sourceOf(body))
  return installation
}

/** Stops a worker and answers all that it has said of results, and of hooks. */
async function saidBy(worker: Live): Promise<readonly string[]> {
  worker.kill('SIGTERM')
  const { code, stdout, stderr } = await worker.ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.match(/\b(DONE|RETRY|FAILED|CANCELLED|RELEASED|LOST|STUCK|HOOK) \d+|hook ran/g) ?? []
}

onBothStores('khepri cancel', (store) => {
  it.concurrent('of a ready and a scheduled job: neither ever starts, and their unique keys are free again', async () => {
    await using installation = await installed(store)
    const ready = await installation.dispatch('note', '--unique=a')
    const scheduled = await installation.dispatch('note', '--unique=b', '--delay=1h')
    expect(JSON.parse(await installation.must('cancel', `${ready}`, `${scheduled}`, '--json'))).toEqual({
      cancelled: [ready, scheduled],
      marked: [],
      missing: [],
    })
    const again = await installation.dispatch('note', '--unique=a')
    await installation.must('work', '--stop-when-empty')
    expect(installation.ledger.starts.map(({ id }) => id)).toEqual([again])
    expect(await installation.dispatch('note', '--unique=b')).toBeGreaterThan(again)
  })

  it.concurrent('of running jobs that obey, throw or ask to run later: each ends as cancelled, starts once, has no failed hook, and its key is free', async () => {
    await using installation = await installed(store)
    await using worker = await installation.worker('--concurrency=3')
    const stopping = ['obeys', 'throws', 'releases']
    const ids: number[] = []
    for (const job of stopping) ids.push(await installation.dispatch(job, `--unique=${job}`))
    await installation.ledger.untilStarted(3)
    const stdout = await installation.must('cancel', ...ids.map(String), '--wait')
    expect(stdout.split('\n').toSorted()).toEqual([
      '',
      ...ids.map((id, n) => `${id} (${stopping[n]} on default) ended as cancelled`),
      `Marked 3 jobs: ${ids.map((id, n) => `${id} (${stopping[n]} on default)`).join(', ')}`,
    ])

    const next = await installation.dispatch('note', '--unique=throws')
    await worker.until(new RegExp(`DONE ${next} `))
    expect((await saidBy(worker)).toSorted()).toEqual([...ids.map((id) => `CANCELLED ${id}`), `DONE ${next}`])
    expect(installation.ledger.starts.map(({ id }) => id)).toEqual([...ids, next])
    expect(await installation.failed()).toEqual([])
  })

  it.concurrent('of a running job that returns all the same: it is marked at once, and done in the end', async () => {
    await using installation = await installed(store)
    await using worker = await installation.worker()
    const id = await installation.dispatch('ignores')
    await installation.ledger.untilStarted(1)
    expect(await installation.run(['cancel', '--state=running'])).toMatchObject({
      code: 0,
      stdout: `Marked 1 job: ${id} (ignores on default)\n`,
      stderr: 'Its worker aborts its signal within 2 s; --wait says how it ends\n',
    })
    installation.open()
    const again = await installation.run(['cancel', `${id}`, '--wait', '--json'])
    expect(await saidBy(worker)).toEqual([`DONE ${id}`])
    expect([...installation.ledger.ended]).toEqual([id])
    // Whether it had ended by then is a matter of speed; how it ended is not.
    expect(JSON.parse(again.stdout)).toMatchObject(
      again.code === 0 ? { ended: [{ id, state: 'done' }] } : { missing: [{ id, state: null }] },
    )
  })

  it.concurrent('of a job whose worker is killed: it ends as cancelled, and does not run again', async () => {
    await using installation = await installed(store)
    // While its event loop is blocked the worker cannot hear of the cancellation.
    await using worker = await installation.worker()
    const id = await installation.dispatch('block')
    await installation.ledger.untilStarted(1)
    await using cancel = installation.start(['cancel', `${id}`, '--wait'])
    await cancel.until(/Marked 1 job/)
    worker.kill('SIGKILL')
    await worker.ended
    await using heir = await installation.worker()
    expect(await cancel.ended).toMatchObject({
      code: 0,
      stdout: `Marked 1 job: ${id} (block on default)\n${id} (block on default) ended as cancelled\n`,
    })
    installation.open()
    const next = await installation.dispatch('note')
    await heir.until(new RegExp(`DONE ${next} `))
    expect(installation.ledger.starts.map((line) => line.id)).toEqual([id, next])
    expect(await installation.failed()).toEqual([])
  })

  it.concurrent('in a race with 150 completions: each job is either done once or cancelled, as the command said', async () => {
    await using installation = await installed(store)
    const { ledger } = installation
    await installation.dispatchAll(Array.from({ length: 150 }, () => ({ job: 'nap', payload: { ms: 50 } })))
    await using worker = installation.start(['work', '--concurrency=2', '--stop-when-empty'])
    const answers: Answer[] = []
    const isOver = worker.ended.then(() => true)
    while (!(await Promise.race([isOver, false]))) answers.push(await cancelAhead(installation))
    expect(await worker.ended).toMatchObject({ code: 0, stderr: '' })

    const endings = answers.flatMap((answer) => answer.ended)
    const cancelled = [...answers.flatMap((answer) => answer.cancelled), ...idsOf(endings, 'cancelled')]
    const done = ledger.ends.map(({ id }) => id)
    expect(cancelled.length).toBeGreaterThan(0)
    expect([...done, ...cancelled].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 150 }, (_, n) => n + 1))
    expect(done).toEqual(expect.arrayContaining([...idsOf(endings, 'done')]))
    const missing = answers.flatMap((answer) => answer.missing)
    expect(done).toEqual(expect.arrayContaining([...idsOf(missing, null)]))
    expect(cancelled).toEqual(expect.arrayContaining([...idsOf(missing, 'cancelled')]))
    expect(await installation.failed()).toEqual([])
  })
})

interface Found {
  readonly id: number
  readonly state: string | null
}

interface Answer {
  readonly cancelled: readonly number[]
  readonly missing: readonly Found[]
  readonly ended: readonly Found[]
}

const idsOf = (found: readonly Found[], wanted: string | null): readonly number[] =>
  found.filter(({ state }) => state === wanted).map(({ id }) => id)

/** Cancels the newest job that has started, and every second one of those that come next. */
async function cancelAhead(installation: Installation): Promise<Answer> {
  const newest = Math.max(1, ...installation.ledger.starts.map(({ id }) => id))
  const ids = Array.from({ length: 20 }, (_, n) => newest + 2 * n).filter((id) => id <= 150)
  const { stdout } = await installation.run(['cancel', ...ids.map(String), '--wait', '--json'])
  return JSON.parse(stdout) as Answer
}
