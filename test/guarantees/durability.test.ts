import { describe, expect, it, vi } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'
import { postgresSkipReason, startPostgres } from '../support/postgres.ts'

/** Many processes in a row, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

onBothStores('twenty migrate commands at once', (store) => {
  it('make one schema: one applies it, the others find nothing to do', async () => {
    await using installation = await Installation.empty(store)
    const ended = await Promise.all(Array.from({ length: 20 }, () => installation.run(['migrate'])))
    expect(ended.filter(({ code }) => code !== 0)).toEqual([])
    const names = ['0000_jobs', '0001_attempts', '0002_workers', '0003_marks', '0004_schedules', '0005_parents']
    const rows = await installation.ask('select name from jobs_migrations order by name')
    expect(rows.map(({ name }) => name)).toEqual(names)
    const applied = ended.filter(({ stdout }) => stdout !== '')
    expect(applied.map(({ stdout }) => stdout)).toEqual([
      expect.stringMatching(/^applied {2}0000_jobs \.\. 0005_parents {5}6 migrations, \S+\n$/),
    ])
    expect(ended.filter(({ stderr }) => /^Nothing to do: .* is at 0005\n$/.test(stderr))).toHaveLength(19)
    const id = await installation.dispatch('note')
    await installation.must('work', '--once')
    expect([...installation.ledger.ended]).toEqual([id])
  })
})

const jobsInFile = 40

/** Starts 8 dispatches of files at once, and kills everything there is as soon as 3 have exited with 0. */
async function dispatchAndKill(installation: Installation): Promise<{ readonly safe: readonly number[] }> {
  const files = Array.from({ length: 8 }, (_, file) =>
    installation.project.write(
      `${file}.ndjson`,
      Array.from({ length: jobsInFile }, (_, n) => `{"job":"note","payload":${file * 1_000 + n}}\n`).join(''),
    ),
  )
  await using worker = await installation.worker('--queue=other')
  const safe: number[] = []
  const processes = files.map((file) => installation.start(['dispatch', file, '--quiet']))
  const killAll = (): void => {
    for (const each of [...processes, worker]) each.kill('SIGKILL')
  }
  await Promise.all(
    processes.map(async (each, file) => {
      const { code } = await each.ended
      if (code === 0) safe.push(file)
      if (safe.length === 3) killAll()
    }),
  )
  return { safe }
}

/** Each file is one transaction: all of its jobs are there or none, and all where its dispatch had exited with 0. */
async function expectKept(installation: Installation, { safe }: { readonly safe: readonly number[] }): Promise<void> {
  await installation.must('work', '--stop-when-empty', '--log=none')
  const perFile = Map.groupBy(installation.ledger.ends, ({ payload }) => Math.floor(Number(payload) / 1_000))
  for (const file of safe) expect(perFile.get(file), `file ${file}`).toHaveLength(jobsInFile)
  for (const [file, lines] of perFile) expect(new Set(lines.map(({ id }) => id)).size, `file ${file}`).toBe(jobsInFile)
}

describe('a dispatch that exits 0', () => {
  it('is there after a kill -9 of every khepri process, on sqlite', async () => {
    await using installation = await Installation.migrated('sqlite')
    const outcome = await dispatchAndKill(installation)
    expect(outcome.safe.length).toBeGreaterThanOrEqual(3)
    await expectKept(installation, outcome)
  })

  it.skipIf(postgresSkipReason() !== null)(
    'is there after a kill -9 of every khepri process and a crash of the server, on postgres',
    async () => {
      const server = await startPostgres({ settings: { synchronous_commit: 'on', full_page_writes: 'on' } })
      try {
        await using installation = await Installation.migratedAt(server.url)
        const outcome = await dispatchAndKill(installation)
        await server.stop('immediate')
        await server.restart()
        expect(outcome.safe.length).toBeGreaterThanOrEqual(3)
        await expectKept(installation, outcome)
      } finally {
        await server.remove()
      }
    },
  )
})
