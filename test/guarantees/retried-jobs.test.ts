import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'

/** Many processes in a row, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

/** What a JSON parser and a JSON writer would change between them. */
const payload =
  String.raw`{"big":12345678901234567890.1234567890e+5,"b":1, "a":2,"a":3,"__proto__":{"x":1},"minus":-0,` +
  String.raw`"escapes":"\u00e9\/\ud800\u0000é","constructor":{"prototype":{}}}`

onBothStores('a failed job', (store) => {
  it.concurrent('keeps its id, its envelope and the exact bytes of its payload through failed and back', async () => {
    await using installation = await Installation.migrated(store)
    const { ledger } = installation
    installation.project.write('job.json', `{"job":"fail","payload":${payload},"queue":"odd","tries":2,"backoff":"0s"}`)
    const id = Number(await installation.must('dispatch', 'job.json'))
    const envelope = async (table: string): Promise<unknown> =>
      (await installation.ask(`select id, envelope from ${table}`)).map((row) => ({
        id: Number(row.id),
        envelope: row.envelope,
      }))
    const dispatched = await envelope('jobs')
    const work = ['work', '--queue=odd', '--max-jobs=2']

    await installation.must(...work)
    expect(await envelope('failed_jobs')).toEqual(dispatched)
    expect(await installation.must('failed', String(id), '--json')).toContain(`"payload":${payload}`)

    expect(await installation.must('retry', String(id))).toBe(`Retried 1 job: ${id} (fail on odd)\n`)
    expect(await envelope('jobs')).toEqual(dispatched)
    installation.mend()
    await installation.must(...work.slice(0, 2), '--once')
    expect(ledger.starts.map((line) => [line.id, line.attempt, line.payload])).toEqual([
      [id, 1, payload],
      [id, 2, payload],
      [id, 1, payload],
    ])
    expect([...ledger.ended]).toEqual([id])
    expect(await installation.failed()).toEqual([])
  })
})

const count = 3_000

onBothStores(`retry --all of ${count.toLocaleString('en')} jobs`, (store) => {
  it('killed half-way at 4 moments and run again leaves every job live exactly once', async () => {
    await using installation = await Installation.migrated(store)
    await installation.dispatchAll(Array.from({ length: count }, (_, n) => ({ job: 'fail', payload: n })))
    await installation.must('work', '--stop-when-empty', '--concurrency=50', '--log=none')
    expect(await idsIn(installation, 'failed_jobs')).toHaveLength(count)
    const all = await idsIn(installation, 'failed_jobs')

    for (let kill = 0; kill < 4; kill++) {
      const before = (await idsIn(installation, 'failed_jobs')).length
      await using retry = installation.start(['retry', '--all', '--quiet'])
      if (kill % 2 === 0) await untilFewerFailed(installation, before)
      else await wait(Math.random() * 400)
      retry.kill('SIGKILL')
      await retry.ended
      const [live, failed] = [await idsIn(installation, 'jobs'), await idsIn(installation, 'failed_jobs')]
      expect([...live, ...failed].sort((a, b) => a - b)).toEqual(all)
    }
    await installation.must('retry', '--all', '--quiet')
    expect(await idsIn(installation, 'jobs')).toEqual(all)
    expect(await installation.failed()).toEqual([])

    installation.mend()
    await installation.must('work', '--stop-when-empty', '--concurrency=50', '--log=none')
    expect(installation.ledger.ends.map(({ id }) => id).sort((a, b) => a - b)).toEqual(all)
  })
})

async function idsIn(installation: Installation, table: string): Promise<number[]> {
  return (await installation.ask(`select id from ${table} order by id`)).map(({ id }) => Number(id))
}

/** Looks again and again: the first chunk of many has been put back when it returns. At once where none is left. */
async function untilFewerFailed(installation: Installation, before: number): Promise<void> {
  for (let left = before; left === before && left > 0; ) left = (await idsIn(installation, 'failed_jobs')).length
}
