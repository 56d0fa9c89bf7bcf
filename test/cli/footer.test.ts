import { expect, it } from 'vitest'
import { Footer } from '../../src/cli/footer.ts'
import { openMemoryStore } from '../../src/core/store/memory/store.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

const job = {
  job: 'note',
  queue: 'default',
  priority: 0,
  uniqueKey: null,
  version: 1,
  envelope: '{}',
}

it('the footer shows what runs here, what the store holds, and the rate of the last second', async () => {
  const clock = new ManualClock()
  const { store, admin } = openMemoryStore({ clock })
  await store.enqueue([
    { ...job, due: { delayMs: 0 } },
    { ...job, due: { delayMs: 0 } },
    { ...job, due: { delayMs: 60_000 } },
  ])
  const counts = { running: 3, done: 0, retried: 0, failed: 0, released: 0, cancelled: 0, lost: 0 }
  const footer = new Footer({ counts: () => counts, admin: async () => admin, clock })
  expect(footer.text()).toBe('  3 running   0/s   ^C stops')
  await clock.advance(1_000)
  counts.done = 3_120
  expect(footer.text()).toBe('  3 running  2 ready  1 scheduled  0 failed   3,120/s   ^C stops')
  footer.close()
  expect(clock.pending).toBe(0)
})

it('a store that cannot be counted leaves its numbers out, until it can', async () => {
  const clock = new ManualClock()
  const { admin } = openMemoryStore({ clock })
  let isDown = true
  const open = async () => {
    if (isDown) throw new Error('down')
    return admin
  }
  const counts = { running: 0, done: 0, retried: 0, failed: 0, released: 0, cancelled: 0, lost: 0 }
  const footer = new Footer({ counts: () => counts, admin: open, clock })
  await clock.advance(1_000)
  expect(footer.text()).toBe('  0 running   0/s   ^C stops')
  isDown = false
  await clock.advance(2_000)
  expect(footer.text()).toBe('  0 running  0 ready  0 scheduled  0 failed   0/s   ^C stops')
  footer.close()
})
