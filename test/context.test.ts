import { describe, expect, it, onTestFinished } from 'vitest'
import { createKhepri, defineJob, withContext } from '../src/index.ts'
import { testKhepri } from '../src/testing/index.ts'
import { migratedPath } from './core/store/sqlite-support.ts'

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const otherTrace = '00-4bf92f3577b34da6a3ce929d0e0e4736-aaaaaaaaaaaaaaaa-01'

/** A job that writes down its context, and dispatches itself as deep as it is told, alone and with its completion. */
function aFamily() {
  const seen: unknown[] = []
  const child = defineJob<{ readonly depth: number }>({
    async handle({ depth }, { context, traceparent, next }) {
      seen.push([depth, context, traceparent])
      if (depth > 0) await khepri.dispatch('child', { depth: depth - 1 })
      if (depth > 1) await next('child', { depth: 0 })
    },
  })
  const khepri = testKhepri({ jobs: { child } })
  return { khepri, seen }
}

describe('the context', () => {
  it('goes with a dispatch into the handler, and from there into every job that follows', async () => {
    const { khepri, seen } = aFamily()
    await khepri.dispatch('child', { depth: 2 }, { context: { tenant: 'a' }, traceparent: trace })
    await khepri.runUntilIdle()
    expect(seen.sort()).toEqual([0, 0, 1, 2].map((depth) => [depth, { tenant: 'a' }, trace]))
  })

  it('is that of withContext where the job is dispatched; members given to the dispatch come over it', async () => {
    const { khepri, seen } = aFamily()
    await withContext({ context: { tenant: 'a', user: 1 }, traceparent: trace }, async () => {
      await khepri.dispatch('child', { depth: 0 }, { context: { user: 2 } })
      await withContext({ context: { more: true }, traceparent: otherTrace }, () =>
        khepri.dispatch('child', { depth: 0 }),
      )
      await khepri.dispatch('child', { depth: 0 }, { context: null })
    })
    await khepri.dispatch('child', { depth: 0 })
    await khepri.runUntilIdle()
    expect(seen).toEqual([
      [0, { tenant: 'a', user: 2 }, trace],
      [0, { tenant: 'a', user: 1, more: true }, otherTrace],
      [0, {}, trace],
      [0, {}, null],
    ])
  })

  it('of the code that starts a worker does not reach its jobs', async () => {
    const { khepri, seen } = aFamily()
    await khepri.dispatch('child', { depth: 1 })
    await withContext({ context: { tenant: 'of the worker' } }, () => khepri.runUntilIdle())
    expect(seen).toEqual([
      [1, {}, null],
      [0, {}, null],
    ])
  })

  it('is current in the failed hook', async () => {
    const seen: unknown[] = []
    const fails = defineJob({
      handle() {
        throw new Error('no')
      },
      failed: async () => void (await khepri.dispatch('note')),
    })
    const khepri = testKhepri({
      jobs: { fails, note: (_: unknown, { context }: { context: unknown }) => void seen.push(context) },
    })
    await khepri.dispatch('fails', {}, { context: { tenant: 'a' } })
    await khepri.runUntilIdle()
    expect(seen).toEqual([{ tenant: 'a' }])
  })

  it.each([
    [{ context: 'a' }, 'DATA_INVALID', /^context must be an object, got "a"/],
    [{ context: { at: new Date(0) } }, 'PAYLOAD_REFUSED', /at/],
    [{ context: { text: 'x'.repeat(17_000) } }, 'DATA_INVALID', /^context has 17,011 bytes, at most 16,384/],
    [{ traceparent: 'x' }, 'DATA_INVALID', /^traceparent must look like "00-/],
  ])('that is no context is refused, case %#', async (options, code, message) => {
    const { khepri } = aFamily()
    await expect(khepri.dispatch('child', { depth: 0 }, options as never)).rejects.toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    )
  })
})

describe('the scope of a run', () => {
  it('is built for each run and disposed of when the handler has come back, also where it throws', async () => {
    const journal: string[] = []
    const khepri = testKhepri({
      scope: ({ attempt }: { attempt: number }) => {
        journal.push(`open ${attempt}`)
        return { name: `scope ${attempt}`, [Symbol.asyncDispose]: async () => void journal.push(`close ${attempt}`) }
      },
      jobs: {
        flaky: defineJob({
          tries: 2,
          handle: (_, { scope, attempt }) => {
            journal.push((scope as { name: string }).name)
            if (attempt === 1) throw new Error('once')
          },
        }),
      },
    })
    await khepri.dispatch('flaky')
    await khepri.runUntilIdle()
    expect(journal).toEqual(['open 1', 'scope 1', 'close 1', 'open 2', 'scope 2', 'close 2'])
  })

  it.each([
    ['cannot be built', () => Promise.reject(new Error('no connection')), 'no connection'],
    ['cannot be disposed of', () => ({ dispose: () => Promise.reject(new Error('no commit')) }), 'no commit'],
  ])('fails the attempt where it %s', async (_, scope, error) => {
    const khepri = testKhepri({ scope, jobs: { note: () => {} } })
    expect(await khepri.runJob('note')).toMatchObject({ kind: 'failed', error: { message: error } })
  })

  it('is refused where it is no function', () => {
    expect(() => createKhepri({ scope: {} as never })).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: 'scope must be a function, got an object' }),
    )
  })
})

describe('the role', () => {
  const open = (path: string, role: 'producer' | 'worker') => {
    const ran: string[] = []
    const jobs = {
      first: async () => void (await khepri.dispatch('second')),
      second: () => void ran.push('second'),
    }
    const khepri = createKhepri({ database: `sqlite:${path}`, role, jobs })
    onTestFinished(() => khepri.close())
    return { khepri, ran }
  }
  it('producer dispatches and starts no worker; worker runs jobs, and only its handlers dispatch', async () => {
    const path = await migratedPath()
    const producer = open(path, 'producer')
    await producer.khepri.dispatch('first')
    await expect(producer.khepri.work()).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('is a producer'),
    })

    const { khepri, ran } = open(path, 'worker')
    await expect(khepri.dispatch('first')).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('only its handlers'),
    })
    await (await khepri.work({ stopWhenEmpty: true })).finished
    expect(ran).toEqual(['second'])
  })

  it('is one of three', () => {
    expect(() => createKhepri({ role: 'boss' as never })).toThrow('role must be "both", "producer" or "worker"')
  })
})
