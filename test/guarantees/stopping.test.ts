import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'
import type { Live } from '../support/live.ts'

/** Many processes in a row, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

/** The second stop signal counts from a second after the first; what comes earlier is a doubled one. */
const laterMs = 1_100

const waitsForOne = 'stopping: waiting for 1 job (Ctrl-C again to abandon them)\n'

/** An installation with a worker in whose hands one job runs, while a second one waits. */
async function busy(store: 'sqlite' | 'postgres', ...flags: readonly string[]) {
  const installation = await Installation.migrated(store)
  const held = await installation.dispatch('hold', '--tries=1')
  const waiting = await installation.dispatch('note', '--tries=1')
  const worker = await installation.worker(...flags)
  await worker.until(/text=begun/)
  return { installation, worker, held, waiting }
}

/** Ends what a test has begun, in this order. */
async function leave(worker: Live, installation: Installation): Promise<void> {
  await worker[Symbol.asyncDispose]()
  await installation[Symbol.asyncDispose]()
}

onBothStores('SIGTERM', (store) => {
  it.concurrent('lets the job in flight end, starts no other, and exits 0', async () => {
    const { installation, worker, held, waiting } = await busy(store)
    worker.kill('SIGTERM')
    await worker.until(/waiting for 1 job/, 'stderr')
    installation.open()
    const { code, stdout, stderr } = await worker.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: waitsForOne })
    expect(stdout).toMatch(/stopped: 1 done, 0 retried, 0 failed/)
    expect([...installation.ledger.ended]).toEqual([held])
    expect(await installation.must('work', '--stop-when-empty')).toMatch(
      new RegExp(`DONE ${waiting} note queue=default try=1/1`),
    )
    await leave(worker, installation)
  })

  it.concurrent('twice within milliseconds counts once', async () => {
    const { installation, worker, held } = await busy(store)
    for (let sent = 0; sent < 2; sent++) worker.kill('SIGTERM')
    await worker.until(/waiting for 1 job/, 'stderr')
    installation.open()
    expect(await worker.ended).toMatchObject({ code: 0, stderr: waitsForOne })
    expect([...installation.ledger.ended]).toEqual([held])
    await leave(worker, installation)
  })

  it.concurrent('a second time after 1 s aborts the job, gives it back at no cost, and exits 143', async () => {
    const { installation, worker, held } = await busy(store)
    worker.kill('SIGTERM')
    await worker.until(/waiting for 1 job/, 'stderr')
    await wait(laterMs)
    worker.kill('SIGTERM')
    const { code, stdout, stderr } = await worker.ended
    expect(stdout).toMatch(new RegExp(`RELEASED ${held} hold queue=default try=1/1 ms=\\d+ why=interrupted`))
    // Nobody has set --drain-timeout, so it is not to blame.
    expect(stderr).toMatch(/ {2}fix: another worker runs it at once\n$/)
    expect(code).toBe(143)
    await expectFreeAtNoCost(installation, held)
    await leave(worker, installation)
  })

  it.concurrent('with --drain-timeout=300ms gives back what takes longer, at no cost, and exits 75', async () => {
    const { installation, worker, held } = await busy(store, '--drain-timeout=300ms')
    worker.kill('SIGTERM')
    const { code, stdout, stderr } = await worker.ended
    expect(stdout).toMatch(new RegExp(`RELEASED ${held} hold `))
    expect(stderr).toMatch(
      /error: 1 job did not end in time and was given back\n {2}fix: another worker runs it at once; a longer --drain-timeout /,
    )
    expect(code).toBe(75)
    await expectFreeAtNoCost(installation, held)
    await leave(worker, installation)
  })

  it.concurrent('ends an idle worker at once, though it looks for jobs every 10 min only', async () => {
    await using installation = await Installation.migrated(store)
    await using worker = await installation.worker('--sleep=10m')
    worker.kill('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0, stderr: '' })
  })
})

onBothStores('an idle worker', (store) => {
  it.concurrent('picks up a job that is dispatched while it sleeps, and one whose delay of 1 s is over', async () => {
    await using installation = await Installation.migrated(store)
    await using worker = await installation.worker('--sleep=300ms')
    const now = await installation.dispatch('note')
    const before = Date.now()
    const later = await installation.dispatch('note', '--delay=1s')
    await installation.ledger.untilEnded(2)
    const [first, second] = installation.ledger.starts
    expect([first?.id, second?.id]).toEqual([now, later])
    expect((second?.at ?? 0) - before).toBeGreaterThanOrEqual(1_000)
    worker.kill('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0 })
  })
})

/** The next worker takes it at once, on its first attempt, and nothing is noted against it. */
async function expectFreeAtNoCost(installation: Installation, id: number): Promise<void> {
  const [row] = await installation.ask(`select worker, failures, crashes, suspect from jobs where id = ${id}`)
  expect({ ...row, suspect: Number(row?.suspect) }).toEqual({ worker: null, failures: 0, crashes: 0, suspect: 0 })
  installation.open()
  expect(await installation.must('work', '--stop-when-empty')).toMatch(
    new RegExp(`DONE ${id} hold queue=default try=1/1`),
  )
  expect(installation.ledger.starts.filter((line) => line.id === id).map(({ attempt }) => attempt)).toEqual([1, 1])
}
