import { expect, it } from 'vitest'
import { queueRoom, slotsFor } from '../../src/core/queue-limits.ts'
import { Workshop } from './support/workshop.ts'

const limits = new Map([
  ['mail', 2],
  ['slow', 1],
])

it('a worker without a concurrency has a slot for each job its limited queues may run, and one for all the others', () => {
  expect(slotsFor(limits, [['mail'], ['slow']])).toBe(3)
  expect(slotsFor(limits, [['mail', 'slow', 'default', 'high']])).toBe(4)
  expect(slotsFor(limits, [['mail']])).toBe(2)
  expect(slotsFor(limits, 'all')).toBe(4)
  expect(slotsFor(new Map(), [['default']])).toBe(1)
})

it('no reservation is larger than the queue with the least room allows', () => {
  const running = new Map([['mail', 1]])
  const room = (queues: Parameters<typeof queueRoom>[1]) =>
    queueRoom(limits, queues, (queue) => running.get(queue) ?? 0)
  expect(room([['mail'], ['default']])).toEqual({ full: [], most: 1 })
  expect(room([['default']])).toEqual({ full: [], most: Number.POSITIVE_INFINITY })
  running.set('mail', 2)
  expect(room([['mail'], ['default']])).toEqual({ full: ['mail'], most: Number.POSITIVE_INFINITY })
  expect(room([['mail'], ['slow']])).toEqual({ full: ['mail'], most: 1 })
  expect(room([['mail']])).toEqual({ full: ['mail'], most: 0 })
  expect(room('all')).toEqual({ full: ['mail'], most: 1 })
})

for (const queues of [[['mail'], ['default']], [['mail', 'default']], 'all'] as const) {
  it(`a full queue never holds back another one, and never runs more than its limit: ${JSON.stringify(queues)}`, async () => {
    const running = { mail: 0, default: 0 }
    const most = { mail: 0, default: 0 }
    const nap = (queue: 'mail' | 'default') => async (): Promise<void> => {
      most[queue] = Math.max(most[queue], ++running[queue])
      await new Promise<void>((resolve) => shop.clock.after(100, resolve))
      running[queue]--
    }
    const shop = await Workshop.open({ mail: nap('mail'), note: nap('default') })
    for (let count = 0; count < 20; count++) await shop.add('mail', { queue: 'mail' })
    for (let count = 0; count < 6; count++) await shop.add('note', { queue: 'default' })
    const options = { queues, queueLimits: new Map([['mail', 2]]), concurrency: 5 }
    const report = await shop.workUntilEmpty(options, { withinMs: 3_000 })
    expect(report.done).toBe(26)
    expect(most).toEqual({ mail: 2, default: 3 })
  })
}
