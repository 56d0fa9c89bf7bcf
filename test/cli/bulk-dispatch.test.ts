import { expect, it } from 'vitest'
import { enqueueSurely } from '../../src/cli/bulk-dispatch.ts'
import { KhepriError } from '../../src/core/errors.ts'
import type { Enqueued, NewJob } from '../../src/core/store/store.ts'

const row = (uniqueKey: string | null): NewJob => ({
  job: 'note',
  queue: 'default',
  priority: 0,
  due: { delayMs: 0 },
  uniqueKey,
  version: 1,
  envelope: '{}',
})

/** A store whose connection breaks under the first `breaks` commits. */
function fragile(breaks: number, answer: readonly Enqueued[]) {
  const calls: (readonly NewJob[])[] = []
  const enqueue = async (jobs: readonly NewJob[]): Promise<readonly Enqueued[]> => {
    calls.push(jobs)
    if (calls.length <= breaks) throw new KhepriError('OUTCOME_UNKNOWN', 'the connection broke')
    return answer
  }
  return { calls, enqueue }
}

it('a dispatch whose outcome is unknown is repeated where every job has a unique key, and its holder is taken for ours', async () => {
  const { calls, enqueue } = fragile(1, [{ id: 7, duplicate: true }])
  expect(await enqueueSurely(enqueue, [row('key')])).toEqual([{ id: 7, duplicate: false }])
  expect(calls).toHaveLength(2)
})

it('a dispatch whose outcome is unknown is not repeated where one job of two has no unique key', async () => {
  const { calls, enqueue } = fragile(1, [])
  await expect(enqueueSurely(enqueue, [row('key'), row(null)])).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(calls).toHaveLength(1)
})

it('a dispatch is given up after 3 repeats', async () => {
  const { calls, enqueue } = fragile(10, [])
  await expect(enqueueSurely(enqueue, [row('key')])).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  expect(calls).toHaveLength(4)
})

it('a duplicate found at the first go stays one', async () => {
  const { enqueue } = fragile(0, [{ id: 7, duplicate: true }])
  expect(await enqueueSurely(enqueue, [row('key')])).toEqual([{ id: 7, duplicate: true }])
})
