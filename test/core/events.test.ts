import { expect, it } from 'vitest'
import { EventBus } from '../../src/core/events.ts'

const lost = { message: 'gone' }

it('listeners hear in the order in which they were added', () => {
  const events = new EventBus()
  const heard: string[] = []
  events.on('store.lost', () => heard.push('first'))
  events.onAny((name) => heard.push(name))
  events.on('store.back', () => heard.push('never'))
  events.emit('store.lost', lost)
  expect(heard).toEqual(['first', 'store.lost'])
})

it('a listener that throws and one that rejects disturb nobody', async () => {
  const events = new EventBus()
  const heard: string[] = []
  const unhandled: unknown[] = []
  const listen = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', listen)
  events.on('store.lost', () => {
    throw new Error('broken listener')
  })
  events.on('store.lost', async () => {
    throw new Error('broken asynchronous listener')
  })
  events.on('store.lost', ({ message }) => heard.push(message))
  events.emit('store.lost', lost)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', listen)
  expect(heard).toEqual(['gone'])
  expect(unhandled).toEqual([])
})

it('a listener that was taken off hears nothing more', () => {
  const events = new EventBus()
  const heard: string[] = []
  const off = events.on('store.lost', () => heard.push('heard'))
  events.emit('store.lost', lost)
  off()
  events.emit('store.lost', lost)
  expect(heard).toEqual(['heard'])
})
