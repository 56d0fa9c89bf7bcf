import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { createKhepri as CreateKhepri, Khepri } from '../src/index.ts'
import { ReserveProbe } from './soak/reserve-probe.ts'
import { figuresOf, lineOf, type Sample } from './soak/samples.ts'
import { postgresSite, type Site, sqliteSite } from './soak/sites.ts'
import { Workers } from './soak/workers.ts'

/**
 * Soaks khepri: hours at 70 % of the measured maximum, with deploys, kills, failures that are flushed and, on Postgres,
 * a transaction that holds its snapshot open. `npm run soak -- --minutes 240 --store sqlite|postgres|both`.
 *
 * Needs a build. Exits 1 when jobs are lost or left.
 */

const { createKhepri } = (await import(join(import.meta.dirname, '../dist/index.js'))) as {
  createKhepri: typeof CreateKhepri
}

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '240' }, store: { type: 'string', default: 'both' } },
})

const share = 0.7
const tickMs = 100
const calibrationMs = 10_000
/** So many jobs wait while the maximum is measured, at most: more than the workers take at once. */
const mostWaiting = 5_000
/** Of a hundred jobs so many fail for good. */
const failing = 1
const drainMs = 120_000

/** The clients' side: dispatches at a rate and knows how much of it is done. */
class Client {
  readonly #khepri: Khepri
  dispatched = 0
  #toFail = 0

  constructor(khepri: Khepri) {
    this.#khepri = khepri
  }

  /** What was dispatched and is neither waiting nor running any more. */
  async look(): Promise<{ readonly done: number; readonly waiting: number }> {
    const counts = await (await this.#khepri.admin()).counts()
    const waiting = counts.reduce((sum, { ready, running, scheduled }) => sum + ready + running + scheduled, 0)
    return { done: this.dispatched - waiting, waiting }
  }

  async dispatch(count: number): Promise<void> {
    if (count === 0) return
    const jobs = Array.from({ length: count }, (_, n) => ({
      job: (this.dispatched + n) % 100 < failing ? 'fail' : 'noop',
      payload: { n },
    }))
    await this.#khepri.dispatchMany(jobs)
    this.dispatched += count
    this.#toFail += jobs.filter(({ job }) => job === 'fail').length
  }

  /** Deletes what has failed, and checks that nothing else has. */
  async flush(): Promise<void> {
    const admin = await this.#khepri.admin()
    const deleted = await admin.deleteFailed(await admin.selectFailed({ job: 'fail' }))
    this.#toFail -= deleted.length
    const strange = await admin.selectFailed({})
    const [first] = strange.length > 0 ? await admin.failedGroups({ job: 'noop' }, 'error') : []
    if (first) throw new Error(`${first.count} jobs failed that should not: ${first.key}`)
  }

  /** Failures that were dispatched and are in no list. */
  get missingFailures(): number {
    return this.#toFail
  }
}

/** Dispatches as fast as it is worked off, for ten seconds; the result is jobs a second. */
async function measureMaximum(client: Client): Promise<number> {
  const before = (await client.look()).done
  const startedAt = performance.now()
  while (performance.now() - startedAt < calibrationMs) {
    const { waiting } = await client.look()
    if (waiting < mostWaiting) await client.dispatch(1_000)
    else await wait(20)
  }
  const { done } = await client.look()
  return ((done - before) / (performance.now() - startedAt)) * 1_000
}

interface Parts {
  readonly site: Site
  readonly client: Client
  readonly workers: Workers
  readonly probe: ReserveProbe
}

/** Keeps the rate, and lets befall the workers what befalls them in a long life; the result is what was seen. */
async function soakAt(
  rate: number,
  minutes: number,
  { site, client, workers, probe }: Parts,
): Promise<readonly Sample[]> {
  const samples: Sample[] = []
  const lengthMs = minutes * 60_000
  const sampleMs = Math.min(60_000, lengthMs / 12)
  const chores = [
    { everyMs: sampleMs, dueAt: 0, run: () => sample() },
    { everyMs: lengthMs / 4, dueAt: lengthMs / 8, run: () => workers.deploy() },
    { everyMs: lengthMs / 3, dueAt: lengthMs / 5, run: () => workers.killOne() },
    { everyMs: 60_000, dueAt: 30_000, run: () => client.flush() },
  ]
  const startedAt = performance.now()
  const first = client.dispatched
  const sample = async (): Promise<void> => {
    const at = performance.now() - startedAt
    const sizes = { walBytes: await site.walBytes(), tableBytes: await site.tableBytes() }
    samples.push({ at, ...(await client.look()), ...sizes, rss: workers.rss(), reserveP99Ms: probe.p99() })
    console.log(`${site.store}: ${lineOf(samples.at(-1) as Sample, samples.at(-2))}`)
  }
  for (let at = 0; at < lengthMs; at = performance.now() - startedAt) {
    await client.dispatch(Math.max(0, Math.floor((at / 1_000) * rate) - (client.dispatched - first)))
    for (const chore of chores) {
      if (at < chore.dueAt) continue
      chore.dueAt += chore.everyMs
      await chore.run()
    }
    await wait(tickMs)
  }
  return samples
}

/** Waits until nothing waits any more. Throws where something is left. */
async function drain(client: Client): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    const { waiting } = await client.look()
    if (waiting === 0) break
    if (performance.now() - startedAt > drainMs) throw new Error(`${waiting} jobs were left`)
    await wait(tickMs)
  }
  await client.flush()
  if (client.missingFailures !== 0) throw new Error(`${client.missingFailures} jobs that fail are in no list`)
}

async function soak(site: Site, folder: string, minutes: number): Promise<void> {
  const jobs: Readonly<Record<string, () => void>> = { noop: () => {}, fail: () => {} }
  const khepri = createKhepri<Readonly<Record<string, unknown>>>({ database: site.url, jobs }, { root: folder })
  try {
    await khepri.migrate()
    const client = new Client(khepri)
    const joined = async () => new Set((await (await khepri.admin()).workers()).map(({ pid }) => pid))
    await using workers = new Workers(folder, site.url, joined)
    await workers.hire(2)
    const maximum = await measureMaximum(client)
    console.log(
      `${site.store}: at most ${Math.round(maximum)} jobs a second; ${minutes} minutes at ${share * 100} % of it`,
    )
    const probe = new ReserveProbe(await khepri.store())
    await probe.start()
    const samples = await soakAt(maximum * share, minutes, { site, client, workers, probe })
    await probe.stop()
    await drain(client)
    const figures = { 'jobs dispatched': client.dispatched, 'jobs lost': 0, ...workers.tally, ...figuresOf(samples) }
    for (const [what, value] of Object.entries(figures)) console.log(`${site.store}: ${what.padEnd(52)} ${value}`)
  } finally {
    await khepri.close()
  }
}

for (const store of values.store === 'both' ? ['sqlite', 'postgres'] : [values.store]) {
  const folder = mkdtempSync(join(tmpdir(), 'khepri-soak-'))
  const site = store === 'sqlite' ? sqliteSite(folder) : await postgresSite()
  try {
    await soak(site, folder, Number(values.minutes))
  } finally {
    await site.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
