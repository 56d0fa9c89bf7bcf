import { expect, it } from 'vitest'
import { Enqueuer } from '../../src/core/enqueuer.ts'
import { KhepriError } from '../../src/core/errors.ts'
import type { Enqueued, NewJob } from '../../src/core/store/store.ts'
import { aJob } from '../../src/testing/conformance/builders.ts'

/** A store that commits when the test says so, and refuses jobs of the name "bad". */
function aStore() {
  const sent: (readonly NewJob[])[] = []
  const open: (() => void)[] = []
  let last = 0
  const enqueue = async (jobs: readonly NewJob[]): Promise<readonly Enqueued[]> => {
    sent.push(jobs)
    await new Promise<void>((resolve) => open.push(resolve))
    if (jobs.some(({ job }) => job === 'bad')) throw new KhepriError('STORE_FAILED', 'refused')
    if (jobs.some(({ job }) => job === 'lost')) throw new KhepriError('OUTCOME_UNKNOWN', 'nobody knows')
    return jobs.map(() => ({ id: ++last, duplicate: false }))
  }
  const commit = async (): Promise<void> => {
    open.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { sent, commit, enqueuer: new Enqueuer({ enqueue }) }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('50 dispatches of one moment share one statement, and each gets its own id', async () => {
  const { sent, commit, enqueuer } = aStore()
  const calls = Array.from({ length: 50 }, () => enqueuer.enqueue([aJob()]))
  await settle()
  await commit()
  expect(sent.map(({ length }) => length)).toEqual([50])
  expect((await Promise.all(calls)).map(([one]) => one?.id)).toEqual(
    Array.from({ length: 50 }, (_, index) => index + 1),
  )
})

it('two statements are under way at once; what comes meanwhile goes together with the next', async () => {
  const { sent, commit, enqueuer } = aStore()
  const calls: Promise<unknown>[] = []
  for (let count = 0; count < 10; count++) {
    calls.push(enqueuer.enqueue([aJob()]))
    await settle()
  }
  expect(sent.map(({ length }) => length)).toEqual([1, 1])
  await commit()
  expect(sent.map(({ length }) => length)).toEqual([1, 1, 8])
  await commit()
  await commit()
  await Promise.all(calls)
})

it('who shares a statement with a job that is refused is not refused with it', async () => {
  const { commit, enqueuer } = aStore()
  const calls = ['good', 'bad', 'good'].map((job) => enqueuer.enqueue([aJob({ job })]))
  const ended = Promise.allSettled(calls)
  await settle()
  for (let count = 0; count < 4; count++) await commit()
  expect((await ended).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

it('a shared statement whose outcome is unknown is not sent again: each caller hears that it is unknown', async () => {
  const { sent, commit, enqueuer } = aStore()
  const calls = ['good', 'lost'].map((job) => enqueuer.enqueue([aJob({ job })]))
  const ended = Promise.allSettled(calls)
  await settle()
  await commit()
  expect((await ended).map((one) => one.status === 'rejected' && one.reason.code)).toEqual([
    'OUTCOME_UNKNOWN',
    'OUTCOME_UNKNOWN',
  ])
  expect(sent).toHaveLength(1)
})

it('a unique key, and a call of more than 1,000 jobs, never share a statement', async () => {
  const { sent, commit, enqueuer } = aStore()
  const many = Array.from({ length: 1_001 }, () => aJob())
  const calls = [[aJob()], [aJob({ uniqueKey: 'k' })], [aJob()], many].map((jobs) => enqueuer.enqueue(jobs))
  await settle()
  for (let count = 0; count < 3; count++) await commit()
  await Promise.all(calls)
  expect(sent.map(({ length }) => length).sort((a, b) => a - b)).toEqual([1, 2, 1_001])
})
