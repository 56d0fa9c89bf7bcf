import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { Installation, onBothStores, type StoreKind } from '../support/installation.ts'

/** Many processes in a row, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

/** A row that somebody has written into the table with SQL. */
interface Row {
  readonly job: string
  readonly envelope: string
  readonly version?: number
  /** What becomes of it: how its error begins. */
  readonly error: string
}

const envelope = (changes: object = {}): string =>
  JSON.stringify({ v: 1, job: 'note', dispatchedAt: 0, maxCrashes: 3, payload: {}, ...changes })
const nested = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
const named = (job: string): Pick<Row, 'job' | 'envelope'> => ({ job, envelope: envelope({ job }) })

const poison: readonly Row[] = [
  { job: 'note', envelope: 'garbage', error: 'the envelope is not valid JSON' },
  { job: 'note', envelope: '', error: 'the envelope is not valid JSON' },
  { job: 'note', envelope: '{"v":1', error: 'the envelope is not valid JSON' },
  { job: 'note', envelope: '[]', error: 'the envelope is not a JSON object' },
  { job: 'note', envelope: 'null', error: 'the envelope is not a JSON object' },
  { job: 'note', envelope: envelope({ job: 'hold' }), error: 'the envelope says job "hold", its row says "note"' },
  { job: 'note', envelope: envelope({ v: 2 }), error: "the envelope's version is 2, this khepri reads 1" },
  { job: 'note', envelope: envelope({ tries: 0 }), error: "the envelope's tries is 0" },
  { job: 'note', envelope: envelope({ backoff: { kind: 'wild' } }), error: "the envelope's backoff is " },
  { job: 'note', envelope: envelope({ stranger: 1 }), error: 'the envelope has an unknown key "stranger"' },
  {
    job: 'note',
    envelope: '{"v":1,"job":"note","dispatchedAt":0,"maxCrashes":3}',
    error: 'the envelope has no payload',
  },
  {
    job: 'note',
    envelope: envelope().replace('{}', nested),
    error: 'the envelope is nested more than 1000 levels deep',
  },
]

/** Larger than maxPayload allows. On Postgres a smaller one shows the same, and leaves the server to others. */
const oversized = (store: StoreKind): Row => {
  const size = store === 'sqlite' ? 50_000_000 : 3_000_000
  const payload = `"${'x'.repeat(size)}"`
  const error = `the envelope has ${(size / 1_000_000).toFixed(0)},000,0`
  return { job: 'note', envelope: envelope().replace('{}', payload), error }
}

const strangers: readonly Row[] = [
  { ...named('../evil'), error: 'no handler is registered for "../evil"' },
  { ...named('constructor'), error: 'no handler is registered for "constructor"' },
  { ...named('__proto__'), error: 'no handler is registered for "__proto__"' },
  { ...named('red\n\u001b[31m'), error: String.raw`no handler is registered for "red\n\u001b[31m"` },
]

async function put(installation: Installation, { job, envelope, version = 1 }: Omit<Row, 'error'>): Promise<void> {
  await installation.ask(
    "insert into jobs (queue, priority, available_at, job, version, enqueued_at, envelope) values ('default', 0, 0, ?, ?, 0, ?)",
    [job, version, envelope],
  )
}

