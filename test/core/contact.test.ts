import { expect, it } from 'vitest'
import { Contact } from '../../src/core/contact.ts'
import { KhepriError } from '../../src/core/errors.ts'
import { EventBus } from '../../src/core/events.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

const gone = new KhepriError('STORE_UNREACHABLE', 'cannot reach postgres://db:5432/app: connection refused')

function aContact() {
  const clock = new ManualClock()
  const events = new EventBus()
  const heard: unknown[] = []
  events.onAny((name, event) => heard.push([name, event]))
  return { clock, heard, contact: new Contact(clock, events, 45_000) }
}

it('an outage is one event when it starts and one when it ends, however often it is met', async () => {
  const { clock, heard, contact } = aContact()
  contact.lost('exchange', gone, clock.monotonic())
  await clock.advance(4_000)
  contact.lost('exchange', gone, clock.monotonic())
  contact.lost('beat', gone, clock.monotonic())
  await clock.advance(1_000)
  contact.good('beat')
  contact.good('exchange')
  contact.good('exchange')
  expect(heard).toEqual([
    ['store.lost', { message: gone.message }],
    ['store.back', { outageMs: 5_000 }],
  ])
})

it('the store is back only when every loop that missed it has reached it', () => {
  const { clock, heard, contact } = aContact()
  contact.lost('exchange', gone, clock.monotonic())
  contact.lost('beat', gone, clock.monotonic())
  contact.good('exchange')
  expect(heard).toHaveLength(1)
  expect(contact.hasBeenGoodFor(0)).toBe(false)
  contact.good('beat')
  expect(heard).toHaveLength(2)
})

it('one silence that breaks each session at its own deadline is told once, though the first is back before the last breaks', async () => {
  const { clock, heard, contact } = aContact()
  const sentAt = clock.monotonic()
  await clock.advance(10_000)
  contact.lost('exchange', gone, sentAt)
  contact.good('exchange')
  await clock.advance(2_000)
  contact.lost('control', gone, sentAt + 2_000)
  contact.lost('beat', gone, sentAt + 9_000)
  expect(heard).toHaveLength(2)
  expect(contact.hasBeenGoodFor(1)).toBe(false)
  contact.good('control')
  contact.good('beat')
  expect(heard).toHaveLength(2)
  contact.lost('beat', gone, clock.monotonic())
  expect(heard).toHaveLength(3)
})

it('a second outage is told anew', () => {
  const { clock, heard, contact } = aContact()
  for (const _ of [1, 2]) {
    contact.lost('beat', gone, clock.monotonic())
    contact.good('beat')
  }
  expect(heard).toHaveLength(4)
})

it('a neighbour may be judged after 10 s of unbroken contact and not after 9,999 ms', async () => {
  const { clock, contact } = aContact()
  await clock.advance(9_999)
  expect(contact.hasBeenGoodFor(10_000)).toBe(false)
  await clock.advance(1)
  expect(contact.hasBeenGoodFor(10_000)).toBe(true)
})

it('an outage starts the 10 s again at its end', async () => {
  const { clock, contact } = aContact()
  await clock.advance(30_000)
  contact.lost('beat', gone, clock.monotonic())
  expect(contact.hasBeenGoodFor(10_000)).toBe(false)
  contact.good('beat')
  await clock.advance(9_999)
  expect(contact.hasBeenGoodFor(10_000)).toBe(false)
  await clock.advance(1)
  expect(contact.hasBeenGoodFor(10_000)).toBe(true)
})

it.each([6_000, -6_000])('a wall clock that jumps by %d ms starts the 10 s again', async (jumpMs) => {
  const { clock, contact } = aContact()
  await clock.advance(30_000)
  clock.set(clock.now() + jumpMs)
  expect(contact.hasBeenGoodFor(10_000)).toBe(false)
  await clock.advance(10_000)
  expect(contact.hasBeenGoodFor(10_000)).toBe(true)
})

it('a worker whose own beats hang for more than 45 s judges nobody, though its looks go through, and for 10 s after', async () => {
  const { clock, contact } = aContact()
  contact.good('beat')
  await clock.advance(45_001)
  contact.good('control')
  expect(contact.hasBeenGoodFor(10_000)).toBe(false)
  contact.good('beat')
  await clock.advance(9_999)
  expect(contact.hasBeenGoodFor(10_000)).toBe(false)
  await clock.advance(1)
  expect(contact.hasBeenGoodFor(10_000)).toBe(true)
})

it('a wall clock that jumps by 1,001 ms starts the time again where beats may be only 1,000 ms apart', async () => {
  const clock = new ManualClock()
  const contact = new Contact(clock, new EventBus(), 1_000)
  await clock.advance(800)
  contact.good('beat')
  clock.set(clock.now() + 1_001)
  expect(contact.hasBeenGoodFor(0)).toBe(true)
  await clock.advance(500)
  expect(contact.hasBeenGoodFor(501)).toBe(false)
  expect(contact.hasBeenGoodFor(500)).toBe(true)
})

it('a wall clock that is corrected by 4,999 ms changes nothing', async () => {
  const { clock, contact } = aContact()
  await clock.advance(30_000)
  clock.set(clock.now() + 4_999)
  expect(contact.hasBeenGoodFor(10_000)).toBe(true)
})
