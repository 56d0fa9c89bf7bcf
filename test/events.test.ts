import { expect, it } from 'vitest'
import { createKhepri, defineJob } from '../src/index.ts'

const note = defineJob<{ readonly text: string }>({ queue: 'mail', handle() {} })

it('a loop over the events hears a job from its dispatch to its end, and ends with close()', async () => {
  const khepri = createKhepri({ database: 'memory:', jobs: { note } })
  const stream = khepri.events.stream()
  await khepri.dispatch('note', { text: 'hello' })
  await (await khepri.work({ stopWhenEmpty: true })).finished
  await khepri.close()
  const heard: string[] = []
  for await (const { event } of stream) heard.push(event)
  expect(heard.filter((event) => event.startsWith('job.'))).toEqual(['job.enqueued', 'job.started', 'job.done'])
  expect(heard.at(-1)).toBe('worker.stopped')
})

it('job.enqueued names every job that was written, once it is committed, and no duplicate', async () => {
  const khepri = createKhepri({ database: 'memory:', jobs: { note } })
  const heard: unknown[] = []
  khepri.events.on('job.enqueued', (event) => heard.push(event))
  await khepri.dispatch('note', { text: 'one' }, { unique: 'k' })
  await khepri.dispatch('note', { text: 'two' }, { unique: 'k' })
  await khepri.dispatchMany([
    { job: 'note', payload: { text: 'three' }, queue: 'fast' },
    { job: 'note', payload: { text: 'four' } },
  ])
  expect(heard).toEqual([
    { id: 1, job: 'note', queue: 'mail' },
    { id: 2, job: 'note', queue: 'fast' },
    { id: 3, job: 'note', queue: 'mail' },
  ])
  await khepri.close()
})

it('a job that was refused is not said to be enqueued', async () => {
  const khepri = createKhepri({ database: 'memory:', jobs: { note } })
  const heard: unknown[] = []
  khepri.events.on('job.enqueued', (event) => heard.push(event))
  await expect(khepri.dispatch('note', { text: Number.NaN as unknown as string })).rejects.toThrow('NaN')
  expect(heard).toEqual([])
  await khepri.close()
})
