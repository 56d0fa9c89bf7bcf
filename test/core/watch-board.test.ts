import { Worker as Thread } from 'node:worker_threads'
import { expect, it } from 'vitest'
import type { Watched } from '../../src/core/beat.ts'
import { WatchBoard } from '../../src/core/watch-board.ts'

const watched = (id: number, retryMs: number | null = null): Watched => ({
  ...{ id, fence: 3, attempt: 2, startedAt: 1_764_500_000_123, timeoutMs: 30_000 },
  retryMs,
})

it('what one thread enters another thread reads, until it ends', () => {
  const board = new WatchBoard()
  const other = new WatchBoard(board.memory)
  const end = board.enter(watched(7, 0))
  board.enter(watched(2 ** 52))
  expect(other.watched).toEqual([watched(7, 0), watched(2 ** 52)])
  end()
  expect(other.watched).toEqual([watched(2 ** 52)])
})

it('a place is used again, and more than 1,024 attempts at once are simply not watched', () => {
  const board = new WatchBoard()
  const ends = Array.from({ length: 1_030 }, (_, id) => board.enter(watched(id)))
  expect(board.watched).toHaveLength(1_024)
  for (const end of ends) end()
  expect(board.watched).toEqual([])
  board.enter(watched(5_000))
  expect(board.watched).toEqual([watched(5_000)])
})

it('a thread sees the ticks stand still while the event loop of another one is blocked', async () => {
  const board = new WatchBoard()
  board.tick()
  board.tick()
  const module = new URL('../../src/core/watch-board.ts', import.meta.url).href
  const code = `
    const { parentPort, workerData } = require('node:worker_threads')
    import(${JSON.stringify(module)}).then(({ WatchBoard }) => parentPort.postMessage(new WatchBoard(workerData).ticks))`
  const thread = new Thread(code, { eval: true, workerData: board.memory })
  const ticks = await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject))
  expect(ticks).toBe(2)
  await thread.terminate()
})
