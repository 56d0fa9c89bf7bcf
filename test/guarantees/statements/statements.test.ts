import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresSkipReason } from '../../support/postgres.ts'
import { trySeries } from './campaign.ts'
import { type Fault, replayProgram, type Struck } from './faults.ts'
import { type Operation, operations } from './operations.ts'
import { run, withPostgres, withSqlite } from './run.ts'
import type { Act, Site } from './site.ts'

const silently = (): void => {}
const longMs = 600_000

function named(name: string): Operation {
  const found = operations.find((each) => each.name === name)
  if (!found) throw new Error(`there is no operation ${name}`)
  return found
}

/** Everything that is wrong after one fault at every `step`-th statement of an operation, from the first on. */
function violations(site: Site, operation: Operation, fault: Fault, step = 1): Promise<readonly string[]> {
  const tally = { cases: 0, kills: 0, errors: 0 }
  return trySeries(site, { operation, fault, stride: { first: 1, step } }, tally)
}

it('a kill or an error at every 47th statement of 11 operations on SQLite loses nothing, doubles nothing, and is told truly', {
  timeout: longMs,
}, async () => {
  const { errors, kills } = await run('sample', silently)

  expect(Number(errors)).toBeGreaterThan(20)
  expect(Number(kills)).toBeGreaterThan(8)
})

describe.skipIf(postgresSkipReason())('on Postgres', () => {
  it(
    'a dispatch that is killed, refused with 40001, terminated or cut off at its greeting or its INSERT is told truly',
    { timeout: longMs },
    () =>
      withPostgres(1, async ([site]) => {
        for (const fault of ['kill after', '40001', '57P01', 'reset after'] as const)
          expect(await violations(site as Site, named('dispatch one'), fault, 3)).toEqual([])
      }),
  )
})

it('the command that replays a case runs that case alone, and ends with 0 where nothing is wrong', () => {
  const place = ['sqlite', 'dispatch one', 'BUSY', '4']

  const { stdout, status } = spawnSync(process.execPath, [replayProgram, ...place], { encoding: 'utf8' })

  expect({ stdout, status }).toEqual({ stdout: 'nothing is wrong\n', status: 0 })
})

describe('on one SQLite file', () => {
  let lend = Promise.withResolvers<void>()
  let lent: Promise<void>
  let site: Site

  beforeAll(async () => {
    lend = Promise.withResolvers()
    const ready = Promise.withResolvers<Site>()
    lent = withSqlite(1, ([only]) => {
      ready.resolve(only as Site)
      return lend.promise
    })
    lent.catch(ready.reject)
    site = await ready.promise
  })

  afterAll(async () => {
    lend.resolve()
    await lent
  })

  /** Lets a fault befall the first statement of an operation that is like this. */
  async function strike(operation: Operation, fault: Fault, isMeant: (struck: Struck) => boolean): Promise<Act> {
    for (let at = 1; ; at++) {
      await site.begin('state_migrated')
      const act = await operation.act(site, { fault, at })
      if (act.struck === null) throw new Error(`${operation.name} has no such statement`)
      if (isMeant(act.struck)) return act
    }
  }

  it('a commit that the disk did not confirm no longer says that nothing was written: exit 75, and the job may be in', async () => {
    const { answer } = await strike(named('dispatch one'), 'IOERR after', ({ role }) => role === 'commit')

    expect(answer).toMatchObject({
      exit: 75,
      stderr: expect.stringMatching(/may or may not have kept the last change/),
    })
    expect(await site.ask('select id from jobs')).toHaveLength(1)
  })

  it('a look that the disk breaks at its end no longer says that a change may have been kept: exit 69', async () => {
    const { answer } = await strike(
      named('dispatch one'),
      'IOERR',
      ({ role, text }) => role === 'read' && text === 'commit',
    )

    expect(answer).toMatchObject({ exit: 69, stderr: expect.stringMatching(/cannot be read or written/) })
  })

  describe('the programme sees', () => {
    it('a dispatch in two steps, by a kill between them that leaves half of its jobs', async () => {
      const twoSteps: Operation = {
        ...named('dispatch many with unique keys'),
        act: async (on, plan) => {
          await on.must('dispatch', '--job=done', '--payload={"k":1}')
          return on.run(['dispatch', on.write('rest.ndjson', lines([2, 3]))], plan)
        },
      }
      expect(await violations(site, twoSteps, 'kill before', 3)).toContainEqual(
        expect.stringContaining('of the jobs [1, 2, 3] there ran [1]'),
      )
    })

    it('a success that is told before the job is durable, by its exit code', async () => {
      const tooEarly: Operation = {
        ...named('dispatch one'),
        act: async (on, plan) => {
          const { answer, struck } = await named('dispatch one').act(on, plan)
          return { answer: answer === 'killed' ? answer : { ...answer, exit: 0, stderr: '' }, struck }
        },
      }
      expect(await violations(site, tooEarly, 'FULL', 3)).toContainEqual(
        expect.stringContaining('exit 0, and there ran [] instead of [1]'),
      )
    })

    it('a dispatch that is repeated without a unique key though it may have happened, by the job that runs twice', async () => {
      const repeated: Operation = {
        ...named('dispatch one'),
        act: async (on, plan) => {
          const act = await named('dispatch one').act(on, plan)
          if (act.struck?.role === 'commit') await on.must('dispatch', '--job=done', '--payload={"k":1}')
          return act
        },
      }
      expect(await violations(site, repeated, 'IOERR after')).toContainEqual(
        expect.stringContaining('of the jobs [1] there ran [1, 1]'),
      )
    })

    it('a worker that gives a job back after it has run, by its needless second start', async () => {
      const forgetful: Operation = {
        ...named('work: done'),
        act: async (on, plan) => {
          const act = await named('work: done').act(on, plan)
          await on.must('dispatch', '--job=done', '--payload={"k":1}')
          return act
        },
      }
      expect(await violations(site, forgetful, 'BUSY', 5)).toContainEqual(
        expect.stringContaining('attempts [1, 1] started instead of [1]'),
      )
    })

    it('a violation with its store, operation, fault, statement, and the command that replays it', async () => {
      const impossible: Operation = { ...named('flush'), check: () => ['it is wrong'] }
      const [first] = await violations(site, impossible, 'READONLY', 400)
      expect(first).toMatch(
        /^flush on sqlite, READONLY at statement 1 \(read: .*\): it is wrong\n {2}exit 77, stderr: error: /,
      )
      expect(first).toMatch(/\n {2}replay: node test\/guarantees\/statements\/replay\.ts sqlite "flush" "READONLY" 1$/)
    })
  })
})

const lines = (ks: readonly number[]): string =>
  ks.map((k) => `${JSON.stringify({ job: 'done', payload: { k } })}\n`).join('')
