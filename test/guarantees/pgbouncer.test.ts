import { beforeAll, describe, expect, it } from 'vitest'
import { khepri } from '../support/live.ts'
import { PgBouncer, pgbouncerSkipReason } from '../support/pgbouncer.ts'
import { type Database, freshDatabase, postgresSkipReason } from '../support/postgres.ts'
import { TempProject } from '../support/temp-project.ts'

const skipReason = postgresSkipReason() ?? pgbouncerSkipReason()

const jobs = {
  'jobs/note.mjs': 'export default () => {}',
  'jobs/nap.mjs': "import { setTimeout as wait } from 'node:timers/promises'\nexport default ({ ms }) => wait(ms)",
  'jobs/boom.mjs': "export default () => { throw new Error('it broke') }",
}

/** A project whose database is reached through a pooler with two sessions. */
class Pooled implements AsyncDisposable {
  readonly #database: Database
  readonly #pooler: PgBouncer
  readonly #project: TempProject

  static async open(): Promise<Pooled> {
    const database = await freshDatabase()
    return new Pooled(database, await PgBouncer.start(database.url))
  }

  private constructor(database: Database, pooler: PgBouncer) {
    this.#database = database
    this.#pooler = pooler
    const settings = { database: pooler.url, prepare: false, retryAfter: '2s' }
    this.#project = new TempProject({
      ...jobs,
      'package.json': '{}',
      'khepri.config.json': JSON.stringify(settings),
    })
  }

  async must(args: readonly string[], stdin?: string): Promise<string> {
    const ended = await khepri(args, { cwd: this.#project.path, ...(stdin !== undefined && { stdin }) })
    expect(ended, `khepri ${args.join(' ')}`).toMatchObject({ code: 0 })
    return ended.stdout
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pooler[Symbol.asyncDispose]()
    await this.#database.drop()
    this.#project[Symbol.dispose]()
  }
}

describe.skipIf(skipReason !== null)('PgBouncer in transaction mode with two sessions, and prepare: false', () => {
  beforeAll(() => {
    if (skipReason !== null) console.log(skipReason)
  })

  it('lets migrate, dispatch, four workers of concurrency 4, failed, retry and flush do what they do without it', async () => {
    await using pooled = await Pooled.open()
    expect(await pooled.must(['migrate'])).toMatch(/^applied /)
    await pooled.must(['dispatch', '--job=boom'])
    const lines = Array.from({ length: 200 }, (_, n) => `${JSON.stringify({ job: 'nap', payload: { ms: n % 20 } })}\n`)
    await pooled.must(['dispatch', '-'], lines.join(''))

    const workers = Array.from({ length: 4 }, () => pooled.must(['work', '--stop-when-empty', '--concurrency=4']))
    const ends = (await Promise.all(workers)).map((stdout) =>
      /stopped: (\d+) done, 0 retried, (\d+) failed/.exec(stdout),
    )
    expect(ends.reduce((sum, end) => sum + Number(end?.[1]), 0)).toBe(200)
    expect(ends.reduce((sum, end) => sum + Number(end?.[2]), 0)).toBe(1)

    expect(JSON.parse(await pooled.must(['failed', '--json']))).toMatchObject([
      { id: 1, job: 'boom', error: 'it broke' },
    ])
    expect(await pooled.must(['retry', '1'])).toMatch(/^Retried 1 job: 1 /)
    expect(await pooled.must(['work', '--once'])).toMatch(/FAILED 1 boom/)
    await pooled.must(['flush', '--all'])
    expect(JSON.parse(await pooled.must(['failed', '--json']))).toEqual([])
  })

  it('keeps a job of 5 s on a lease of 2 s: beats come through it as well', async () => {
    await using pooled = await Pooled.open()
    await pooled.must(['migrate'])
    await pooled.must(['dispatch', '--job=nap', '--payload={"ms":5000}'])
    const [one, other] = [
      ['work', '--once'],
      ['work', '--max-time=7s'],
    ].map((args) => pooled.must(args))
    expect(`${await one}${await other}`.match(/ DONE 1 nap /g)).toHaveLength(1)
  })
})