onBothStores('rows that were written with SQL', (store) => {
  it('and cannot be read, or name no handler, end in failed at once; the job behind them runs, and nothing of theirs does', async () => {
    await using installation = await Installation.migrated(store)
    const { project, ledger } = installation
    project.write('evil.mjs', `import { writeFileSync } from 'node:fs'\nwriteFileSync('evil ran', '')`)
    const evil = { ...named(`file://${project.path}/evil.mjs`), error: 'no handler is registered for "file://' }
    const unreadable = [...poison, oversized(store)]
    const rows = [...unreadable, ...strangers, evil]
    for (const row of rows) await put(installation, row)
    await put(installation, { job: 'note', envelope: envelope() })

    const { code, stdout, stderr } = await installation.run([
      'work',
      '--stop-when-empty',
      '--tries=5',
      '--backoff=none',
    ])
    expect(stderr).toBe('')
    expect(stdout).toMatch(new RegExp(`stopped: 1 done, 0 retried, ${rows.length} failed`))
    expect(stdout).not.toContain('\u001b')
    expect(code).toBe(0)
    const failed = (await installation.failed()).toSorted((a, b) => a.id - b.id)
    expect(failed.map(({ reason, error }, at) => ({ reason, error: error.slice(0, rows[at]?.error.length) }))).toEqual(
      rows.map(({ error }, at) => ({ reason: at < unreadable.length ? 'poison' : 'unknown', error })),
    )
    expect(ledger.ended.size).toBe(1)
    expect(existsSync(join(project.path, 'evil ran'))).toBe(false)
  })

  it('can be listed, shown, put back, failed again and deleted like any other', async () => {
    await using installation = await Installation.migrated(store)
    const rows = [...poison, ...strangers]
    for (const row of rows) await put(installation, row)
    const work = ['work', '--stop-when-empty', '--log=none']
    await installation.must(...work)
    const listing = await installation.must('failed')
    expect(listing.trimEnd().split('\n')).toHaveLength(rows.length + 1)
    expect(listing).not.toContain('\u001b')
    const strangest = (await installation.failed()).filter(({ error }) => /nested|"red/.test(error))
    expect(strangest).toHaveLength(2)
    for (const { id } of strangest) expect(await installation.must('failed', String(id))).not.toContain('\u001b')
    expect(await installation.must('retry', '--all')).toBe(`Retried ${rows.length} jobs\n`)
    await installation.must(...work)
    expect(await installation.must('flush', '--all')).toBe(`Deleted ${rows.length} jobs\n`)
  })

  it('with an envelope of a newer version are left to newer workers, while others run', async () => {
    await using installation = await Installation.migrated(store)
    for (let row = 0; row < 3; row++)
      await put(installation, { job: 'note', envelope: envelope({ v: 2, news: true }), version: 2 })
    const id = await installation.dispatch('note')
    const { code, stdout, stderr } = await installation.run(['work', '--stop-when-empty'])
    expect({ code, warnings: stderr.match(/newer khepri/g) }).toEqual({ code: 0, warnings: ['newer khepri'] })
    expect(stdout).toMatch(new RegExp(`DONE ${id} note `))
    expect(await installation.ask('select version, failures from jobs')).toEqual(
      [1, 2, 3].map(() => ({ version: 2, failures: 0 })),
    )
    expect(await installation.failed()).toEqual([])
  })
})

onBothStores('a queue whose name has quotes, SQL, spaces and an emoji', (store) => {
  it('is a queue like any other for dispatch, work, failed, retry and flush', async () => {
    await using installation = await Installation.migrated(store)
    const queue = `it's "odd"; drop table jobs; -- %_\\ 🐞 é`
    const id = await installation.dispatch('fail', '--queue', queue)
    await installation.dispatch('note')
    const work = ['work', '--stop-when-empty', '--queue', queue]
    expect(await installation.must(...work)).toMatch(/stopped: 0 done, 0 retried, 1 failed/)
    expect(JSON.parse(await installation.must('failed', '--queue', queue, '--json'))).toMatchObject([{ id, queue }])
    expect(await installation.must('retry', '--queue', queue)).toBe(`Retried 1 job: ${id} (fail on ${queue})\n`)
    await installation.must(...work)
    expect(await installation.must('flush', '--queue', queue)).toMatch(/^Deleted 1 job/)
    expect(await installation.ask('select queue from jobs')).toEqual([{ queue: 'default' }])
  })
})

onBothStores('an error of 1 MB with NUL, half a character and escape codes', (store) => {
  it('is recorded, cut and clean, and the job has failed', async () => {
    await using installation = await Installation.migrated(store)
    installation.project.write(
      'jobs/loud.mjs',
      String.raw`export default () => { throw new Error('real cause \u0000 \ud800 \u001b[31m ' + 'x'.repeat(1_000_000)) }`,
    )
    const id = await installation.dispatch('loud')
    await installation.must('work', '--once')
    const [job] = await installation.failed()
    expect(job).toMatchObject({ id, reason: 'tries', error: expect.stringMatching(/^real cause /) })
    expect(job?.error.length).toBeLessThanOrEqual(8_192)
    const shown = await installation.must('failed', String(id))
    expect(shown).toContain('real cause')
    expect(shown).not.toMatch(/[\u0000\u001b\ud800-\udfff]/)
  })
})
