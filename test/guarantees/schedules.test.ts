import { expect, it, vi } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'
import type { Live } from '../support/live.ts'

/** Many processes, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

/** So many slots, of a second each, pass between two kills: 3, or at most 20, since the store remembers a hundred slots. */
const slotsPerKill = Number(process.env.KHEPRI_TEST_SLOTS_PER_KILL ?? '3')

/** A machine that is so busy that nobody looks for a second must not decide what this test finds. */
const schedules = { second: { job: 'note', every: '1s', overlap: 'allow', misfire: { catchUp: 60 } } }

function configure({ project, url }: Installation): void {
  const settings = { ...(url !== null && { database: url }), retryAfter: '2s', sleep: '100ms', schedules }
  project.write('khepri.config.json', JSON.stringify(settings))
}

async function scheduler(installation: Installation): Promise<Live> {
  const started = installation.start(['schedule', 'work'])
  await started.until(/Ctrl-C stops/, 'stderr')
  return started
}

onBothStores('five schedulers of which one is killed every few seconds', (store) => {
  it('give every slot exactly one job, leave none out, and lock nobody out', async () => {
    await using installation = await Installation.migrated(store)
    configure(installation)
    await using worker = await installation.worker()
    const all = await Promise.all(Array.from({ length: 5 }, () => scheduler(installation)))
    const alive = [...all]
    for (let kill = 1; kill <= 4; kill++) {
      await installation.ledger.untilEnded(slotsPerKill * kill)
      alive.splice((2 * kill) % alive.length, 1)[0]?.kill('SIGKILL')
      const next = await scheduler(installation)
      all.push(next)
      alive.push(next)
    }
    await installation.ledger.untilEnded(4 * slotsPerKill + 3)
    for (const each of alive) each.kill('SIGTERM')
    const ends = await Promise.all(all.map(({ ended }) => ended))

    const slots = await installation.ask('select slot, job_id from jobs_slots order by slot')
    const times = slots.map(({ slot }) => Number(slot))
    const ids = slots.map(({ job_id: id }) => Number(id))
    await installation.ledger.untilEnded(ids.length)
    worker.kill('SIGTERM')
    await worker.ended

    expect(times).toEqual(times.map((_, index) => (times[0] ?? 0) + 1_000 * index))
    expect(new Set(ids).size).toBe(ids.length)
    expect(installation.ledger.starts.map(({ id }) => id).sort((a, b) => a - b)).toEqual(ids.toSorted((a, b) => a - b))
    expect(ends.filter(({ signal }) => signal === 'SIGKILL')).toHaveLength(4)
    expect(ends.filter(({ code }) => code === 0)).toHaveLength(5)
    for (const { stderr } of ends) expect(stderr).not.toMatch(/locked|lost|cannot/)
  })
})
