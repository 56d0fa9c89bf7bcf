import { expect, it } from 'vitest'
import { Cancelled } from '../../src/core/attempt.ts'
import { release } from '../../src/core/job.ts'
import { Gate, Workshop } from './support/workshop.ts'

it('a cancelled job hears of it within 1 s, by its signal', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ slow: gate.obeying })
  const id = await shop.add('slow', { tries: 3 })
  const worker = await shop.work()
  const signal = await gate.entered
  await shop.admin.cancel([id])
  await shop.clock.advance(1_000)
  expect(signal.reason).toBeInstanceOf(Cancelled)
  expect(await shop.drain(worker)).toMatchObject({ cancelled: 1, retried: 0, failed: 0 })
  expect(shop.all('job.cancelled')).toMatchObject([{ id, attempt: 1, ms: 1_000 }])
  expect(await shop.admin.find(id)).toMatchObject({ state: 'cancelled' })
})

it('a cancelled job that returns all the same is done', async () => {
  const shop = await Workshop.open({
    slow: (_payload, { signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
  })
  const id = await shop.add('slow')
  const worker = await shop.work()
  await shop.admin.cancel([id])
  await shop.clock.advance(1_000)
  expect(await shop.drain(worker)).toMatchObject({ done: 1, cancelled: 0 })
})

it.each<[string, () => unknown]>([
  ['throws', () => Promise.reject(new Error('cleaned up'))],
  ['asks to be released', () => release('1h')],
])(
  'a cancelled job that %s is cancelled: it is not tried again, and its failed() hook does not run',
  async (_, end) => {
    const hooks: unknown[] = []
    const shop = await Workshop.open({
      slow: {
        handle: (_payload: unknown, { signal }: { signal: AbortSignal }) =>
          new Promise((resolve) => signal.addEventListener('abort', resolve)).then(() => end()),
        failed: (error: unknown) => hooks.push(error),
      },
    })
    const id = await shop.add('slow', { tries: 1 })
    const worker = await shop.work()
    await shop.admin.cancel([id])
    await shop.clock.advance(60_000)
    expect(await shop.drain(worker)).toMatchObject({ cancelled: 1, failed: 0, retried: 0, released: 0 })
    expect(hooks).toEqual([])
    expect(await shop.admin.find(id)).toMatchObject({ state: 'cancelled' })
  },
)

it('a cancelled job that ignores its signal is cancelled after 5 s, while its slot stays busy', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ deaf: gate.ignoring, quick: () => {} })
  const id = await shop.add('deaf')
  const worker = await shop.work({ concurrency: 2 })
  await shop.admin.cancel([id])
  await shop.clock.advance(6_000)
  expect(shop.all('job.stuck')).toMatchObject([{ id }])
  expect(await shop.admin.find(id)).toMatchObject({ state: 'cancelled' })
  await shop.add('quick')
  await shop.clock.advance(1_000)
  expect(worker.counts()).toMatchObject({ running: 0, done: 1, cancelled: 1 })
  gate.open()
  await shop.drain(worker)
})

it('a job that fails in the second before it hears of its cancellation is cancelled, not failed', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({
    doomed: async (payload, context) => {
      await gate.obeying(payload, context)
      throw new Error('too late')
    },
  })
  const id = await shop.add('doomed')
  const worker = await shop.work()
  await gate.entered
  await shop.admin.cancel([id])
  gate.open()
  await shop.clock.advance(0)
  expect(shop.all('job.failed')).toEqual([])
  expect(shop.all('job.cancelled')).toMatchObject([{ id }])
  expect(await shop.drain(worker)).toMatchObject({ cancelled: 1, failed: 0 })
})

it('a drain still hears of cancellations: it ends when the job it waits for is cancelled', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ slow: gate.obeying })
  const id = await shop.add('slow')
  const worker = await shop.work()
  await gate.entered
  worker.drain()
  await shop.admin.cancel([id])
  expect(await shop.finished(worker, 1_000)).toMatchObject({ cancelled: 1, reason: 'asked' })
})
