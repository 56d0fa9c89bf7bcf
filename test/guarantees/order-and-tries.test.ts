import { expect, it, vi } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'

/** Many processes in a row, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

onBothStores('four workers', (store) => {
  it('drain 10,000 jobs, each once, without gaps', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    const flags = ['--concurrency=8', '--sleep=50ms', '--log=results', '--retry-after=90s']
    await using one = await installation.worker(...flags)
    await using two = await installation.worker(...flags)
    await using three = await installation.worker(...flags)
    await using four = await installation.worker(...flags)
    const workers = [one, two, three, four]
    await installation.dispatchAll(
      Array.from({ length: 10_000 }, (_, n) => ({ job: 'note', payload: n })),
      '--chunk=1000',
    )
    await ledger.untilEnded(10_000)
    for (const worker of workers) worker.kill('SIGTERM')
    const ended = await Promise.all(workers.map((worker) => worker.ended))

    expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(workers.map(() => ({ code: 0, stderr: '' })))
    const payloads = ledger.ends.map(({ payload }) => Number(payload)).sort((a, b) => a - b)
    expect(payloads).toEqual(Array.from({ length: 10_000 }, (_, n) => n))
    expect(ledger.starts).toHaveLength(10_000)
    expect(new Set(ledger.ends.map(({ pid }) => pid)).size).toBe(4)
    const done = ended.map(({ stdout }) => Number(/stopped: (\d[\d,]*) done/.exec(stdout)?.[1]?.replaceAll(',', '')))
    expect(done.reduce((sum, each) => sum + each)).toBe(10_000)
    expect(await installation.failed()).toEqual([])
  })
})

onBothStores('one worker', (store) => {
  it.concurrent('serves --queue=high,default,low strictly in this order, in each by priority, then by dispatch', async () => {
    await using installation = await Installation.migrated(store)
    const queues = ['low', 'default', 'high']
    const jobs = Array.from({ length: 60 }, (_, n) => ({
      job: 'note',
      payload: n,
      queue: queues[n % 3],
      priority: ((n * 7) % 5) - 2,
    }))
    await installation.dispatchAll(jobs)
    await installation.must('work', '--queue=high,default,low', '--stop-when-empty')
    const rank = ({ queue, priority, payload }: (typeof jobs)[number]): number =>
      -queues.indexOf(queue ?? '') * 10_000 + priority * 100 + payload
    const expected = jobs.toSorted((a, b) => rank(a) - rank(b)).map(({ payload }) => payload)
    expect(installation.ledger.starts.map(({ payload }) => Number(payload))).toEqual(expected)
  })

  it.concurrent('starts a job of 3 tries 3 times and no more, whatever its own --tries says', async () => {
    await using installation = await Installation.migrated(store)
    const id = await installation.dispatch('fail', '--tries=3', '--backoff=none')
    await using worker = await installation.worker('--tries=10')
    await worker.until(/FAILED/)
    worker.kill('SIGTERM')
    const { stdout } = await worker.ended
    expect(stdout.match(/(RETRY|FAILED) \d+ fail queue=default try=\d\/\d/g)).toEqual([
      `RETRY ${id} fail queue=default try=1/3`,
      `RETRY ${id} fail queue=default try=2/3`,
      `FAILED ${id} fail queue=default try=3/3`,
    ])
    expect(installation.ledger.starts.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(await installation.failed()).toMatchObject([{ id, reason: 'tries', error: 'not mended yet' }])
    expect(await installation.must('work', '--stop-when-empty')).toMatch(/stopped: 0 done, 0 retried, 0 failed/)
  })
})
