import { expect, it } from 'vitest'
import { mostWaiting } from '../../src/core/event-stream.ts'
import { EventBus } from '../../src/core/events.ts'

const lost = { message: 'gone' }

it('a stream hands out what was emitted since it was opened, in order, with the name beside the facts', async () => {
  const events = new EventBus()
  events.emit('store.lost', { message: 'before' })
  const stream = events.stream()
  events.emit('store.lost', lost)
  events.emit('store.back', { outageMs: 5 })
  expect([(await stream.next()).value, (await stream.next()).value]).toEqual([
    { event: 'store.lost', message: 'gone' },
    { event: 'store.back', outageMs: 5 },
  ])
})

it('a loop that waits gets the next event when it comes', async () => {
  const events = new EventBus()
  const stream = events.stream()
  const [first, second] = [stream.next(), stream.next()]
  events.emit('store.lost', lost)
  events.emit('store.back', { outageMs: 5 })
  expect([(await first).value?.event, (await second).value?.event]).toEqual(['store.lost', 'store.back'])
})

it('a loop that is left hears nothing more, and nothing is put together for it', async () => {
  const events = new EventBus()
  queueMicrotask(() => events.emit('store.lost', lost))
  for await (const { event } of events) {
    expect(event).toBe('store.lost')
    break
  }
  expect(events.isHeard).toBe(false)
})

it('a signal ends a stream after what still waits, and at once where it has aborted before', async () => {
  const events = new EventBus()
  const controller = new AbortController()
  const stream = events.stream({ signal: controller.signal })
  events.emit('store.lost', lost)
  controller.abort()
  events.emit('store.back', { outageMs: 5 })
  expect([(await stream.next()).done, (await stream.next()).done]).toEqual([false, true])
  expect(await events.stream({ signal: controller.signal }).next()).toEqual({ value: undefined, done: true })
})

it('the end of the bus ends streams that wait and those that are opened later', async () => {
  const events = new EventBus()
  const waiting = events.stream().next()
  events.end()
  expect([await waiting, await events.stream().next()]).toEqual([
    { value: undefined, done: true },
    { value: undefined, done: true },
  ])
  expect(events.isHeard).toBe(false)
})

it('a reader that falls 10,000 events behind loses the oldest and is told how many, and no event is lost unsaid', async () => {
  const events = new EventBus()
  const stream = events.stream()
  const emitted = mostWaiting + 2_500
  for (let outageMs = 1; outageMs <= emitted; outageMs++) events.emit('store.back', { outageMs })
  events.end()
  const heard = await gather(stream)
  const [first, ...rest] = heard
  expect(first).toEqual({ event: 'events.dropped', count: emitted - rest.length })
  expect(rest.at(0)).toEqual({ event: 'store.back', outageMs: emitted - rest.length + 1 })
  expect(rest.at(-1)).toEqual({ event: 'store.back', outageMs: emitted })
})

async function gather<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
