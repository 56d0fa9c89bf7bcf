import { everybody, type Measure, perSecond, rate } from './measure.ts'

const adding = (name: string, title: string, at: number): Measure => ({
  ...everybody,
  asksForDurability: true,
  name,
  title,
  from: 'quick',
  figures: [rate],
  async run(contest, { adds, boxMs }) {
    const list = contest.list({ count: adds })
    return perSecond(await contest.client.ask('add', { list, at, boxMs: boxMs / 2 }))
  },
})

const bulk = (name: string, title: string, bytes: number, from: Measure['from']): Measure => ({
  ...everybody,
  asksForDurability: true,
  name,
  title,
  from,
  figures: [rate],
  async run(contest, { bulkJobs, boxMs }) {
    const list = contest.list({ count: bulkJobs, bytes })
    return perSecond(await contest.client.ask('addBulk', { list, boxMs: boxMs / 2 }))
  },
})

/** How fast jobs get in. */
export const adds: readonly Measure[] = [
  adding('add-one', 'add, awaited one by one', 1),
  adding('add-50', 'add, 50 callers at once', 50),
  bulk('bulk', 'add in bulk, 1,000 a call', 100, 'quick'),
  bulk('bulk-1k', 'add in bulk, payloads of 1 KB', 1_000, 'usual'),
  bulk('bulk-10k', 'add in bulk, payloads of 10 KB', 10_000, 'full'),
]
