import { expect, it } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'

/** Holds the event loop for so long; nothing else of its process runs meanwhile. */
const spin = `
  import { note } from './_ledger.mjs'
  const never = new Int32Array(new SharedArrayBuffer(4))
  export default ({ ms }, context) => { note('start', context); Atomics.wait(never, 0, 0, ms); note('end', context) }`

onBothStores('a live worker', (store) => {
  it.concurrent('whose handler blocks the event loop for 3 times retryAfter keeps its job: there is one start', async () => {
    await using installation = await Installation.migrated(store)
    installation.project.write('jobs/spin.mjs', spin)
    const id = await installation.dispatch('spin', '--payload={"ms":6500}')
    await using blocked = await installation.worker()
    await installation.ledger.untilStarted(1)
    await using neighbour = await installation.worker()
    await blocked.until(/DONE /)
    expect(installation.ledger.starts.map(({ pid }) => pid)).toEqual([blocked.child.pid])
    expect([...installation.ledger.ended]).toEqual([id])
    neighbour.kill('SIGTERM')
    expect(await neighbour.ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining('dead worker') })
  })

  it.concurrent('that is killed on this host leaves its job to a neighbour long before 90 s of silence', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    const id = await installation.dispatch('hold')
    await using killed = await installation.worker('--retry-after=90s')
    await ledger.untilStarted(1)
    await using heir = await installation.worker('--retry-after=90s')
    const killedAt = Date.now()
    killed.kill('SIGKILL')
    await ledger.untilStarted(2)
    const [, second] = ledger.starts
    expect(second).toMatchObject({ id, pid: heir.child.pid, attempt: 1, crashes: 1 })
    // The promise is 2 s; a busy machine gets some more, and still proves that nobody waited for the lease.
    expect((second?.at ?? Number.NaN) - killedAt).toBeLessThan(10_000)
    installation.open()
    await heir.until(/DONE /)
  })
})

onBothStores('a handler that blocks the event loop past its timeout and 5 s more', (store) => {
  it.concurrent('fails its attempt, costs its neighbours nothing, and ends its process', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    await using worker = await installation.worker('--concurrency=2')
    const neighbour = await installation.dispatch('hold', '--tries=1')
    await ledger.untilStarted(1)
    const guilty = await installation.dispatch('block', '--timeout=1s', '--tries=1')
    expect(await worker.ended).toMatchObject({
      signal: 'SIGKILL',
      stderr: expect.stringContaining(`the event loop was blocked past the timeout of job ${guilty}; the worker ends`),
    })
    expect(await installation.failed()).toMatchObject([
      { id: guilty, reason: 'tries', error: 'timed out after 1s, with the event loop blocked' },
    ])
    installation.open()
    await installation.must('work', '--stop-when-empty')
    expect(ledger.starts.filter(({ id }) => id === neighbour)).toMatchObject([
      { crashes: 0 },
      { attempt: 1, crashes: 0 },
    ])
    expect([...ledger.ended]).toEqual([neighbour])
  })
})
