import { expect, it, vi } from 'vitest'
import { Installation, type Ledger, onBothStores } from '../support/installation.ts'

/** Many processes in a row, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

onBothStores('a worker that is killed', (store) => {
  it.concurrent('with SIGKILL in the middle of 200 jobs loses none, and starts none twice but those it held: nothing that it had told as done', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    await installation.dispatchAll(Array.from({ length: 200 }, (_, n) => ({ job: 'nap', payload: { n, ms: 5 } })))
    await using killed = await installation.worker('--concurrency=4')
    await ledger.untilEnded(50)
    killed.kill('SIGKILL')
    const { stdout } = await killed.ended
    const told = new Set([...stdout.matchAll(/ DONE (\d+) /g)].map(([, id]) => Number(id)))
    expect(ledger.ended.size).toBeLessThan(200)

    await using heir = await installation.worker('--concurrency=4')
    await ledger.untilEnded(200)
    heir.kill('SIGTERM')
    expect(await heir.ended).toMatchObject({ code: 0 })

    const again = startedAgain(ledger)
    // Results on their way to the database are held still: how many there are follows from how long a round trip takes.
    expect(again.filter(({ first }) => told.has(first.id))).toEqual([])
    for (const { first, second } of again)
      expect([first.pid, second.pid, second.attempt, second.crashes]).toEqual([killed.child.pid, heir.child.pid, 1, 0])
    expect(await installation.failed()).toEqual([])
    expect(await installation.ask('select id from jobs')).toEqual([])
  })

  it.concurrent('runs its only job again elsewhere, though the job has 1 try', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    const id = await installation.dispatch('hold', '--tries=1')
    await using killed = await installation.worker()
    await killed.until(/text=begun/)
    killed.kill('SIGKILL')
    installation.open()
    await using heir = await installation.worker()
    await heir.until(/DONE /)
    expect(ledger.starts.map(({ pid, attempt, crashes }) => ({ pid, attempt, crashes }))).toEqual([
      { pid: killed.child.pid, attempt: 1, crashes: 0 },
      { pid: heir.child.pid, attempt: 1, crashes: 1 },
    ])
    expect([...ledger.ended]).toEqual([id])
  })

  it.concurrent('3 times by the same job fails that job, with a text that says so, and takes it no fourth time', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    const id = await installation.dispatch('crash')
    await using watcher = await installation.worker('--except-job=crash')
    for (let death = 1; death <= 3; death++) {
      await using victim = installation.start(['work'])
      expect(await victim.ended).toMatchObject({ signal: 'SIGKILL' })
      await watcher.until(new RegExp(`(found 1 dead worker: freed 1 job\\n.*){${death}}`, 's'), 'stderr')
    }
    expect(ledger.starts.map(({ crashes }) => crashes)).toEqual([0, 1, 2])
    expect(await installation.must('work', '--stop-when-empty')).toMatch(
      new RegExp(`FAILED ${id} crash queue=default try=1/1 ms=\\d+ reason=crashes error="killed its worker 3 times"`),
    )
    expect(ledger.starts).toHaveLength(3)
    expect(await installation.failed()).toMatchObject([{ id, reason: 'crashes', error: 'killed its worker 3 times' }])
  })

  it.concurrent('leaves the job that it had not started to others, at no cost', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    await installation.dispatch('hold')
    const waiting = await installation.dispatch('note', '--tries=1')
    await using killed = await installation.worker()
    await killed.until(/text=begun/)
    killed.kill('SIGKILL')
    installation.open()
    await using heir = await installation.worker()
    await ledger.untilEnded(2)
    const starts = ledger.starts.filter(({ id }) => id === waiting)
    expect(starts.map(({ pid, attempt, crashes }) => ({ pid, attempt, crashes }))).toEqual([
      { pid: heir.child.pid, attempt: 1, crashes: 0 },
    ])
  })
})

onBothStores('a worker that lives', (store) => {
  it.concurrent('keeps a job that takes longer than its lease of 2 s: it starts once, with an idle neighbour beside it', async () => {
    await using installation = await Installation.migrated(store)
    const id = await installation.dispatch('nap', '--payload={"ms":5000}')
    await using one = await installation.worker()
    await using other = await installation.worker()
    await installation.ledger.untilEnded(1)
    for (const worker of [one, other]) worker.kill('SIGTERM')
    const ended = await Promise.all([one.ended, other.ended])
    expect(installation.ledger.starts.map((line) => line.id)).toEqual([id])
    expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ])
  })

  it.concurrent.each(['hold', 'block'])(
    'after a SIGSTOP beyond its lease has its late result of "%s" refused, says LOST once, and goes on',
    async (job) => {
      await using installation = await Installation.migrated(store)
      const { ledger } = installation
      await using stopped = await installation.worker()
      const id = await installation.dispatch(job)
      await ledger.untilStarted(1)
      stopped.kill('SIGSTOP')
      await using heir = await installation.worker()
      await ledger.untilStarted(2)
      installation.open()
      await heir.until(new RegExp(`DONE ${id} `))
      heir.kill('SIGTERM')
      await heir.ended

      stopped.kill('SIGCONT')
      await stopped.until(new RegExp(`LOST ${id} `))
      const next = await installation.dispatch('note')
      await stopped.until(new RegExp(`DONE ${next} `))
      stopped.kill('SIGTERM')
      const { code, stdout } = await stopped.ended
      expect(stdout.match(/ (LOST|DONE|FAILED|RETRY|RELEASED) \d+/g)).toEqual([` LOST ${id}`, ` DONE ${next}`])
      expect(stdout).toMatch(/stopped: 1 done, 0 retried, 0 failed/)
      expect(code).toBe(0)
      expect(ledger.starts.map((line) => line.id)).toEqual([id, id, next])
      expect(await installation.failed()).toEqual([])
    },
  )
})

/** The first and the second start of each job that has two; a third one would be a fault. */
function startedAgain({ starts }: Ledger) {
  const byId = Map.groupBy(starts, ({ id }) => id)
  return [...byId.values()].flatMap(([first, second, ...more]) => {
    expect(more).toEqual([])
    return first && second ? [{ first, second }] : []
  })
}
