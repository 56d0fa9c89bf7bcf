import { expect, it } from 'vitest'
import { Gate, Workshop } from './support/workshop.ts'

it('a worker that is asked to restart drains within 1 s: what runs comes to its end, nothing new is taken', async () => {
  const gate = new Gate()
  const shop = await Workshop.open({ slow: gate.ignoring })
  await shop.add('slow')
  const worker = await shop.work()
  await gate.entered
  await shop.admin.restart()
  await shop.clock.advance(1_000)
  expect(shop.all('worker.draining')).toMatchObject([{ reason: 'restart', running: 1 }])
  await shop.add('slow')
  gate.open()
  expect(await shop.finished(worker)).toMatchObject({ reason: 'restart', done: 1, released: 0 })
})

it('a worker that starts after the mark works on', async () => {
  const shop = await Workshop.open({ note: () => {} })
  await shop.admin.restart()
  const worker = await shop.work()
  await shop.clock.advance(5_000)
  expect(shop.all('worker.draining')).toEqual([])
  await shop.drain(worker)
})
